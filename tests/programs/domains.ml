(* SPDX-License-Identifier: BSD-2-Clause *)
(* --domains N domains (3) allocate at the same time, domain i of them i times
   WORDS words of pairs (2 fields, 3 words) in the minor heap and as much in arrays
   of 400 fields (401 words) in the major heap. The main domain does the same once. *)

let[@inline never] pairs i = (i, i + 1)
let[@inline never] arrays i = Array.make 400 i

type report = { domain : int; thread : int; n_pairs : int; n_arrays : int }

let work times () =
  let n_pairs = times * Harness.blocks_of 3 in
  let n_arrays = times * Harness.blocks_of 401 in
  for i = 1 to n_pairs do
    ignore (Sys.opaque_identity (pairs i))
  done;
  for i = 1 to n_arrays do
    ignore (Sys.opaque_identity (arrays i))
  done;
  { domain = (Domain.self () :> int); thread = Harness.gettid (); n_pairs;
    n_arrays }

let () =
  let n = Harness.int_option "--domains" 3 in
  Harness.run ~domains:n @@ fun () ->
  let others = List.init n (fun i -> Domain.spawn (work (i + 1))) in
  let own = work 1 () in
  let reports = own :: List.map Domain.join others in
  List.iter
    (fun r ->
      let domain = string_of_int r.domain in
      let thread = string_of_int r.thread in
      let expect = Harness.expect ~domain ~thread in
      expect "alloc_minor" "Domains.pairs" ~size:2 ~blocks:r.n_pairs;
      expect "alloc_major" "Domains.arrays" ~size:400 ~blocks:r.n_arrays)
    reports
