(* SPDX-License-Identifier: BSD-2-Clause *)
(* Something to attach to: sites DOMAINS. So many domains run beside the main one, which waits: the first
   one allocates, the others are asleep most of the time. scripts/bench.d/60-attach links it with
   modules of very many call sites. First line on stdout: "ready". Ends with stdin. *)

let[@inline never] pair i = (i, i + 1)
let stop = Atomic.make false

let rec sleep () =
  if not (Atomic.get stop) then begin
    ignore (Sys.opaque_identity (pair 0));
    Unix.sleepf 0.02;
    sleep ()
  end

let rec work () =
  if not (Atomic.get stop) then begin
    for i = 1 to 20_000 do
      ignore (Sys.opaque_identity (pair i))
    done;
    Unix.sleepf 0.001;
    work ()
  end

let () =
  let domains = int_of_string Sys.argv.(1) in
  let others = List.init (domains - 1) (fun _ -> Domain.spawn sleep) in
  let worker = Domain.spawn work in
  print_endline "ready";
  (try ignore (input_line stdin) with End_of_file -> ());
  Atomic.set stop true;
  List.iter Domain.join (worker :: others)
