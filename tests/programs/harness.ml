(* SPDX-License-Identifier: BSD-2-Clause *)
(* What all test programs share: how they are told what to do, and how they say
   what they allocated.

     PROGRAM [WORDS] [OPTION…]
       WORDS           about how many words to allocate at each site
       --wait          print "ready PID" and wait for a line on stdin before the
                       work, and for another (or the end of stdin) before the end
       --oracle FILE   run Gc.Memprof inside, and write what it tells to FILE as
                       heapsonde would have written it
       --rate R        the oracle's rate (1 by default)
       --exit N        end with this status
     --crash         end by a SIGSEGV
     anything else   is left to the program

   Lines on stdout, fields separated by tabs:

     expect KIND SOURCE WHERE FUNCTION LINE DOMAIN THREAD WORDS BLOCKS SIZE
       the program has allocated BLOCKS blocks of SIZE fields each, WORDS words in
       all, headers included, at FUNCTION. WHERE is "top" if FUNCTION is the innermost frame,
       "any" if it is one of them. "-" for a field that may be anything.
     places N
       N more domains have been spawned, before quick_stat
     quick_stat MINOR PROMOTED MAJOR
       Gc.quick_stat at the end, of all domains that ever were

   A block of size n is n + 1 words. The words of a custom block's outside memory
   have no header. *)

external gettid : unit -> int = "test_gettid" [@@noalloc]
external now_ns : unit -> int = "test_now_ns" [@@noalloc]
external crash : unit -> unit = "test_crash"

let args = List.tl (Array.to_list Sys.argv)
let flag name = List.mem name args

let option name =
  let rec find = function
    | n :: v :: _ when n = name -> Some v
    | _ :: rest -> find rest
    | [] -> None
  in
  find args

let int_option name default =
  match option name with Some v -> int_of_string v | None -> default

let words =
  match args with
  | w :: _ when int_of_string_opt w <> None -> int_of_string w
  | _ -> 100_000

let waits = flag "--wait"

(* Blocks of [block_words] words that make up about [words]. *)
let blocks_of block_words = max 1 (words / block_words)

let expect ?(source = "normal") ?(where = "top") ?(line = "-") ?(domain = "-")
    ?(thread = "-") kind fn ~size ~blocks =
  let words = blocks * if source = "custom" then size else size + 1 in
  Printf.printf "expect\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\n" kind source
    where fn line domain thread words blocks size

(* What plugged.ml gives to loader.ml. *)
let plugged : (int -> Obj.t) ref = ref Obj.repr
let plugged_line = ref "-"

let wait_for_line () = try ignore (input_line stdin) with End_of_file -> ()

(* From OCaml 5.4 on Gc.quick_stat forgets a domain when it ends. Its words stay in its
   place in the runtime, though, and are counted again when another domain has that place,
   the one that became free last being taken first. So [f] is called while [n] more domains
   live: at least as many as ever had a place at the same time. *)
let with_places_taken n f =
  if (Sys.ocaml_release.major, Sys.ocaml_release.minor) < (5, 4) then f ()
  else begin
    let gate = Mutex.create () in
    Mutex.lock gate;
    let pass () = Mutex.lock gate; Mutex.unlock gate in
    let domains = List.init n (fun _ -> Domain.spawn pass) in
    Printf.printf "places\t%d\n" n;
    let result = f () in
    Mutex.unlock gate;
    List.iter Domain.join domains;
    result
  end

(* The line quick_stat. [domains]: at least as many as ever had a place at the same time,
   the first not counted. The counters are as of the last slice and minor collection. *)
let print_counters domains =
  let s =
    with_places_taken domains (fun () ->
        Gc.minor ();
        ignore (Gc.major_slice 1);
        Gc.minor ();
        Gc.quick_stat ())
  in
  Printf.printf "quick_stat\t%.0f\t%.0f\t%.0f\n%!" s.minor_words
    s.promoted_words s.major_words

(* Run [work]; for [domains] see print_counters. The minor collection makes sure that
   whoever has attached by now is noticed before the first block that counts. *)
let run ?(domains = 0) work =
  if waits then begin
    Printf.printf "ready %d\n%!" (Unix.getpid ());
    wait_for_line ()
  end;
  Gc.minor ();
  (match option "--oracle" with
  | None -> work ()
  | Some file ->
      let rate = Option.value (option "--rate") ~default:"1" in
      Oracle.run ~file ~rate:(float_of_string rate) ~gettid ~now_ns work);
  if waits then begin
    print_endline "done";
    wait_for_line ()
  end;
  print_counters domains;
  if flag "--crash" then crash ();
  match int_option "--exit" 0 with 0 -> () | status -> exit status
