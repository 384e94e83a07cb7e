(* SPDX-License-Identifier: BSD-2-Clause *)
(* Strings and blocks made by C primitives. A string of n bytes has n / 8 + 1
   fields.

     bytes_small   Bytes.create 20: 3 fields (4 words), minor heap
     bytes_large   Bytes.create 5000: 626 fields (627 words), major heap
     concat        s ^ t of 30 bytes: 4 fields (5 words), in Stdlib.(^)
     c_string      caml_alloc_string 100: 13 fields (14 words)
     c_copy        caml_copy_string of 30 bytes: 4 fields (5 words)
     c_double      caml_copy_double: 1 field (2 words)
     c_small       caml_alloc_small 7: 7 fields (8 words)
     c_alloc       caml_alloc 9: 9 fields (10 words)
     c_alloc_big   caml_alloc 400: 400 fields (401 words), major heap
     c_shr         caml_alloc_shr 5: 5 fields (6 words), major heap *)

external alloc_small : int -> Obj.t = "test_alloc_small"
external alloc : int -> Obj.t = "test_alloc"
external alloc_shr : int -> Obj.t = "test_alloc_shr"
external alloc_string : int -> string = "test_alloc_string"
external copy_string : unit -> string = "test_copy_string"
external copy_double : unit -> float = "test_copy_double"

let[@inline never] bytes_small () = Obj.repr (Bytes.create 20)
let[@inline never] bytes_large () = Obj.repr (Bytes.create 5000)
let[@inline never] c_string () = Obj.repr (alloc_string 100)
let[@inline never] c_copy () = Obj.repr (copy_string ())
let[@inline never] c_double () = Obj.repr (copy_double ())
let[@inline never] c_small () = alloc_small 7
let[@inline never] c_alloc () = alloc 9
let[@inline never] c_alloc_big () = alloc 400
let[@inline never] c_shr () = alloc_shr 5

(* Not a tail call, so that this frame is there. *)
let[@inline never] concat s =
  let t = s ^ "fifteen letters" in
  Sys.opaque_identity (Obj.repr t)

let () =
  Harness.run @@ fun () ->
  let site ?(where = "top") kind name size f =
    let blocks = Harness.blocks_of (size + 1) in
    for _ = 1 to blocks do
      ignore (Sys.opaque_identity (f ()))
    done;
    Harness.expect ~where kind ("Cstrings." ^ name) ~size ~blocks
  in
  let fifteen = Sys.opaque_identity "FIFTEEN LETTERS" in
  site "alloc_minor" "bytes_small" 3 bytes_small;
  site "alloc_major" "bytes_large" 626 bytes_large;
  site "alloc_minor" "concat" 4 ~where:"any" (fun () -> concat fifteen);
  site "alloc_minor" "c_string" 13 c_string;
  site "alloc_minor" "c_copy" 4 c_copy;
  site "alloc_minor" "c_double" 1 c_double;
  site "alloc_minor" "c_small" 7 c_small;
  site "alloc_minor" "c_alloc" 9 c_alloc;
  site "alloc_major" "c_alloc_big" 400 c_alloc_big;
  site "alloc_major" "c_shr" 5 c_shr
