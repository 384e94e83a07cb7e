# SPDX-License-Identifier: BSD-2-Clause
#
# One line for each allocation that module $unit made in its work (below Harness.run,
# or Fun.protect when the oracle runs it): kind, source, size, samples and the stack
# down to there. Two runs of one deterministic program give the same lines.
#
#   jq -n -r --arg unit Lists -f canonical.jq FILE.jsonl

def ours: .function as $f | [$unit, $unit + "."] | any(.[]; . as $p | $f | startswith($p));

foreach inputs as $r ({};
  .line = null
  | if $r.type == "stack" then
      # Frames without debug information are not in what Printexc prints.
      ([$r.frames[] | select(.file != null)]) as $frames
      | ([$frames | to_entries[] | select(.value.function
          | startswith("Harness.run") or startswith("Stdlib__Fun.protect")) | .key][0]) as $stop
      | .stacks[$r.id | tostring] =
          if $stop and $stop > 0 and ($frames[$stop - 1] | ours) then
            [$frames[:$stop][] | "\(.function)|\(.file)|\(.line)|\(.start)|\(.end)"] | join(" < ")
          else null end
    elif ($r.type | startswith("alloc_")) and .stacks[$r.stack | tostring] then
      .line = [$r.type, $r.source, $r.size, $r.n_samples, .stacks[$r.stack | tostring]]
    else . end;
  .line | select(.) | @tsv)
