(* SPDX-License-Identifier: BSD-2-Clause *)
(* Forks --children N times (3) in the middle of its work. The parent allocates WORDS
   words of pairs (2 fields, 3 words) at `parent_work`, in equal parts before and
   after each fork; each child allocates as many at `child_work`, counts what it
   allocated, and ends by itself with status 7.

   --child-stops   each child stops itself (SIGSTOP) in the middle of its work
   --hold          each child says "child PID" first, and waits for a line on stdin *)

let[@inline never] parent_work i = (i, i + 1)
let[@inline never] child_work i = (i, i + 1)

let child n =
  if Harness.flag "--hold" then begin
    Printf.printf "child %d\n%!" (Unix.getpid ());
    Harness.wait_for_line ();
    Gc.minor ()
  end;
  let sum = ref 0 in
  for i = 1 to n do
    if i = n / 2 && Harness.flag "--child-stops" then
      Unix.kill (Unix.getpid ()) Sys.sigstop;
    let a, b = Sys.opaque_identity (child_work i) in
    sum := !sum + b - a
  done;
  Gc.full_major ();
  Unix._exit (if !sum = n then 7 else 8)

let () =
  Harness.run @@ fun () ->
  let children = Harness.int_option "--children" 3 in
  let part = Harness.blocks_of (3 * (children + 1)) in
  let work () =
    for i = 1 to part do
      ignore (Sys.opaque_identity (parent_work i))
    done
  in
  work ();
  for _ = 1 to children do
    match Unix.fork () with
    | 0 -> child (part * (children + 1))
    | pid -> (
        work ();
        match Unix.waitpid [] pid with
        | _, WEXITED 7 -> print_endline "child ok"
        | _, WEXITED n -> Printf.printf "child exited %d\n" n
        | _, WSIGNALED n -> Printf.printf "child killed by OCaml signal %d\n" n
        | _, WSTOPPED _ -> print_endline "child stopped")
  done;
  Harness.expect "alloc_minor" "Fork.parent_work" ~size:2
    ~blocks:(part * (children + 1));
  Harness.expect "alloc_minor" "Fork.child_work" ~size:2 ~blocks:0
