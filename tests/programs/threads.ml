(* SPDX-License-Identifier: BSD-2-Clause *)
(* Four system threads of one domain, and one thread of another domain, each
   allocating i times WORDS words of triples (3 fields, 4 words). They yield all the
   time, so that collections run in other threads than the one that allocated. *)

let[@inline never] triples i = (i, i, i)

type report = { domain : int; thread : int; blocks : int }

let work times =
  let blocks = times * Harness.blocks_of 4 in
  for i = 1 to blocks do
    ignore (Sys.opaque_identity (triples i));
    if i land 0xfff = 0 then Thread.yield ()
  done;
  { domain = (Domain.self () :> int); thread = Harness.gettid (); blocks }

let spawn times =
  let result = ref None in
  let thread = Thread.create (fun () -> result := Some (work times)) () in
  fun () ->
    Thread.join thread;
    Option.get !result

let () =
  Harness.run ~domains:1 @@ fun () ->
  let joins = List.init 4 (fun i -> spawn (i + 1)) in
  let elsewhere = Domain.spawn (fun () -> spawn 2 ()) in
  let reports = List.map (fun join -> join ()) joins in
  let reports = Domain.join elsewhere :: reports in
  List.iter
    (fun r ->
      Harness.expect "alloc_minor" "Threads.triples"
        ~domain:(string_of_int r.domain) ~thread:(string_of_int r.thread)
        ~size:3 ~blocks:r.blocks)
    reports
