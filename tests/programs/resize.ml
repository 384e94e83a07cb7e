(* SPDX-License-Identifier: BSD-2-Clause *)
(* Allocates pairs (2 fields, 3 words) under one size of the minor heap after another,
   from 4 kiWords to 1 MiWords and back, and under several --domains N (2), as each
   change stops all of them. WORDS words in each domain. *)

let[@inline never] pairs i = (i, i + 1)
let sizes = [ 4096; 262_144; 8192; 1_048_576; 16_384; 32_768; 4096 ]

let work resize () =
  let part = Harness.blocks_of (3 * 4 * List.length sizes) in
  for _ = 1 to 4 do
    List.iter
      (fun minor_heap_size ->
        if resize then Gc.set { (Gc.get ()) with minor_heap_size };
        for i = 1 to part do
          ignore (Sys.opaque_identity (pairs i))
        done)
      sizes
  done;
  ((Domain.self () :> int), part * 4 * List.length sizes)

let () =
  let n = Harness.int_option "--domains" 2 in
  Harness.run ~domains:(n - 1) @@ fun () ->
  let others = List.init (n - 1) (fun _ -> Domain.spawn (work false)) in
  let own = work true () in
  List.iter
    (fun (domain, blocks) ->
      Harness.expect "alloc_minor" "Resize.pairs" ~domain:(string_of_int domain)
        ~size:2 ~blocks)
    (own :: List.map Domain.join others)
