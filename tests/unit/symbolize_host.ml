(* Loads code after the symbolizer has looked, for test_symbolize.c. *)

let () =
  Symbolize_dump.pause ();
  Dynlink.loadfile Sys.argv.(1);
  Symbolize_dump.pause ()
