(* SPDX-License-Identifier: BSD-2-Clause *)
(* Blocks whose fate is known, WORDS of them at each site (here WORDS is a number of
   blocks). Each site is a function whose name says what becomes of its blocks; they
   are blocks of 3 fields (4 words) unless said otherwise.

   The program lets go of blocks in phases and prints, at the end, for each site

     fate FUNCTION SOURCE EVENTS NOT_BEFORE NOT_AFTER BLOCKS

   EVENTS is the whole life of each block, commas between; when it ends with a dealloc,
   that comes between the two times (CLOCK_MONOTONIC ns): the block was let go of
   at the first, and a collection that must find it was over at the second. *)

external address : Obj.t -> int = "test_address" [@@noalloc]

let n = Harness.words

(* ---- the sites ------------------------------------------------------------- *)

let[@inline never] die_young i = Obj.repr (i, i, i)
let[@inline never] die_old i = Obj.repr (i, i, i)
let[@inline never] held i = Obj.repr (i, i, i)
let[@inline never] array_dropped i = Obj.repr (Array.make 300 i)
let[@inline never] array_held i = Obj.repr (Array.make 300 i)

(* Interleaved in the same pools, so that there are holes to compact. *)
let[@inline never] scattered i = Obj.repr (i, i, i)
let[@inline never] compacted i = Obj.repr (i, i, i)
let[@inline never] compacted_held i = Obj.repr (i, i, i)

let bytes = [| 800 |]

(* 6 fields, and 100 words outside the heap. *)
let[@inline never] custom_dropped () =
  Obj.repr (Bigarray.Genarray.create Bigarray.char Bigarray.c_layout bytes)

let[@inline never] custom_held () =
  Obj.repr (Bigarray.Genarray.create Bigarray.char Bigarray.c_layout bytes)

(* Found dead, and brought back to life by its finaliser. *)
let[@inline never] resurrected i = ref (i, i)

(* Only a weak pointer is left. *)
let[@inline never] weak_only i = Obj.repr (i, i, i)

(* Mutually recursive closures are one block; only an inner pointer is kept. *)
let[@inline never] inner_pointer i =
  let rec even x = x = i || odd (x - 1) and odd x = x <> i && even (x - 1) in
  ignore (Sys.opaque_identity (Obj.repr even));
  Obj.repr odd

let little = Marshal.to_string [| 1; 2; 3 |] []

let[@inline never] unmarshalled () : Obj.t =
  let v : int array = Marshal.from_string little 0 in
  Sys.opaque_identity (Obj.repr v)

(* ---- the phases ------------------------------------------------------------ *)

let nothing = Obj.repr 0
let keep () = Array.make n nothing
let drop kept = Array.fill kept 0 n nothing
let now = Harness.now_ns

(* The lines come last: printing allocates and collects. *)
let lines = ref []

let fate ?(source = "normal") ?(blocks = n) name events (from, until) =
  let line () =
    Printf.printf "fate\tLifetimes.%s\t%s\t%s\t%s\t%s\t%d\n" name source events
      from until blocks
  in
  lines := line :: !lines

let never = ("-", "-")

(* Let go, collect with [gc]; the times around it. *)
let between release gc =
  let from = now () in
  release ();
  gc ();
  (string_of_int from, string_of_int (now ()))

let young_phase () =
  let allocate () =
    for i = 1 to n do
      ignore (Sys.opaque_identity (die_young i))
    done
  in
  fate "die_young" "alloc_minor,dealloc_minor" (between allocate Gc.minor)

let fill kept site = Array.iteri (fun i _ -> kept.(i) <- site i) kept

let old_phase always =
  let kept = keep () and arrays = keep () and customs = keep () in
  let read = keep () in
  fill kept die_old;
  fill arrays array_dropped;
  fill customs (fun _ -> custom_dropped ());
  fill read (fun _ -> unmarshalled ());
  List.iter2 fill always
    [ held; array_held; (fun _ -> custom_held ()); inner_pointer ];
  Gc.full_major ();
  let times =
    between (fun () -> List.iter drop [ kept; arrays; customs; read ]) Gc.full_major
  in
  let died = "alloc_minor,promote,dealloc_major" in
  fate "die_old" died times;
  fate "array_dropped" "alloc_major,dealloc_major" times;
  fate "custom_dropped" died times;
  fate "custom_dropped" ~source:"custom" died times;
  fate "unmarshalled" ~source:"marshal" died times;
  fate "held" "alloc_minor,promote" never;
  fate "array_held" "alloc_major" never;
  fate "custom_held" "alloc_minor,promote" never;
  fate "custom_held" ~source:"custom" "alloc_minor,promote" never;
  fate "inner_pointer.even" "alloc_minor,promote" never

let compaction_phase always =
  let holes = keep () and holes' = keep () in
  let stay = keep () in
  for i = 0 to n - 1 do
    holes.(i) <- scattered i;
    stay.(i) <- compacted i;
    holes'.(i) <- scattered i;
    always.(i) <- compacted_held i
  done;
  Gc.minor ();
  let scattered_times =
    between (fun () -> drop holes; drop holes') Gc.full_major
  in
  let addresses () = Array.map address always in
  let before = addresses () in
  Gc.compact ();
  let after = addresses () in
  let moved = ref 0 in
  Array.iteri (fun i a -> if a <> after.(i) then incr moved) before;
  Gc.full_major ();
  Gc.compact ();
  let times = between (fun () -> drop stay) Gc.full_major in
  lines := (fun () -> Printf.printf "moved\t%d\n" !moved) :: !lines;
  let died = "alloc_minor,promote,dealloc_major" in
  fate "scattered" died scattered_times ~blocks:(2 * n);
  fate "compacted" died times;
  fate "compacted_held" "alloc_minor,promote" never

let saved = ref []

let finaliser_phase () =
  let kept = keep () in
  fill kept (fun i ->
      let v = resurrected i in
      Gc.finalise (fun v -> saved := Obj.repr v :: !saved) v;
      Obj.repr v);
  Gc.minor ();
  drop kept;
  Gc.full_major ();
  Gc.full_major ();
  (* A reference (1 field), and the pair in it. *)
  fate "resurrected" "alloc_minor,promote" never ~blocks:(2 * n)

let weak_phase () =
  let kept = keep () in
  let weak = Weak.create n in
  fill kept weak_only;
  Gc.minor ();
  Array.iteri (fun i v -> Weak.set weak i (Some v)) kept;
  Gc.full_major ();
  let times = between (fun () -> drop kept) Gc.full_major in
  fate "weak_only" "alloc_minor,promote,dealloc_major" times;
  ignore (Sys.opaque_identity weak)

let () =
  let always = List.init 5 (fun _ -> keep ()) in
  Harness.run (fun () ->
      young_phase ();
      old_phase (List.tl always);
      compaction_phase (List.hd always);
      finaliser_phase ();
      weak_phase ();
      Gc.full_major ();
      Gc.compact ());
  List.iter (fun line -> line ()) (List.rev !lines);
  Printf.printf "saved\t%d\n" (List.length !saved);
  ignore (Sys.opaque_identity (always, saved))
