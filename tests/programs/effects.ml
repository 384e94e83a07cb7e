(* SPDX-License-Identifier: BSD-2-Clause *)
(* Allocations three fibers deep: `outer` handles an effect around `middle`, which
   handles another around `inner`, which handles a third around the work, and the
   work performs all three every so often.

     pairs    2 fields (3 words), minor heap
     arrays   300 fields (301 words), major heap
     handled  4 fields (5 words): in the handler, after the effect has been
              performed, on the stack of the fiber that handles *)

open Effect
open Effect.Deep

type _ Effect.t +=
  | Outer : int -> int t
  | Middle : int -> int t
  | Inner : int -> int t

let[@inline never] pairs i = (i, i + 1)
let[@inline never] arrays i = Array.make 300 i
let[@inline never] handled i = (i, i, i, i)

let n_handled = ref 0
let per_round = 1000

let work rounds n_arrays () =
  for i = 1 to rounds do
    for j = 1 to per_round do
      ignore (Sys.opaque_identity (pairs j))
    done;
    if i <= n_arrays then ignore (Sys.opaque_identity (arrays i));
    ignore (perform (Outer i) + perform (Middle i) + perform (Inner i))
  done

let[@inline never] count i =
  incr n_handled;
  ignore (Sys.opaque_identity (handled i));
  i

let[@inline never] inner f =
  try f () with effect Inner i, k -> continue k (count i)

let[@inline never] middle f =
  try inner f with effect Middle i, k -> continue k (count i)

let[@inline never] outer f =
  try middle f with effect Outer i, k -> continue k (count i)

let () =
  Harness.run @@ fun () ->
  let rounds = Harness.blocks_of (3 * per_round) in
  let n_arrays = min rounds (Harness.blocks_of 301) in
  outer (work rounds n_arrays);
  let minor = Harness.expect "alloc_minor" in
  minor "Effects.pairs" ~size:2 ~blocks:(rounds * per_round);
  minor "Effects.handled" ~size:4 ~blocks:!n_handled;
  Harness.expect "alloc_major" "Effects.arrays" ~size:300
    ~blocks:n_arrays
