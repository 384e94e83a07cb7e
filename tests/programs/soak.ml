(* SPDX-License-Identifier: BSD-2-Clause *)
(* Everything at once and without end, with little that lives: what heapsonde keeps of this
   program must not grow.

   Two domains, 0 and 1, do the same round again and again until a line comes on stdin:
   each spawns a domain, works while that works, and joins it; so four at most are at work. A
   round has effects (continuations that are resumed, resumed by another domain, discontinued
   or dropped), threads, small and large blocks, memory outside of the heap, values that
   outlive their domain, finalisers, and now and then a major slice, a full major collection
   or a compaction. What the rounds do does not depend on time, but for how many they are.

   First, domain 0 spawns --domains N domains (2200), one after the other, that do nothing: enough to
   fill heapsonde's own table of domains that have ended.

   Lines on stdout, besides those of harness.ml:
     primed
       that has been done
     ended DOMAIN MINOR PROMOTED MAJOR
       the counters of a domain just before it ended, by Gc.counters
     at_end FUNCTION dead|alive
       what has become of the blocks allocated at FUNCTION
     rounds N *)

open Effect
open Effect.Deep

type _ Effect.t += Ask : int -> int t | Leave : unit t

let[@inline never] pairs i = (i, i + 1)
let[@inline never] arrays i = Array.make 400 i
let[@inline never] texts i = Sys.opaque_identity (Bytes.make (8 + (i land 255)) 'x')
let[@inline never] outlives i = [| i; i; i |]
let[@inline never] held i = Obj.repr [| i; i; i |]
let[@inline never] finalised i = Array.make 40 i
let repeat n f = for i = 1 to n do ignore (Sys.opaque_identity (f i)) done
let lock = Mutex.create ()

(* ---- effects ------------------------------------------------------------------- *)

let rec ask n acc = if n = 0 then acc else ask (n - 1) (acc + perform (Ask n))

let asked n =
  match ask n 0 with
  | sum -> sum
  | effect Ask i, k ->
      ignore (Sys.opaque_identity (pairs i));
      continue k i

(* A computation that has stopped in the middle. *)
type computation = Result of int | Stopped of (unit, computation) continuation

let stopped n =
  match perform Leave; ask n 0 with
  | sum -> Result sum
  | effect Leave, k -> Stopped k

let resumed i = function
  | Result _ as r -> r
  | Stopped k -> (
      match continue k () with
      | r -> r
      | effect Ask j, k -> continue k (i + j))

let discontinued = function
  | Result _ -> ()
  | Stopped k -> ( try ignore (discontinue k Exit) with Exit -> ())

let effects i =
  ignore (asked 200);
  ignore (resumed i (stopped 50));
  discontinued (stopped 50);
  (* Its stack stays behind: nobody may do this often. *)
  if i land 15 = 0 then ignore (Sys.opaque_identity (stopped 1))

(* ---- a round --------------------------------------------------------------------- *)

(* Bounded: an old value goes when a new one comes, in whichever domain. *)
let kept = Array.make 64 [||]
let finalisers = Atomic.make 0

let keep i =
  for j = 0 to 7 do
    let slot = ((8 * i) + j) land 63 in
    let v = outlives j in
    Mutex.protect lock (fun () -> kept.(slot) <- v)
  done

let outside () =
  Bigarray.Array1.fill (Bigarray.Array1.create Bigarray.char Bigarray.c_layout 4000) ' '

let work i =
  repeat 3000 pairs;
  repeat 12 arrays;
  repeat 60 texts;
  effects i;
  outside ();
  keep i;
  ignore (Sys.opaque_identity (Marshal.from_string (Marshal.to_string (1, [ i; i ]) []) 0 : int * int list));
  let r = finalised i in
  Gc.finalise (fun _ -> Atomic.incr finalisers) r

type report = {
  domain : int;
  counters : float * float * float;
  unfinished : computation;
}

let child i () =
  work i;
  if i land 3 = 0 then Thread.join (Thread.create (fun () -> work (i + 1)) ());
  let unfinished = stopped 20 in
  Gc.minor ();
  { domain = (Domain.self () :> int); counters = Gc.counters (); unfinished }

(* What now and then is to be done, by the number of the round. *)
let collect i =
  if i mod 4 = 0 then ignore (Gc.major_slice 0);
  if i mod 32 = 7 then Gc.full_major ();
  if i mod 128 = 99 then Gc.compact ()

let print_ended { domain; counters = minor, promoted, major; _ } =
  Mutex.protect lock (fun () ->
      Printf.printf "ended\t%d\t%.0f\t%.0f\t%.0f\n%!" domain minor promoted major)

let round i =
  let d = Domain.spawn (child i) in
  work i;
  collect i;
  let report = Domain.join d in
  ignore (resumed i report.unfinished);
  print_ended report

(* ---- all of them -------------------------------------------------------------------- *)

let ends = Atomic.make false

let rec rounds pause i =
  if Atomic.get ends then i
  else begin
    round i;
    Unix.sleepf pause;
    rounds pause (i + 1)
  end

let wait_for_the_end () =
  Harness.wait_for_line ();
  Atomic.set ends true

let prime () =
  for _ = 1 to Harness.int_option "--domains" 2200 do
    Domain.join (Domain.spawn (fun () -> ignore (Sys.opaque_identity (pairs 1))))
  done;
  Printf.printf "primed\n%!"

let always = ref []
let keep_always () = always := List.init 20_000 held :: !always

let gate = Mutex.create ()

let second pause =
  (* Until domain 0 has been told to begin, so that profiles can tell the two apart. *)
  Mutex.protect gate ignore;
  rounds pause 1

let run pause domain_1 =
  Mutex.unlock gate;
  prime ();
  keep_always ();
  let reader = Thread.create wait_for_the_end () in
  let n = rounds pause 1 in
  Thread.join reader;
  let n' = Domain.join domain_1 in
  Array.fill kept 0 (Array.length kept) [||];
  Gc.full_major ();
  Gc.full_major ();
  Printf.printf "rounds\t%d\n" (n + n');
  List.iter
    (Printf.printf "at_end\tSoak.%s\tdead\n")
    [ "pairs"; "arrays"; "texts"; "outlives"; "finalised" ];
  print_string "at_end\tSoak.held\talive\n"

let () =
  (* Milliseconds between rounds. *)
  let pause = float_of_int (Harness.int_option "--pause" 40) /. 1000. in
  Mutex.lock gate;
  let domain_1 = Domain.spawn (fun () -> second pause) in
  Harness.run ~domains:64 (fun () -> run pause domain_1);
  ignore (Sys.opaque_identity !always)
