(* SPDX-License-Identifier: BSD-2-Clause *)
(* Arrays of more than 256 words, straight in the major heap:

     ints     Array.make 1000 0: 1000 fields (1001 words)
     floats   Array.make 300 0.: 300 fields (301 words), unscanned
     subs     Array.sub of 500: 500 fields (501 words)
     huge     Array.make of 40,000 fields (40,001 words): beyond the size
              classes of the shared pools *)

let[@inline never] ints i = Array.make 1000 i
let[@inline never] floats x = Array.make 300 x
let[@inline never] huge i = Array.make 40_000 i

(* Array.sub is a function of the standard library: it is innermost. *)
let[@inline never] subs a =
  let b = Array.sub a 100 500 in
  b.(0) <- 1;
  b

let repeat n f =
  for i = 1 to n do
    ignore (Sys.opaque_identity (f i))
  done

let () =
  Harness.run @@ fun () ->
  let source = Array.make 1000 7 in
  let n_ints = Harness.blocks_of 1001 in
  let n_floats = Harness.blocks_of 301 in
  let n_subs = Harness.blocks_of 501 in
  let n_huge = Harness.blocks_of 40_001 in
  repeat n_ints ints;
  for i = 1 to n_floats do
    ignore (Sys.opaque_identity (floats (float_of_int i)))
  done;
  repeat n_subs (fun _ -> subs source);
  repeat n_huge huge;
  let expect = Harness.expect "alloc_major" in
  expect "Arrays.ints" ~size:1000 ~blocks:n_ints;
  expect "Arrays.floats" ~size:300 ~blocks:n_floats;
  Harness.expect "alloc_major" "Arrays.subs" ~where:"any" ~size:500 ~blocks:n_subs;
  expect "Arrays.huge" ~size:40_000 ~blocks:n_huge
