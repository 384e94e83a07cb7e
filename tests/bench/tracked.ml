(* SPDX-License-Identifier: BSD-2-Clause *)
(* Blocks whose lifetimes are followed: with everything sampled (rate 1), as many as are asked for, and
   few others.

   Commands on stdin, one a line; the answer is one line on stdout:
     keep N          N blocks of one field, in the major heap, are reachable from now on, and no others
     cycles K        K major cycles end; answers "cycles N", how many did
     young N FATE    N blocks of one field in the minor heap, of which all live on (FATE "live") or none
                     ("die") through one minor collection
     stop            the end
   "ok" is the answer if no other is given. First line: "ready PID". *)

let kept = ref [||]

(* Blocks of one field in one array: the array is one block more, however many there are. *)
let make n = Array.init n (fun i -> Sys.opaque_identity (ref i))

let cycles k =
  let before = (Gc.quick_stat ()).major_collections in
  for _ = 1 to k do
    Gc.major ()
  done;
  (Gc.quick_stat ()).major_collections - before

let young n lives =
  (* Room for the references is there before, so that the collection has nothing else to do. *)
  let places = Array.make (max n 1) (ref 0) in
  Gc.minor ();
  for i = 0 to n - 1 do
    let block = Sys.opaque_identity (ref i) in
    if lives then Array.unsafe_set places i block
  done;
  Gc.minor ();
  ignore (Sys.opaque_identity places)

let rec commands () =
  let answer =
    match String.split_on_char ' ' (input_line stdin) with
    | exception End_of_file -> None
    | [ "keep"; n ] ->
        kept := [||];
        Gc.full_major ();
        kept := make (int_of_string n);
        Gc.full_major ();
        Some "ok"
    | [ "cycles"; k ] -> Some (Printf.sprintf "cycles %d" (cycles (int_of_string k)))
    | [ "young"; n; fate ] ->
        young (int_of_string n) (fate = "live");
        Some "ok"
    | _ -> None
  in
  Option.iter
    (fun text ->
      Printf.printf "%s\n%!" text;
      commands ())
    answer

let () =
  Printf.printf "ready %d\n%!" (Unix.getpid ());
  commands ()
