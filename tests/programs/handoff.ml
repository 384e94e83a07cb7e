(* SPDX-License-Identifier: BSD-2-Clause *)
(* Young blocks that are kept alive by another domain than the one that allocated
   them: at a minor collection it is the other domain that promotes them, maybe
   after the first has finished its own part.

   Each of --domains N producers (2) allocates WORDS blocks (here a number of blocks)
   at `handed` and as many at `handed_dropped` (3 fields, 4 words each) and gives
   them to the main domain through a small ring; it keeps none. It also allocates
   as many at `private` and drops them at once. When the producers have gone, the main
   domain lets go of those of `handed_dropped`. Lines as in lifetimes.ml. *)

let[@inline never] handed i = Obj.repr (i, i, i)
let[@inline never] handed_dropped i = Obj.repr (i, i, i)
let[@inline never] private_ i = Obj.repr (i, i, i)
let nothing = Obj.repr 0
let n = Harness.words
let slots = 32

(* One ring per producer. A slot is written by the producer when it is empty and
   emptied by the consumer. *)
type ring = Obj.t Atomic.t array

let rec put (ring : ring) i v =
  let slot = ring.(i mod slots) in
  if Atomic.get slot == nothing then Atomic.set slot v
  else begin
    Domain.cpu_relax ();
    put ring i v
  end

let produce ring () =
  for i = 0 to n - 1 do
    put ring (2 * i) (handed i);
    ignore (Sys.opaque_identity (private_ i));
    put ring ((2 * i) + 1) (handed_dropped i);
    (* Collections fall while blocks are in flight. *)
    if i land 0xff = 0 then Gc.minor ()
  done;
  (Domain.self () :> int)

let take (ring : ring) i =
  let slot = ring.(i mod slots) in
  let v = Atomic.get slot in
  if v != nothing then Atomic.set slot nothing;
  v

let kept = ref [||]
let line = ref (fun () -> ())

let work () =
  let producers = Harness.int_option "--domains" 2 in
  let ring _ : ring = Array.init slots (fun _ -> Atomic.make nothing) in
  let rings = Array.init producers ring in
  let hold = Array.init producers (fun _ -> Array.make n nothing) in
  let drop = Array.init producers (fun _ -> Array.make n nothing) in
  let taken = Array.make producers 0 in
  let domains = Array.map (fun r -> Domain.spawn (produce r)) rings in
  let left = ref (producers * 2 * n) in
  while !left > 0 do
    for p = 0 to producers - 1 do
      let i = taken.(p) in
      if i < 2 * n then begin
        let v = take rings.(p) i in
        if v != nothing then begin
          (if i land 1 = 0 then hold else drop).(p).(i / 2) <- v;
          taken.(p) <- i + 1;
          decr left
        end
      end
    done;
    Domain.cpu_relax ()
  done;
  let ids = Array.map Domain.join domains in
  Gc.full_major ();
  let from = Harness.now_ns () in
  Array.iter (fun d -> Array.fill d 0 n nothing) drop;
  Gc.full_major ();
  let until = Harness.now_ns () in
  kept := hold;
  let fate name events from until =
    Printf.printf "fate\tHandoff.%s\tnormal\t%s\t%s\t%s\t%d\n" name events from
      until (producers * n)
  in
  line :=
    fun () ->
      fate "handed" "alloc_minor,promote" "-" "-";
      fate "handed_dropped" "alloc_minor,promote,dealloc_major"
        (string_of_int from) (string_of_int until);
      fate "private_" "alloc_minor,dealloc_minor" "0" (string_of_int until);
      Array.iter (Printf.printf "producer\t%d\n") ids

let () =
  Harness.run work;
  !line ();
  ignore (Sys.opaque_identity !kept)
