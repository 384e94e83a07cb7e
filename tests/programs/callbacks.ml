(* SPDX-License-Identifier: BSD-2-Clause *)
(* C calls OCaml, which allocates, with C frames between its own.

     pairs    2 fields (3 words), minor heap, allocated in the callback
     arrays   280 fields (281 words), major heap, in the callback
     deep     5 fields (6 words), in a callback from a callback from C *)

external call : (int -> unit) -> int -> unit = "test_call"
external through : ('a -> 'b) -> 'a -> 'b = "test_call_through"

let[@inline never] pairs i = (i, i + 1)
let[@inline never] arrays i = Array.make 280 i
let[@inline never] deep i = (i, i, i, i, i)

let () =
  Harness.run @@ fun () ->
  let n_pairs = Harness.blocks_of 3 in
  let n_arrays = Harness.blocks_of 281 in
  let n_deep = Harness.blocks_of 6 in
  call (fun i -> ignore (Sys.opaque_identity (pairs i))) n_pairs;
  call (fun i -> ignore (Sys.opaque_identity (arrays i))) n_arrays;
  call (fun i -> ignore (Sys.opaque_identity (through deep i))) n_deep;
  let expect = Harness.expect in
  expect "alloc_minor" "Callbacks.pairs" ~size:2 ~blocks:n_pairs;
  expect "alloc_major" "Callbacks.arrays" ~size:280 ~blocks:n_arrays;
  expect "alloc_minor" "Callbacks.deep" ~size:5 ~blocks:n_deep
