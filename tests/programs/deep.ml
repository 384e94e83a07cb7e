(* SPDX-License-Identifier: BSD-2-Clause *)
(* Allocates pairs below --frames N frames (1,000,000): on the main stack, in a fiber, and in
   a domain. What is allocated there is summed up, so a wrong value shows. *)

open Effect.Deep

let[@inline never] bottom n =
  let sum = ref 0 in
  for i = 1 to n do
    let pair = Sys.opaque_identity (i, i + 1) in
    sum := !sum + fst pair + snd pair
  done;
  !sum

let rec deep frames n = if frames = 0 then bottom n else 1 + deep (frames - 1) n

let () =
  let frames = Harness.int_option "--frames" 1_000_000 in
  let n = Harness.blocks_of 9 in
  let expected = frames + (n * (n + 2)) in
  let check sum = if sum <> expected then failwith "the sum is wrong" in
  Harness.run ~domains:1 @@ fun () ->
  check (deep frames n);
  check
    (match_with (deep frames) n
       { retc = Fun.id; exnc = raise; effc = (fun _ -> None) });
  check (Domain.join (Domain.spawn (fun () -> deep frames n)));
  Harness.expect "alloc_minor" "Deep.bottom" ~size:2 ~blocks:(3 * n)
