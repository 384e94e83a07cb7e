(* What test_symbolize.c compares with: backtrace slots by number, and what
   Printexc says about each, one line a slot and one line a position:

     slot ADDRESS
     loc NAME<tab>FILE<tab>LINE<tab>END_LINE<tab>START<tab>END<tab>END_OFFSET<tab>INLINED *)

let dump_position s =
  let name = Option.value (Printexc.Slot.name s) ~default:"-" in
  match Printexc.Slot.location s with
  | None -> ()
  | Some l ->
    Printf.printf "loc %s\t%s\t%d\t%d\t%d\t%d\t%d\t%b\n" name l.filename
      l.line_number l.end_line l.start_char l.end_col l.end_char (Printexc.Slot.is_inline s)

(* An entry is the slot's address, shifted right by one. *)
let dump_entry e =
  Printf.printf "slot %x\n" ((e : Printexc.raw_backtrace_entry :> int) * 2);
  Option.iter (Array.iter dump_position)
    (Printexc.backtrace_slots_of_raw_entry e)

let dump bt = Array.iter dump_entry (Printexc.raw_backtrace_entries bt)

(* Say that all has been said, wait to be told to go on. *)
let pause () =
  print_endline "end";
  try ignore (read_line ()) with End_of_file -> exit 0
