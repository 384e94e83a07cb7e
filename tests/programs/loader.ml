(* SPDX-License-Identifier: BSD-2-Clause *)
(* Loads plugged.cmxs, which stands beside the program, with Dynlink, and allocates in
   it: code that was not there when heapsonde attached (with --wait) or the program
   started. *)

let () =
  Harness.run @@ fun () ->
  Dynlink.loadfile
    (Filename.concat (Filename.dirname Sys.executable_name) "plugged.cmxs");
  let blocks = Harness.blocks_of 4 in
  for i = 1 to blocks do
    ignore (Sys.opaque_identity (!Harness.plugged i))
  done;
  Harness.expect "alloc_minor" "Plugged.site" ~line:!Harness.plugged_line ~size:3
    ~blocks
