(* SPDX-License-Identifier: BSD-2-Clause *)
(* Works until it is told to stop, with --domains N domains (1) in all: each builds
   lists (`churn`, 1000 blocks of 2 fields), sums them up and keeps the last few,
   which are promoted, and now and then an array of 500 fields (`chunks`).

   Commands on stdin, one a line; the answer is one line on stdout:
     stop    finish (so does the end of stdin, and SIGTERM)
     spawn   one more domain; answers "spawned ID"
     exec    replace the program by sleep 1 (only with one domain and no spawn)
     crash   die of SIGSEGV
   First line: "ready PID ID…", the domains' ids. At the end: "ok LISTS" if all sums
   were right, else "wrong", then quick_stat as in harness.ml. *)

external crash : unit -> unit = "test_crash"

let rec churn acc i = if i = 0 then acc else churn (i :: acc) (i - 1)
let[@inline never] chunks i = Array.make 500 i
let stop = Atomic.make false
let right = 1000 * 1001 / 2

(* Without --flat-out each works for 4 ms and sleeps for 8, which leaves processors to whoever is tested. *)
let flat_out = Harness.flag "--flat-out"

let work () =
  let kept = Array.make 50 [] in
  let big = Array.make 20 [||] in
  let n = ref 0 in
  let all_right = ref true in
  let from_ns = ref (Harness.now_ns ()) in
  while not (Atomic.get stop) do
    if Harness.now_ns () - !from_ns > 4_000_000 && not flat_out then begin
      (* A constant, so nothing is allocated for it. *)
      Unix.sleepf 0.008;
      from_ns := Harness.now_ns ()
    end;
    let l = churn [] 1000 in
    if List.fold_left ( + ) 0 l <> right then all_right := false;
    incr n;
    if !n mod 20 = 0 then kept.(!n / 20 mod 50) <- l;
    if !n mod 40 = 0 then big.(!n / 40 mod 20) <- chunks !n
  done;
  if List.exists (fun l -> l <> [] && List.fold_left ( + ) 0 l <> right)
       (Array.to_list kept)
  then all_right := false;
  (!n, !all_right)

let spawned = ref []

let spawn () =
  let d = Domain.spawn work in
  spawned := d :: !spawned;
  (Domain.get_id d :> int)

let rec commands () =
  match input_line stdin with
  | exception End_of_file -> Atomic.set stop true
  | "stop" -> Atomic.set stop true
  | "crash" -> crash ()
  | "exec" -> Unix.execv "/bin/sleep" [| "sleep"; "1" |]
  | "spawn" ->
      Printf.printf "spawned %d\n%!" (spawn ());
      commands ()
  | _ -> commands ()

let () =
  Sys.set_signal Sys.sigterm
    (Sys.Signal_handle (fun _ -> Atomic.set stop true));
  let ids = List.init (Harness.int_option "--domains" 1 - 1) (fun _ -> spawn ()) in
  Printf.printf "ready %d 0%s\n%!" (Unix.getpid ())
    (String.concat "" (List.map (Printf.sprintf " %d") ids));
  ignore (Thread.create commands ());
  let own = work () in
  let results = own :: List.map Domain.join !spawned in
  if List.for_all snd results then
    Printf.printf "ok %d\n" (List.fold_left (fun a (n, _) -> a + n) 0 results)
  else print_endline "wrong";
  Harness.print_counters (List.length !spawned)
