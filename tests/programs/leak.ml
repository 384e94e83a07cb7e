(* SPDX-License-Identifier: BSD-2-Clause *)
(* One site that leaks and ten that churn, in rounds of equal work, each of which
   ends with full collections:

     leak       records of 7 fields (8 words), kept for ever
     churn0 …   records of 7 fields, each kept until as many younger ones of its
     churn9     site are there as four rounds make
     table      records of 7 fields, made in the first round and kept for ever

   --double   churn3 makes twice as many
   --pace MS  a rest of so many ms after each round: growth is told from what had survived half the
              time before, which is to fall within the rounds though the program is held up
   --shrink   at the end what leaked is let go, and collected

   Lines on stdout besides those of harness.ml:

     held FUNCTION WORDS   words that FUNCTION allocated and that are reachable at
                           the end (of the rounds, with --shrink)
     shrinks TIME          CLOCK_MONOTONIC, ns: all rounds are done and nothing has
                           been let go *)

type r = { a : int; b : int; c : int; d : int; e : int; f : int; g : int }

let rounds = 40
let pace = Harness.int_option "--pace" 0
let block_words = 8
let nothing = Obj.repr 0

let[@inline never] leak i = { a = i; b = i; c = i; d = i; e = i; f = i; g = i }
let[@inline never] table i = { a = i; b = i; c = i; d = i; e = i; f = i; g = i }
let[@inline never] churn0 i = { a = i; b = i; c = i; d = i; e = i; f = i; g = i }
let[@inline never] churn1 i = { a = i; b = i; c = i; d = i; e = i; f = i; g = i }
let[@inline never] churn2 i = { a = i; b = i; c = i; d = i; e = i; f = i; g = i }
let[@inline never] churn3 i = { a = i; b = i; c = i; d = i; e = i; f = i; g = i }
let[@inline never] churn4 i = { a = i; b = i; c = i; d = i; e = i; f = i; g = i }
let[@inline never] churn5 i = { a = i; b = i; c = i; d = i; e = i; f = i; g = i }
let[@inline never] churn6 i = { a = i; b = i; c = i; d = i; e = i; f = i; g = i }
let[@inline never] churn7 i = { a = i; b = i; c = i; d = i; e = i; f = i; g = i }
let[@inline never] churn8 i = { a = i; b = i; c = i; d = i; e = i; f = i; g = i }
let[@inline never] churn9 i = { a = i; b = i; c = i; d = i; e = i; f = i; g = i }

let churns =
  [| churn0; churn1; churn2; churn3; churn4; churn5; churn6; churn7; churn8;
     churn9 |]

let n_round = Harness.blocks_of (block_words * rounds)
let n_of site = if site = 3 && Harness.flag "--double" then 2 * n_round else n_round
let kept = Array.make (rounds * n_round) nothing
let tables = Array.make n_round nothing

(* Each in a ring of four rounds. *)
let rings = Array.init 10 (fun site -> Array.make (4 * n_of site) nothing)

let round r =
  for i = 0 to n_round - 1 do
    kept.((r * n_round) + i) <- Obj.repr (leak i)
  done;
  Array.iteri
    (fun site churn ->
      let n = n_of site and ring = rings.(site) in
      for i = 0 to n - 1 do
        ring.((r mod 4 * n) + i) <- Obj.repr (churn i)
      done)
    churns;
  if r = 0 then
    for i = 0 to n_round - 1 do
      tables.(i) <- Obj.repr (table i)
    done;
  Gc.full_major ();
  if pace > 0 then Unix.sleepf (float_of_int pace /. 1000.)

let shrunk = ref 0

let () =
  Harness.run (fun () ->
      for r = 0 to rounds - 1 do
        round r
      done;
      if Harness.flag "--shrink" then begin
        shrunk := Harness.now_ns ();
        Array.fill kept 0 (Array.length kept) nothing;
        Gc.full_major ()
      end);
  let expect fn blocks =
    Harness.expect "alloc_minor" ("Leak." ^ fn) ~size:7 ~blocks
  in
  let held fn blocks = Printf.printf "held\tLeak.%s\t%d\n" fn (blocks * block_words) in
  expect "leak" (rounds * n_round);
  held "leak" (rounds * n_round);
  expect "table" n_round;
  held "table" n_round;
  Array.iteri
    (fun site _ ->
      let name = "churn" ^ string_of_int site in
      expect name (rounds * n_of site);
      held name (4 * n_of site))
    churns;
  if Harness.flag "--shrink" then Printf.printf "shrinks\t%d\n" !shrunk;
  ignore (Sys.opaque_identity (kept, tables, rings))
