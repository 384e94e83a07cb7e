(* SPDX-License-Identifier: BSD-2-Clause *)
(* Works until it is told to stop, and what comes out does not depend on how long that
   was: round i builds values of which everything is determined by i mod 16, keeps them
   for a while, and takes a digest of their contents. Whoever has harmed one of its blocks, or
   made its collector lose one, is found out by another digest.

     digests KIND
       busy     one domain; values are kept for one round
       domains  three domains at once, and a fourth that is spawned and joined all the time
       threads  four threads of one domain
       lives    one domain; values are kept for 100 rounds, with full major collections
                and compactions between

   First line: "ready PID". "stop" on stdin (or its end) ends it; then come

     digest I HEX
       of each i = 0..15
     rounds N
     wrong
       if two rounds with the same i had different digests *)

let kinds = 16
let stop = Atomic.make false
let wrong = Atomic.make false
let rounds = Atomic.make 0
let none = "" (* compare_and_set looks at which string it is *)
let digests = Array.init kinds (fun _ -> Atomic.make none)

type value = {
  strings : string list;
  table : (string, int) Hashtbl.t;
  floats : float option array;
  customs : int64 list;
  bytes : (char, Bigarray.int8_unsigned_elt, Bigarray.c_layout) Bigarray.Array1.t;
}

let build i =
  let strings = List.init 100 (fun k -> string_of_int (k * (i + 1))) in
  let table = Hashtbl.create 8 in
  List.iteri (fun k s -> Hashtbl.replace table s k) strings;
  let bytes = Bigarray.(Array1.create char c_layout 64) in
  Bigarray.Array1.fill bytes (Char.chr (65 + i));
  { strings; table; bytes;
    floats = Array.init 300 (fun k -> Some (float_of_int (k + i)));
    customs = List.init 20 (fun k -> Int64.of_int (k * i)) }

let digest v =
  let bindings = Hashtbl.fold (fun s k l -> (s, k) :: l) v.table [] in
  let all = (v.strings, List.sort compare bindings, v.floats, v.customs, v.bytes) in
  Digest.to_hex (Digest.string (Marshal.to_string all [ Marshal.No_sharing ]))

let check i v =
  let d = digest v in
  if not (Atomic.compare_and_set digests.(i) none d) && Atomic.get digests.(i) <> d
  then Atomic.set wrong true;
  Atomic.incr rounds

(* Values stay for [keep] rounds; the last ones are looked at as well. *)
let work ?(until = fun _ -> Atomic.get stop) ?(every = fun _ -> ()) keep =
  let kept = Queue.create () in
  let take () = let i, v = Queue.pop kept in check i v in
  let n = ref 0 in
  while !n < kinds || not (until !n) do
    Queue.push (!n mod kinds, build (!n mod kinds)) kept;
    if Queue.length kept > keep then take ();
    incr n;
    every !n
  done;
  while not (Queue.is_empty kept) do take () done

let rec spawner () =
  Domain.join (Domain.spawn (fun () -> work ~until:(fun n -> n >= 50) 5));
  if not (Atomic.get stop) then spawner ()

let collect n =
  if n mod 250 = 0 then Gc.full_major ();
  if n mod 1000 = 0 then Gc.compact ()

let rec commands () =
  match input_line stdin with
  | exception End_of_file -> Atomic.set stop true
  | "stop" -> Atomic.set stop true
  | _ -> commands ()

let () =
  Printf.printf "ready %d\n%!" (Unix.getpid ());
  ignore (Thread.create commands ());
  (match Sys.argv.(1) with
  | "busy" -> work 1
  | "domains" ->
      let others = List.init 2 (fun _ -> Domain.spawn (fun () -> work 20)) in
      let spawns = Domain.spawn spawner in
      work 20;
      List.iter Domain.join (spawns :: others)
  | "threads" ->
      let others = List.init 3 (fun _ -> Thread.create (fun () -> work 20) ()) in
      work 20;
      List.iter Thread.join others
  | "lives" -> work ~every:collect 100
  | kind -> failwith kind);
  Array.iteri (fun i d -> Printf.printf "digest %d %s\n" i (Atomic.get d)) digests;
  Printf.printf "rounds %d\n" (Atomic.get rounds);
  if Atomic.get wrong then print_endline "wrong"
