(* Loaded by symbolize_host.ml. *)

let[@inline never] inside x =
  Symbolize_dump.dump (Printexc.get_callstack 100);
  x + 1

let[@inline] wrapped x = inside x + 1

let () = ignore (wrapped 3)
