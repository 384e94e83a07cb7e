(* SPDX-License-Identifier: BSD-2-Clause *)
(* The program that samples are taken of: does the same work again and again, watched by nobody, by
   heapsonde or by Gc.Memprof.

   Commands on stdin, one a line; the answer is one line on stdout:
     run HOW RATE DEPTH WORDS   work that allocates about WORDS words, DEPTH frames deep. HOW:
                                  none   nobody in this process watches
                                  empty  Gc.Memprof at RATE, callbacks that do nothing
                                  file   Gc.Memprof at RATE, callbacks that write records to the file
                                answers "CPU_NS WORDS": CPU time of this thread, words allocated
     domains HOW RATE N WORDS   the same work shared out to N domains, one of them this; HOW: none, empty.
                                answers "CPU_NS WALL_NS WORDS": CPU time of the process, all threads
     stop                       the end (so is the end of stdin)
   First line: "ready PID". Argument: the file for records, /dev/null by default.

   Words are allocated in lists of 100 pairs (600 words). One list in 16 is kept in a table of 500, so
   that about 6 % of the blocks are promoted, and die later in the major heap. The time of the work
   includes its collections, and a last minor one. *)

external thread_cpu_ns : unit -> int = "bench_thread_cpu_ns" [@@noalloc]
external process_cpu_ns : unit -> int = "bench_process_cpu_ns" [@@noalloc]
external now_ns : unit -> int = "bench_now_ns" [@@noalloc]

let kept = Array.make 500 []
let rec build acc i = if i = 0 then acc else build ((i, i) :: acc) (i - 1)

let work kept n_lists =
  for i = 1 to n_lists do
    let l = Sys.opaque_identity (build [] 100) in
    if i land 15 = 0 then kept.(i / 16 mod 500) <- l
  done

(* [depth] frames of this function below those of the work. *)
let rec at_depth depth n_lists =
  if depth = 0 then work kept n_lists
  else begin
    at_depth (depth - 1) n_lists;
    ignore (Sys.opaque_identity depth)
  end

(* Frames that are there at depth 0, counted in a stack as Printexc sees it. *)
let frames_of_program = ref 0

let measure depth n_lists =
  let words () =
    let s = Gc.quick_stat () in
    s.minor_words +. s.major_words -. s.promoted_words
  in
  let before = words () in
  let start = thread_cpu_ns () in
  at_depth (max 0 (depth - !frames_of_program)) n_lists;
  Gc.minor ();
  let ns = thread_cpu_ns () - start in
  (ns, words () -. before)

let empty : (unit, unit) Gc.Memprof.tracker =
  { alloc_minor = (fun _ -> Some ());
    alloc_major = (fun _ -> Some ());
    promote = (fun () -> Some ());
    dealloc_minor = ignore;
    dealloc_major = ignore }

let watched rate tracker f =
  let profile = Gc.Memprof.start ~sampling_rate:rate ~callstack_size:max_int tracker in
  let result = Fun.protect ~finally:Gc.Memprof.stop f in
  Gc.Memprof.discard profile;
  result

let run records how rate depth words =
  let work () = measure depth (words / 600) in
  (* What was allocated before is collected before; whoever has attached is noticed here. *)
  Array.fill kept 0 500 [];
  Gc.full_major ();
  (* The other process may have had the caches: warm up, so that turns are alike. *)
  ignore (measure depth 3000);
  match how with
  | "none" -> work ()
  | "empty" -> watched rate empty work
  | "file" ->
      let result = watched rate (Record_writer.tracker records) work in
      Record_writer.flush records;
      result
  | _ -> failwith ("no such way: " ^ how)

let share n_domains words =
  let n_lists = words / 600 / n_domains in
  let cpu = process_cpu_ns () and wall = now_ns () in
  let others =
    List.init (n_domains - 1) (fun _ -> Domain.spawn (fun () -> work (Array.make 500 []) n_lists))
  in
  work kept n_lists;
  List.iter Domain.join others;
  let cpu = process_cpu_ns () - cpu and wall = now_ns () - wall in
  (cpu, wall, n_lists * n_domains * 600)

let run_domains how rate n_domains words =
  Array.fill kept 0 500 [];
  Gc.full_major ();
  match how with
  | "none" -> share n_domains words
  | "empty" -> watched rate empty (fun () -> share n_domains words)
  | _ -> failwith ("no such way: " ^ how)

let rec commands records =
  match String.split_on_char ' ' (input_line stdin) with
  | exception End_of_file -> ()
  | [ "run"; how; rate; depth; words ] ->
      let ns, allocated =
        run records how (float_of_string rate) (int_of_string depth) (int_of_string words)
      in
      Printf.printf "%d %.0f\n%!" ns allocated;
      commands records
  | [ "domains"; how; rate; n; words ] ->
      let cpu, wall, allocated =
        run_domains how (float_of_string rate) (int_of_string n) (int_of_string words)
      in
      Printf.printf "%d %d %d\n%!" cpu wall allocated;
      commands records
  | [ "stop" ] -> ()
  | _ -> failwith "no such command"

let () =
  let file = if Array.length Sys.argv > 1 then Sys.argv.(1) else "/dev/null" in
  let records = Record_writer.create file in
  let seen = ref 0 in
  let look : (unit, unit) Gc.Memprof.tracker =
    { empty with
      alloc_minor =
        (fun a ->
          seen := Printexc.raw_backtrace_length a.callstack;
          None) }
  in
  ignore (watched 1e-2 look (fun () -> measure 0 100));
  frames_of_program := !seen;
  Printf.printf "ready %d\n%!" (Unix.getpid ());
  commands records
