(* SPDX-License-Identifier: BSD-2-Clause *)
(* Gc.Memprof inside the program, writing what it is told in heapsonde's JSON
   lines. What heapsonde says of a program is held against this, and the checkers
   of tests/lib are tried on it.

   Callbacks do not sample themselves, so the oracle's own allocations are not in
   its output; they do change when collections happen. *)

type state = {
  out : out_channel;
  lock : Mutex.t;
  stacks : (Printexc.raw_backtrace, int) Hashtbl.t;
  mutable last_id : int;
  mutable last_stack : int;
  counts : (int, int * int) Hashtbl.t;  (* domain: records and samples *)
  threads : (int, int) Hashtbl.t;  (* thread: the domain it runs for *)
  gettid : unit -> int;
  now_ns : unit -> int;
}

let frame_json slot =
  let name = Option.value (Printexc.Slot.name slot) ~default:"" in
  match Printexc.Slot.location slot with
  | None -> Printf.sprintf {|{"function":"%s"}|} name
  | Some l ->
      Printf.sprintf
        {|{"function":"%s","file":"%s","line":%d,"start":%d,"end":%d,"inlined":%b}|}
        name l.filename l.line_number l.start_char l.end_col
        (Printexc.Slot.is_inline slot)

let frames_json callstack =
  match Printexc.backtrace_slots callstack with
  | None -> ""
  | Some slots ->
      String.concat "," (List.map frame_json (Array.to_list slots))

let stack_id s callstack =
  if Printexc.raw_backtrace_length callstack = 0 then 0
  else
    match Hashtbl.find_opt s.stacks callstack with
    | Some id -> id
    | None ->
        s.last_stack <- s.last_stack + 1;
        Hashtbl.add s.stacks callstack s.last_stack;
        Printf.fprintf s.out {|{"type":"stack","id":%d,"frames":[%s]}|}
          s.last_stack (frames_json callstack);
        output_char s.out '\n';
        s.last_stack

let source_name : Gc.Memprof.allocation_source -> string = function
  | Normal -> "normal"
  | Marshal -> "marshal"
  | Custom -> "custom"
  | _ -> "map_file"
[@@warning "-11"]

(* Evaluated before its record is written, so that the thread's comes first. *)
let common s =
  let domain = (Domain.self () :> int) and thread = s.gettid () in
  let time = s.now_ns () in
  if Hashtbl.find_opt s.threads thread <> Some domain then begin
    Hashtbl.replace s.threads thread domain;
    Printf.fprintf s.out {|{"type":"thread","thread":%d,"domain":%d,"time":%d}|}
      thread domain time;
    output_char s.out '\n'
  end;
  Printf.sprintf {|"profile":1,"domain":%d,"thread":%d,"time":%d|} domain thread
    time

let alloc s kind (a : Gc.Memprof.allocation) =
  Mutex.protect s.lock (fun () ->
      s.last_id <- s.last_id + 1;
      let id = s.last_id in
      let stack = stack_id s a.callstack in
      let domain = (Domain.self () :> int) in
      let records, samples =
        Option.value (Hashtbl.find_opt s.counts domain) ~default:(0, 0)
      in
      Hashtbl.replace s.counts domain (records + 1, samples + a.n_samples);
      Printf.fprintf s.out
        {|{"type":"%s","id":%d,%s,"n_samples":%d,"size":%d,"source":"%s","stack":%d,"tracked":true}|}
        kind id (common s) a.n_samples a.size (source_name a.source) stack;
      output_char s.out '\n';
      Some id)

let event s kind id =
  Mutex.protect s.lock (fun () ->
      Printf.fprintf s.out {|{"type":"%s","id":%d,%s}|} kind id (common s);
      output_char s.out '\n')

let counts prefix (c : Gc.stat) =
  Printf.sprintf
    {|"%sminor_words":%.0f,"%spromoted_words":%.0f,"%smajor_words":%.0f,"%sminor_collections":%d,"%smajor_collections":%d|}
    prefix c.minor_words prefix c.promoted_words prefix c.major_words prefix
    c.minor_collections prefix c.major_collections

(* The program's counters are put down to the main domain. *)
let of_domain domain (stat : Gc.stat) =
  if domain = 0 then stat
  else
    { stat with minor_words = 0.; promoted_words = 0.; major_words = 0.;
      minor_collections = 0; major_collections = 0 }

let counters_json now time (domain, (_, samples)) =
  Printf.sprintf
    {|{"type":"counters","domain":%d,"time":%d,%s,"samples_kept":%d,"tracked":0}|}
    domain time (counts "" (of_domain domain now)) samples

let domain_json rate base now (domain, (records, samples)) =
  let now = of_domain domain now and base = of_domain domain base in
  Printf.sprintf
    {|{"domain":%d,"state":"terminated","sampled":true,"rate":%.17g,%s,%s,%s,"samples_hit":%d,"samples_kept":%d,"records":%d,"tracked":0}|}
    domain rate (counts "" now) (counts "base_" base) (counts "end_" now) samples
    samples records

let run ~file ~rate ~gettid ~now_ns work =
  let out = open_out_bin file in
  let s =
    { out; lock = Mutex.create (); stacks = Hashtbl.create 64; last_id = 0;
      last_stack = 0; counts = Hashtbl.create 8; threads = Hashtbl.create 8;
      gettid; now_ns }
  in
  Printf.fprintf out
    {|{"type":"header","version":1,"heapsonde":"oracle","kernel":"","pid":%d,"command":"oracle","exe":"%s","ocaml":"%s","rate":%.17g,"stack_depth":1024,"tier":0,"clock":"CLOCK_MONOTONIC","time":%d,"wall_offset":0,"track":"all"}|}
    (Unix.getpid ()) Sys.executable_name Sys.ocaml_version rate (now_ns ());
  output_char out '\n';
  Printf.fprintf out
    {|{"type":"profile","profile":1,"rate":%.17g,"time":%d,"state":"sampling"}|}
    rate (now_ns ());
  output_char out '\n';
  let base = Gc.quick_stat () in
  let tracker : (int, int) Gc.Memprof.tracker =
    { alloc_minor = alloc s "alloc_minor";
      alloc_major = alloc s "alloc_major";
      promote = (fun id -> event s "promote" id; Some id);
      dealloc_minor = event s "dealloc_minor";
      dealloc_major = event s "dealloc_major" }
  in
  let profile = Gc.Memprof.start ~sampling_rate:rate tracker in
  let finish () =
    Gc.Memprof.stop ();
    Gc.Memprof.discard profile;
    Hashtbl.replace s.counts 0
      (Option.value (Hashtbl.find_opt s.counts 0) ~default:(0, 0));
    let domains = List.of_seq (Hashtbl.to_seq s.counts) in
    let now = Gc.quick_stat () and time = now_ns () in
    List.iter (fun d -> output_string out (counters_json now time d ^ "\n")) domains;
    Printf.fprintf out
      {|{"type":"summary","reason":"target exited","domains":[%s],"lost":{}}|}
      (String.concat "," (List.map (domain_json rate base now) domains));
    output_char out '\n';
    close_out out
  in
  Fun.protect ~finally:finish work
