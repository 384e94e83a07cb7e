(* SPDX-License-Identifier: BSD-2-Clause *)
(* Needs nothing but the standard library, so that it can be bytecode or linked with
   any runtime. Says "ready", waits for a line or the end of stdin, allocates WORDS
   lists of 10 integers (the first argument), and prints their sum. *)

let () =
  print_endline "ready";
  (try ignore (input_line stdin) with End_of_file -> ());
  let n = if Array.length Sys.argv > 1 then int_of_string Sys.argv.(1) else 1000 in
  let sum = ref 0 in
  for i = 1 to n do
    sum := !sum + List.fold_left ( + ) 0 (List.init 10 (fun j -> i + j))
  done;
  Printf.printf "sum %d\n" !sum
