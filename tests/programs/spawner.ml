(* SPDX-License-Identifier: BSD-2-Clause *)
(* Spawns and joins --domains N domains (100), up to 4 at a time, so that the runtime
   uses its slots again and again. Each allocates at `spawned` (pairs, 3 words) its
   share of WORDS words and keeps a tenth of them in a list that the main domain gets,
   which outlives it. *)

let[@inline never] spawned i = (i, i + 1)

let child part () =
  let kept = ref [] in
  for i = 1 to part do
    let v = spawned i in
    if i mod 10 = 0 then kept := v :: !kept
  done;
  ((Domain.self () :> int), !kept)

let all = ref []

let () =
  let n = Harness.int_option "--domains" 100 / 4 * 4 in
  (* More than 4 where those that have been joined take long to go. *)
  Harness.run ~domains:(min n 64) @@ fun () ->
  let part = Harness.blocks_of (3 * n) in
  let ids = ref [] in
  for _ = 1 to n / 4 do
    let four = List.init 4 (fun _ -> Domain.spawn (child part)) in
    List.iter
      (fun d ->
        let id, kept = Domain.join d in
        ids := id :: !ids;
        all := kept :: !all)
      four
  done;
  List.iter (Printf.printf "domain\t%d\n") (List.rev !ids);
  Harness.expect "alloc_minor" "Spawner.spawned" ~size:2 ~blocks:(n * part)
