(* SPDX-License-Identifier: BSD-2-Clause *)
(* Allocates at a given pace, in batches every millisecond: blocks of 7 fields, 8 words each, that die
   at once.

     pace steady BLOCKS_PER_S [DOMAINS]   so many in all, until stdin ends
     pace ramp STEP_MS BLOCKS_PER_S…      one step after the other, in one domain, with pauses of 0.3 s;
                                          prints of each "step WANTED BEGIN END BLOCKS": times in ns of the
                                          monotonic clock, and how many there were, perhaps fewer

   First line on stdout: "ready". ramp waits for a line on stdin then. *)

external now_ns : unit -> int = "bench_now_ns" [@@noalloc]

let[@inline never] block i = (i, i, i, i, i, i, i)

(* Until [ended ()], [per_s] blocks each second; returns how many there were. What a late wake-up has
   missed is made up for, but never more than 20 ms of it. *)
let run per_s ended =
  let begin_ns = now_ns () and most = max 1 (per_s / 50) in
  let given = ref 0 (* up to now, with what will not be made up for *) and total = ref 0 in
  while not (ended ()) do
    let due = per_s * ((now_ns () - begin_ns) / 1000) / 1_000_000 in
    let n = min (due - !given) most in
    if n <= 0 then Unix.sleepf 0.001
    else begin
      for i = 1 to n do
        ignore (Sys.opaque_identity (block i))
      done;
      given := due;
      total := !total + n
    end
  done;
  !total

let steady per_s domains =
  let stop = Atomic.make false in
  let work () = ignore (run (per_s / domains) (fun () -> Atomic.get stop)) in
  let others = List.init domains (fun _ -> Domain.spawn work) in
  print_endline "ready";
  (try ignore (input_line stdin) with End_of_file -> ());
  Atomic.set stop true;
  List.iter Domain.join others

(* Losses are told five times a second: time for those of a step to be told before the next one. *)
let pause_s = 0.3

let ramp step_ms rates =
  print_endline "ready";
  ignore (input_line stdin);
  Gc.minor ();
  List.iter
    (fun per_s ->
      let begin_ns = now_ns () in
      let until = begin_ns + (step_ms * 1_000_000) in
      let n = run per_s (fun () -> now_ns () >= until) in
      Printf.printf "step %d %d %d %d\n%!" per_s begin_ns (now_ns ()) n;
      Unix.sleepf pause_s)
    rates

let () =
  match Array.to_list Sys.argv with
  | [ _; "steady"; per_s ] -> steady (int_of_string per_s) 1
  | [ _; "steady"; per_s; domains ] ->
      steady (int_of_string per_s) (int_of_string domains)
  | _ :: "ramp" :: step_ms :: rates ->
      ramp (int_of_string step_ms) (List.map int_of_string rates)
  | _ ->
      prerr_endline "usage: pace steady N [DOMAINS] | ramp STEP_MS N...";
      exit 2
