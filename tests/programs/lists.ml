(* SPDX-License-Identifier: BSD-2-Clause *)
(* Small blocks allocated by OCaml code, each in the minor heap:

     conses     lists of 500 integers: 500 blocks of 2 fields (3 words) a list
     pairs      tuples of 2 fields (3 words)
     records    records of 5 fields (6 words)
     closures.add   functions with one free variable: 3 fields (4 words): code,
                arity and environment, the variable *)

type r = { a : int; b : int; c : int; d : int; e : int }

let rec conses acc i = if i = 0 then acc else conses (i :: acc) (i - 1)

let[@inline never] pairs i = (i, i + 1)
let[@inline never] records i = { a = i; b = i; c = i; d = i; e = i }
let[@inline never] closures i =
  let add x = x + i in
  Sys.opaque_identity add

let repeat n f =
  for i = 1 to n do
    ignore (Sys.opaque_identity (f i))
  done

let () =
  Harness.run @@ fun () ->
  let lists = Harness.blocks_of 1500 in
  let n_pairs = Harness.blocks_of 3 in
  let n_records = Harness.blocks_of 6 in
  let n_closures = Harness.blocks_of 4 in
  for _ = 1 to lists do
    ignore (Sys.opaque_identity (conses [] 500))
  done;
  repeat n_pairs pairs;
  repeat n_records records;
  for i = 1 to n_closures do
    ignore (Sys.opaque_identity (Obj.repr (closures i)))
  done;
  let expect = Harness.expect "alloc_minor" in
  expect "Lists.conses" ~size:2 ~blocks:(lists * 500);
  expect "Lists.pairs" ~size:2 ~blocks:n_pairs;
  expect "Lists.records" ~size:5 ~blocks:n_records;
  expect "Lists.closures.add" ~size:3 ~blocks:n_closures
