(* SPDX-License-Identifier: BSD-2-Clause *)
(* Combined allocations: the compiler allocates all the blocks of one expression
   at once. Each sub-block is a block of its own, with its own line:

     nested   line 1   array of 3 + 1 fields        5 words
              line 2     tuple of 3 fields          4 words
              line 3     Some of 1 field            2 words
              line 4     cons of 2 fields           3 words
     loop     the same in the body of a loop, after a branch: a tuple of
              6 fields (7 words) and, a line later, one of 2 (3 words) *)

let nested_line = __LINE__ + 3

let[@inline never] nested i =
  [| Obj.repr i;
     Obj.repr (i, i, i + 1);
     Obj.repr (Some i);
     Obj.repr (i :: []) |]

let loop_line = __LINE__ + 4

let[@inline never] in_loop i =
  if i land 1 = 0 then
    let big = (i, i, i, i, i, i) in
    let small = (i, i) in
    Sys.opaque_identity (Obj.repr big, Obj.repr small) |> ignore

let () =
  Harness.run @@ fun () ->
  let n = Harness.blocks_of 14 in
  for i = 1 to n do
    ignore (Sys.opaque_identity (nested i))
  done;
  for i = 1 to 2 * n do
    in_loop i
  done;
  let expect fn first offset size =
    Harness.expect "alloc_minor" fn
      ~line:(string_of_int (first + offset))
      ~size ~blocks:n
  in
  expect "Combined.nested" nested_line 0 4;
  expect "Combined.nested" nested_line 1 3;
  expect "Combined.nested" nested_line 2 1;
  expect "Combined.nested" nested_line 3 2;
  expect "Combined.in_loop" loop_line 0 6;
  expect "Combined.in_loop" loop_line 1 2
