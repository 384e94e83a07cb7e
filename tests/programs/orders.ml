(* SPDX-License-Identifier: BSD-2-Clause *)
(* --domains N domains (1) in all, each of which does nothing but what it is told to.

   Orders on stdin, one a line; D is a domain's id. The answer to the Kth one, when it
   is carried out, is the line "done K" on stdout, or "done K WORD":
     alloc D N    allocate N words in pairs (`pairs`, 2 fields, 3 words)
     large D N    allocate N words in arrays (`arrays`, 400 fields, 401 words)
     steady D N   allocate N words in pairs each millisecond from now on; 0: no more
     keep D N     allocate a list of N/3 cells (`cells`, 2 fields, 3 words) and keep it
     thread D N   the same in a thread of its own, which ends; answers its OS thread
     drop         keep nothing any more
     spawn D      D spawns a domain; answers its id
     end D        end domain D, not 0
     minor D      a minor collection, which D asks for
     major        a full major collection
     cycles N     N full major collections; answers "CYCLES:FROM:UNTIL", how many major
                  cycles have ended between two moments (CLOCK_MONOTONIC ns), by Gc.quick_stat
     stop         end (so does the end of stdin)
   First line: "ready PID ID…", the domains' ids. At the end: quick_stat as in
   harness.ml. *)

let[@inline never] pairs i = (i, i + 1)
let[@inline never] arrays i = Array.make 400 i
let rec cells acc n = if n = 0 then acc else cells (n :: acc) (n - 1)

let repeat n f =
  for i = 1 to n do
    ignore (Sys.opaque_identity (f i))
  done

let kept = ref []
let kept_lock = Mutex.create ()

let keep words =
  let l = cells [] (words / 3) in
  Mutex.protect kept_lock (fun () -> kept := l :: !kept)

(* ---- a domain ---------------------------------------------------------------- *)

type place = {
  lock : Mutex.t;
  changed : Condition.t;
  tasks : (place -> unit) Queue.t;
  mutable steady : int;
  mutable ends : bool;
}

let place () =
  { lock = Mutex.create (); changed = Condition.create (); tasks = Queue.create ();
    steady = 0; ends = false }

let post p task =
  Mutex.protect p.lock (fun () ->
      Queue.add task p.tasks;
      Condition.signal p.changed)

let next p =
  Mutex.protect p.lock (fun () ->
      while Queue.is_empty p.tasks && p.steady = 0 do
        Condition.wait p.changed p.lock
      done;
      Queue.take_opt p.tasks)

let rec serve p =
  (match next p with
  | Some task -> task p
  | None ->
      repeat (p.steady / 3) pairs;
      Unix.sleepf 0.001);
  if not p.ends then serve p

let domains : (int, unit Domain.t option * place) Hashtbl.t = Hashtbl.create 8
let domains_lock = Mutex.create ()
let spawned = ref 0

let spawn () =
  let p = place () in
  let d = Domain.spawn (fun () -> serve p) in
  let id = (Domain.get_id d :> int) in
  Mutex.protect domains_lock (fun () ->
      Hashtbl.replace domains id (Some d, p);
      incr spawned);
  id

(* ---- orders -------------------------------------------------------------------- *)

let done_ number word = Printf.printf "done %d%s\n%!" number word

let in_thread words =
  let tid = ref 0 in
  Thread.join (Thread.create (fun () -> tid := Harness.gettid (); keep words) ());
  !tid

let finish id =
  match Hashtbl.find domains id with
  | Some d, p ->
      post p (fun p -> p.ends <- true);
      Domain.join d;
      Hashtbl.remove domains id
  | None, p -> post p (fun p -> p.ends <- true)

(* The cycles so far and a moment at which that was so. *)
let rec cycles_now () =
  let n = (Gc.quick_stat ()).major_collections in
  let time = Harness.now_ns () in
  if (Gc.quick_stat ()).major_collections = n then (n, time) else cycles_now ()

let cycles n =
  let before, from = cycles_now () in
  for _ = 1 to n do Gc.full_major () done;
  let after, until = cycles_now () in
  Printf.sprintf " %d:%d:%d" (after - before) from until

let obey number line =
  let in_domain id f =
    let _, p = Mutex.protect domains_lock (fun () -> Hashtbl.find domains (int_of_string id)) in
    post p (fun p -> done_ number (f p))
  in
  let silent f p = f p; "" in
  match String.split_on_char ' ' line with
  | [ "alloc"; d; n ] ->
      in_domain d (silent (fun _ -> repeat (int_of_string n / 3) pairs))
  | [ "large"; d; n ] ->
      in_domain d (silent (fun _ -> repeat (int_of_string n / 401) arrays))
  | [ "steady"; d; n ] ->
      in_domain d (silent (fun p -> p.steady <- int_of_string n))
  | [ "keep"; d; n ] -> in_domain d (silent (fun _ -> keep (int_of_string n)))
  | [ "thread"; d; n ] ->
      in_domain d (fun _ -> Printf.sprintf " %d" (in_thread (int_of_string n)))
  | [ "drop" ] ->
      Mutex.protect kept_lock (fun () -> kept := []);
      done_ number ""
  | [ "spawn"; d ] -> in_domain d (fun _ -> Printf.sprintf " %d" (spawn ()))
  | [ "end"; d ] ->
      finish (int_of_string d);
      done_ number ""
  | [ "minor"; d ] -> in_domain d (silent (fun _ -> Gc.minor ()))
  | [ "major" ] -> in_domain "0" (silent (fun _ -> Gc.full_major ()))
  | [ "cycles"; n ] -> in_domain "0" (fun _ -> cycles (int_of_string n))
  | _ -> failwith line

let rec orders number =
  match input_line stdin with
  | exception End_of_file -> ()
  | "stop" -> ()
  | line ->
      obey number line;
      orders (number + 1)

let () =
  let own = place () in
  Hashtbl.replace domains 0 (None, own);
  let ids = List.init (Harness.int_option "--domains" 1 - 1) (fun _ -> spawn ()) in
  Printf.printf "ready %d 0%s\n%!" (Unix.getpid ())
    (String.concat "" (List.map (Printf.sprintf " %d") ids));
  let reader =
    Thread.create
      (fun () ->
        orders 1;
        List.iter finish (List.filter (( <> ) 0) (List.of_seq (Hashtbl.to_seq_keys domains)));
        finish 0)
      ()
  in
  serve own;
  Thread.join reader;
  Harness.print_counters (min !spawned 64)
