(* SPDX-License-Identifier: BSD-2-Clause *)
(* Young blocks that are allocated at known moments, none of them collected.

   Commands on stdin, one a line; the answer is one line on stdout, for which the program
   enters a blocking section:
     some N    N blocks of 7 fields: "some N", after N lines "before NS", the record clock
               before each block, and a line "later NS", the clock after a blocking section
     spin N    N blocks of 7 fields, then "spinning N" without a blocking section, and from
               there on no allocation, no collection and no blocking section
     turns N   two threads of this domain, which take turns without a blocking section: N blocks
               of 7 fields by the one, N of 9 by the other: "turns TID7 TID9"
     stop      the end (so is the end of stdin)
   Each begins with a minor collection, so that whoever has attached is noticed.
   First line: "ready PID". *)

external write_raw : string -> unit = "test_write_raw" [@@noalloc]

let[@inline never] seven i = (i, i, i, i, i, i, i)
let[@inline never] nine i = (i, i, i, i, i, i, i, i, i)

let some n =
  let before = Array.make n 0 in
  for i = 0 to n - 1 do
    before.(i) <- Harness.now_ns ();
    ignore (Sys.opaque_identity (seven i))
  done;
  Array.iter (Printf.printf "before %d\n%!") before;
  Printf.printf "later %d\nsome %d\n%!" (Harness.now_ns ()) n

let spin n =
  let text = Printf.sprintf "spinning %d\n" n in
  for i = 1 to n do
    ignore (Sys.opaque_identity (seven i))
  done;
  write_raw text;
  while true do
    ignore (Sys.opaque_identity n)
  done

let turns n =
  let work alloc () =
    for i = 1 to n do
      ignore (Sys.opaque_identity (alloc i));
      if i land 15 = 0 then Thread.yield ()
    done
  in
  let tid = ref 0 in
  let other =
    Thread.create
      (fun () ->
        tid := Harness.gettid ();
        work (fun i -> ignore (Sys.opaque_identity (nine i))) ())
      ()
  in
  work (fun i -> ignore (Sys.opaque_identity (seven i))) ();
  Thread.join other;
  Printf.printf "turns %d %d\n%!" (Harness.gettid ()) !tid

let rec commands () =
  match String.split_on_char ' ' (input_line stdin) with
  | exception End_of_file -> ()
  | [ command; n ] ->
      let n = int_of_string n in
      Gc.minor ();
      (match command with
      | "some" -> some n
      | "spin" -> spin n
      | "turns" -> turns n
      | _ -> failwith "no such command");
      commands ()
  | _ -> ()

let () =
  Printf.printf "ready %d\n%!" (Unix.getpid ());
  commands ()
