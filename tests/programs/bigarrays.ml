(* SPDX-License-Identifier: BSD-2-Clause *)
(* Bigarrays. Each gives two samples that do not know of each other: the custom
   block itself (source normal: 6 fields, 7 words) and its memory outside the heap
   (source custom: as many words as it has, no header).

     small    1000 bytes: 125 words outside; the block is in the minor heap
     large    100,000 bytes: 12,500 words outside, more than a minor custom block
              may have (custom_minor_max_size, 70,000): block in the major heap *)

let one_kilo = [| 1000 |]
let hundred_kilos = [| 100_000 |]

(* Genarray.create is the primitive itself: no other block is allocated. *)
let[@inline never] small () =
  Bigarray.Genarray.create Bigarray.char Bigarray.c_layout one_kilo

let[@inline never] large () =
  Bigarray.Genarray.create Bigarray.char Bigarray.c_layout hundred_kilos

let () =
  Harness.run @@ fun () ->
  let n_small = Harness.blocks_of 125 in
  let n_large = Harness.blocks_of 12_500 in
  for _ = 1 to n_small do
    ignore (Sys.opaque_identity (small ()))
  done;
  for _ = 1 to n_large do
    ignore (Sys.opaque_identity (large ()))
  done;
  let custom kind fn n size =
    Harness.expect kind fn ~source:"custom" ~size ~blocks:n
  in
  custom "alloc_minor" "Bigarrays.small" n_small 125;
  custom "alloc_major" "Bigarrays.large" n_large 12_500;
  Harness.expect "alloc_minor" "Bigarrays.small" ~size:6 ~blocks:n_small;
  Harness.expect "alloc_major" "Bigarrays.large" ~size:6 ~blocks:n_large
