(* SPDX-License-Identifier: BSD-2-Clause *)
(* Young blocks that are reachable from one domain only, and that is not the one that allocated
   them: from its stack, most of them. At a minor collection the allocating domain has finished
   its own part, and its block is not promoted yet. It is not dead.

   In each of --rounds N rounds (30) domain 0 has --domains N producers (1 to 3, in turn), which hand
   over WORDS blocks each (here a number of blocks) in each of these ways; each has its own
   function and its own size:

     by_atomic        through an Atomic that is empty again when the collection comes: on the
                      consumer's stack alone
     by_continuation  on the stack of a fiber, which the consumer resumes after the collection
     by_join          in the result of a domain that has ended
     raced            through an Atomic, and the producer holds it as well: both promote it
     orphaned         promoted by its domain, which ends then
     private_         to nobody: dies young, or soon

   The consumer looks at the contents of each block after the collection, and keeps it. At the end it
   lets go of all of them at once. So who says that one is dead before that is wrong. Lines, besides
   those of lifetimes.ml:

     real FUNCTION DEATHS         by Gc.finalise_last
     memprof FUNCTION BLOCKS FALSE TRUE
       what an in-process Gc.Memprof at rate 1 said: of so many blocks the deaths that did not
       happen (the program held the block), and those that did. Without --own: no such lines *)

open Effect
open Effect.Deep

type _ Effect.t += Leave : unit t

let[@inline never] by_atomic i = Obj.repr (Array.make 101 i)
let[@inline never] by_continuation i = Obj.repr (Array.make 102 i)
let[@inline never] by_join i = Obj.repr (Array.make 103 i)
let[@inline never] raced i = Obj.repr (Array.make 104 i)
let[@inline never] orphaned i = Obj.repr (Array.make 105 i)
let[@inline never] private_ i = Obj.repr (Array.make 106 i)
let names = [| "by_atomic"; "by_continuation"; "by_join"; "raced"; "orphaned"; "private_" |]
let kinds = Array.length names
let kind_of_size size = if size > 100 && size <= 100 + kinds then Some (size - 101) else None
let n = Harness.words
let counter () = Array.init kinds (fun _ -> Atomic.make 0)

(* ---- what is true ------------------------------------------------------------------ *)

let allocated = counter ()
let real = counter ()

(* Does the program hold all that it has been given? *)
let holds = Atomic.make true

(* A new block, whose death will be known. *)
let known kind v =
  Atomic.incr allocated.(kind);
  Gc.finalise_last (fun () -> Atomic.incr real.(kind)) v;
  v

let kept = ref []

let keep i v =
  if (Obj.obj v : int array).(100) <> i then failwith "a block has changed";
  kept := v :: !kept

(* ---- what Gc.Memprof says ------------------------------------------------------------ *)

let told = counter ()
let false_ = counter ()
let true_ = counter ()

let tracker : (int, int) Gc.Memprof.tracker =
  let alloc (a : Gc.Memprof.allocation) =
    let kind = kind_of_size a.size in
    Option.iter (fun k -> Atomic.incr told.(k)) kind;
    kind
  in
  let dead kind =
    Atomic.incr (if Atomic.get holds && kind <> 5 then false_ else true_).(kind)
  in
  { alloc_minor = alloc; alloc_major = alloc; promote = Option.some;
    dealloc_minor = dead; dealloc_major = dead }

let own work =
  if Harness.flag "--own" then begin
    let profile = Gc.Memprof.start ~sampling_rate:1. ~callstack_size:0 tracker in
    work ();
    Gc.Memprof.stop ();
    Gc.Memprof.discard profile
  end
  else work ()

(* ---- the producers -------------------------------------------------------------------- *)

type computation = Value of Obj.t | Stopped of (unit, computation) continuation
type handed = Nothing | Block of Obj.t | Fiber of computation

(* Wait a bit, the [i]th time: where there are fewer processors than domains, the others need them. *)
let relax i = if i land 63 = 63 then Unix.sleepf 0.0001 else Domain.cpu_relax ()

let put slot v =
  Atomic.set slot v;
  let rec wait i = if Atomic.get slot != Nothing then (relax i; wait (i + 1)) in
  wait 0

(* The block is a variable of a computation that has stopped. *)
let suspended i =
  match
    let v = known 1 (by_continuation i) in
    perform Leave;
    v
  with
  | v -> Value v
  | effect Leave, k -> Stopped k

let produce slot () =
  let mine = ref [] in
  for i = 1 to n do
    put slot (Block (known 0 (by_atomic i)));
    ignore (Sys.opaque_identity (known 5 (private_ i)));
    put slot (Fiber (suspended i));
    let v = known 3 (raced i) in
    mine := v :: !mine;
    put slot (Block v)
  done;
  let orphans = List.init n (fun i -> known 4 (orphaned i)) in
  Gc.minor ();
  let results = List.init n (fun i -> known 2 (by_join i)) in
  ignore (Sys.opaque_identity !mine);
  ref (orphans @ results)

(* ---- the consumer ------------------------------------------------------------------------ *)

let take slot =
  let rec wait i =
    match Atomic.get slot with
    | Nothing -> relax i; wait (i + 1)
    | v -> Atomic.set slot Nothing; v
  in
  wait 0

(* So deep a stack, of young blocks, that its owner is the last to finish its part of the
   collection. *)
let rec deep depth =
  if depth = 0 then (Gc.minor (); 0)
  else begin
    let own = ref depth in
    let below = deep (depth - 1) in
    !(Sys.opaque_identity own) + below
  end

let received i = function
  | Block v -> keep i v
  | Fiber (Stopped k) -> (
      match continue k () with Value v -> keep i v | Stopped _ -> assert false)
  | Fiber (Value _) | Nothing -> assert false

(* What has been taken is on the stack and nowhere else. *)
let rec hold i = function
  | [] -> ignore (Sys.opaque_identity (deep 3000))
  | slot :: rest ->
      let v = take slot in
      hold i rest;
      received i v

let round n_producers =
  let slots = List.init n_producers (fun _ -> Atomic.make Nothing) in
  let domains = List.map (fun slot -> Domain.spawn (produce slot)) slots in
  for i = 1 to n do
    for _ = 1 to 3 do hold i slots done
  done;
  List.iter
    (fun d ->
      let results = Domain.join d in
      Gc.minor ();
      List.iteri (fun i v -> keep (i mod n) v) !results;
      (* The runtime remembers results of domains that have ended, until others have their places. *)
      results := [])
    domains

let rounds = Harness.int_option "--rounds" 30
let most = Harness.int_option "--domains" 3
let lines = ref []

let work () =
  for r = 0 to rounds - 1 do round (1 + (r mod most)) done;
  Gc.full_major ();
  let from = Harness.now_ns () in
  Atomic.set holds false;
  kept := [];
  Gc.full_major ();
  Gc.full_major ();
  let until = Harness.now_ns () in
  let line kind =
    let times, events =
      (* Another domain may ask for a collection just when it is in a register. *)
      if kind = 5 then
        (Printf.sprintf "0\t%d" until, "alloc_minor,dealloc_minor|alloc_minor,promote,dealloc_major")
      else (Printf.sprintf "%d\t%d" from until, "alloc_minor,promote,dealloc_major")
    in
    Printf.sprintf "fate\tParallel.%s\tnormal\t%s\t%s\t%d\n" names.(kind) events times
      (Atomic.get allocated.(kind))
    ^ Printf.sprintf "real\tParallel.%s\t%d\n" names.(kind) (Atomic.get real.(kind))
  in
  lines := List.init kinds line

let () =
  Harness.run ~domains:64 (fun () -> own work);
  List.iter print_string !lines;
  if Harness.flag "--own" then
    Array.iteri
      (fun k name ->
        Printf.printf "memprof\tParallel.%s\t%d\t%d\t%d\n" name (Atomic.get told.(k))
          (Atomic.get false_.(k)) (Atomic.get true_.(k)))
      names
