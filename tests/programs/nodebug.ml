(* SPDX-License-Identifier: BSD-2-Clause *)
(* Compiled without -g: there are no lines, only the names of the symbols.

     alloc_site   tuples of 4 fields (5 words), minor heap
     array_site   arrays of 600 fields (601 words), major heap *)

let[@inline never] alloc_site i = (i, i, i, i)
let[@inline never] array_site i = Array.make 600 i

let () =
  Harness.run @@ fun () ->
  let tuples = Harness.blocks_of 5 in
  let arrays = Harness.blocks_of 601 in
  for i = 1 to tuples do
    ignore (Sys.opaque_identity (alloc_site i))
  done;
  for i = 1 to arrays do
    ignore (Sys.opaque_identity (array_site i))
  done;
  Harness.expect "alloc_minor" "alloc_site" ~size:4 ~blocks:tuples;
  Harness.expect "alloc_major" "array_site" ~size:600 ~blocks:arrays
