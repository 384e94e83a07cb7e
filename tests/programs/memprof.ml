(* SPDX-License-Identifier: BSD-2-Clause *)
(* Runs Gc.Memprof itself, at --own-rate R (2^-7), over blocks of recognisable sizes,
   and prints what it was told:

     told SIZE WORDS SAMPLES RATE
     lives ALLOC_MINOR PROMOTE DEALLOC_MINOR ALLOC_MAJOR DEALLOC_MAJOR

   The callbacks allocate, hold on to things and start over: the profile is stopped
   and started again --restarts N times (3). After the last full major collection
   nothing that was sampled is left. With --raising, one in seven callbacks of a
   `young` block raises an exception, and that block is then not allocated at all.

     young  10 fields (11 words), minor heap, of which each 16th is held for a while
     old    410 fields (411 words), major heap *)

let[@inline never] young i = (i, i, i, i, i, i, i, i, i, i)
let[@inline never] old i = Array.make 410 i
let samples_young = ref 0
let samples_old = ref 0
let alloc_minor = ref 0
let alloc_major = ref 0
let promote = ref 0
let dealloc_minor = ref 0
let dealloc_major = ref 0

let raising = Harness.flag "--raising"

(* Called for an allocation that has not taken place yet. *)
let maybe_raise (a : Gc.Memprof.allocation) =
  if raising && a.size = 10 && !samples_young mod 7 = 0 then raise Exit

let tracker : (int list, int list) Gc.Memprof.tracker =
  let count (a : Gc.Memprof.allocation) =
    if a.size = 10 then samples_young := !samples_young + a.n_samples
    else if a.size = 410 then samples_old := !samples_old + a.n_samples;
    (* Allocate, as a real callback does. *)
    Some (List.init 3 (fun i -> a.size + i))
  in
  { alloc_minor =
      (fun a ->
        let tracked = count a in
        maybe_raise a;
        incr alloc_minor;
        tracked);
    alloc_major = (fun a -> incr alloc_major; count a);
    promote = (fun l -> incr promote; Some l);
    dealloc_minor = (fun _ -> incr dealloc_minor);
    dealloc_major = (fun _ -> incr dealloc_major) }

let held = Array.make 1000 None

let allocated_young = ref 0

let work n_young n_old =
  for i = 1 to n_young do
    match young i with
    | v ->
        incr allocated_young;
        if i land 15 = 0 then held.(i / 16 mod 1000) <- Some v
    | exception Exit -> ()
  done;
  for i = 1 to n_old do
    ignore (Sys.opaque_identity (old i))
  done

let () =
  let rate =
    Option.value (Harness.option "--own-rate") ~default:"0.0078125"
    |> float_of_string
  in
  let restarts = Harness.int_option "--restarts" 3 in
  let n_young = Harness.blocks_of (11 * restarts) in
  let n_old = Harness.blocks_of (411 * restarts) in
  Harness.run (fun () ->
      for _ = 1 to restarts do
        let profile = Gc.Memprof.start ~sampling_rate:rate tracker in
        work n_young n_old;
        Gc.Memprof.stop ();
        Array.fill held 0 1000 None;
        Gc.full_major ();
        Gc.Memprof.discard profile
      done);
  let told size words samples =
    Printf.printf "told\t%d\t%d\t%d\t%.17g\n" size words samples rate
  in
  told 10 (restarts * n_young * 11) !samples_young;
  told 410 (restarts * n_old * 411) !samples_old;
  Printf.printf "lives\t%d\t%d\t%d\t%d\t%d\n" !alloc_minor !promote
    !dealloc_minor !alloc_major !dealloc_major;
  Harness.expect "alloc_minor" "Memprof.young" ~size:10 ~blocks:!allocated_young;
  Harness.expect "alloc_major" "Memprof.old" ~size:410
    ~blocks:(restarts * n_old)
