(* SPDX-License-Identifier: BSD-2-Clause *)
(* Works until it is told to stop, as busy does with one domain, and becomes another
   program when it is told to. Allocates pairs at `before`, or at `after` when it is
   given --after, so that records say which of the two programs they are about.

   Commands on stdin, one a line:
     stop              finish (so does the end of stdin)
     exec PATH ARG…    execute that
   First line: "ready PID", or "after PID" with --after. At the end: "ok" if all
   sums were right, else "wrong". *)

let stop = Atomic.make false
let[@inline never] before i = (i, i + 1)
let[@inline never] after i = (i, i + 1)

let work pair =
  let right = ref true in
  while not (Atomic.get stop) do
    let sum = ref 0 in
    for i = 1 to 1000 do
      let a, b = Sys.opaque_identity (pair i) in
      sum := !sum + b - a
    done;
    if !sum <> 1000 then right := false
  done;
  print_endline (if !right then "ok" else "wrong")

let rec commands () =
  match String.split_on_char ' ' (input_line stdin) with
  | exception End_of_file -> Atomic.set stop true
  | "stop" :: _ -> Atomic.set stop true
  | "exec" :: path :: args -> Unix.execv path (Array.of_list (path :: args))
  | _ -> commands ()

let () =
  let again = Array.mem "--after" Sys.argv in
  Printf.printf "%s %d\n%!" (if again then "after" else "ready") (Unix.getpid ());
  ignore (Thread.create commands ());
  work (if again then after else before)
