(* SPDX-License-Identifier: BSD-2-Clause *)
(* Values read back by Marshal.from_string, source marshal. Each block of the value
   is a block of its own, whatever the runtime does to allocate them all at once.

     young   a list of 10 integers: 10 blocks of 2 fields (3 words). Up to 256
             words in all, so in the minor heap
     old     a list of 400 pairs: 800 blocks of 2 fields, 2400 words in all: in
             the major heap *)

let little = Marshal.to_string (List.init 10 Fun.id) []
let much = Marshal.to_string (List.init 400 (fun i -> (i, i))) []

let[@inline never] young () : int list =
  let v = Marshal.from_string little 0 in
  Sys.opaque_identity v

let[@inline never] old () : (int * int) list =
  let v = Marshal.from_string much 0 in
  Sys.opaque_identity v

let () =
  Harness.run @@ fun () ->
  let n_young = Harness.blocks_of 30 in
  let n_old = Harness.blocks_of 2400 in
  for _ = 1 to n_young do
    ignore (young ())
  done;
  for _ = 1 to n_old do
    ignore (old ())
  done;
  let expect =
    Harness.expect ~source:"marshal" ~where:"any" ~size:2
  in
  expect "alloc_minor" "Marshals.young" ~blocks:(n_young * 10);
  expect "alloc_major" "Marshals.old" ~blocks:(n_old * 800)
