#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# Loss accounting: overload on purpose, one cause after the other. What was fired is what was
# left out, kept and lost, to the last sample: against the program's own counters, where every word
# is a sample, and against a second observer that loses nothing. And what is lost shows: in upper ends, and in
# blocks that nobody takes for alive.
#
# (in_order -v allow_loss=1, tests/lib/check_order, holds the records of every recording here
# against its summary, domain by domain.) Needs root and BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers
load daemon_helpers
load faults_helpers

# summary NAME FILTER: of the summary of NAME.jsonl.
summary() {
  tail -n 1 "$1.jsonl" | jq -r "select(.type == \"summary\") | $2"
}

# Of all domains, those that are folded too.
ALL='([.domains[], .folded // empty] | map(%s) | add)'

# sum NAME MEMBER: over the domains of the summary.
sum() {
  # shellcheck disable=SC2059  # a format
  summary "$1" "$(printf "$ALL" ".$2")"
}

# Words allocated while it sampled, by the GC's counters.
WORDS='(.end_minor_words - .base_minor_words + .end_major_words - .base_major_words
  - .end_promoted_words + .base_promoted_words)'

# fired_words NAME: at rate 1 each domain fired a sample for each of its words.
fired_words() {
  [[ $(summary "$1" "[.domains[] | select(.sampled) | select(.samples_hit != $WORDS)] | length") == 0 ]] ||
    fail "samples fired and words allocated: $(summary "$1" "[.domains[] | [.domain, .samples_hit, $WORDS]]")"
}

# paused NAME ORDERS…: heapsonde is stopped while target carries out the orders.
paused() {
  local pid=${1}_pid order
  shift
  kill -STOP "${!pid}"
  for order; do order target "$order" || return; done
  kill -CONT "${!pid}"
}

@test "a ring buffer that nobody reads: what is lost is what is missing, at rate 1 and domain by domain" {
  start_orders target 4
  start_record run -p "$target_pid" -r 1 --ring-size 64k
  order target "minor 0"
  paused run "alloc 0 300000" "alloc 1 30000" "large 2 90000" "keep 3 60000" "minor 0" "alloc 1 3000" "minor 0"
  order target "alloc 0 3000"
  # Only at a normal exit all that was allocated is in the counters.
  tell target stop
  ended_with 0 "$target_pid" target.err
  end_record_lossy run
  fired_words run
  echo "hit $(sum run samples_hit), kept $(sum run samples_kept), lost $(sum run samples_lost)"
  (($(sum run samples_lost) > 400000 && $(sum run samples_kept) > 0))
  (($(sum run samples_left_out) == 0))
  [[ $(summary run .lost.ring_full) == "$(sum run samples_lost)" ]]
}

# end_record_lossy NAME [SIGNAL]: as end_record, where records may be missing.
end_record_lossy() {
  local pid=${1}_pid
  [[ -z ${2-} ]] || kill "-$2" "${!pid}"
  ended_with 0 "${!pid}" "$1.err" && in_order "$1" -v allow_loss=1
}

@test "the same with a rate between tiers and a filter: a second observer has seen as much" {
  start_orders target 2
  # Both rates have the same tier, so the probe fires the same samples for both.
  start_record whole -p "$target_pid" -r 2^-2 --ring-size 64M
  start_record run -p "$target_pid" -r 0.2 --track minor --ring-size 64k
  order target "minor 0"
  paused run "alloc 0 300000" "alloc 1 30000" "large 1 200000" "minor 0"
  order target "alloc 1 30000"
  order target "minor 0"
  kill -INT "$run_pid"
  ended_with 0 "$run_pid" run.err
  end_record whole INT
  in_order run -v allow_loss=1
  [[ $(summary whole .lost) == '{}' ]]
  local n
  for n in 0 1; do
    (($(summary run ".domains[$n].samples_hit") == $(summary whole ".domains[$n].samples_hit")))
    (($(summary run ".domains[$n].samples_lost") > 0))
    (($(summary run ".domains[$n].samples_left_out") > 0))
  done
  # Of what was left out large blocks are all, and of the others one in five.
  echo "$(sum run samples_hit) fired, $(sum run samples_left_out) left out, $(sum run samples_lost) lost"
  tell target stop
  ended_with 0 "$target_pid" target.err
}

@test "figures hold what was lost: at rate 1 they end exactly where the truth is" {
  start_orders target 2
  "$HEAPSONDE" record -q --force -p "$target_pid" -r 1 --ring-size 64k -o run.hsd 3>&- &
  run_pid=$!
  children+=("$run_pid")
  sampling() { "$HEAPSONDE" export --to jsonl -q -o run.jsonl --force run.hsd && grep -q '"sampling"' run.jsonl; }
  wait_until "it to sample" sampling
  order target "minor 0"
  order target "keep 1 3000"
  order target "alloc 0 3000"
  order target "minor 0"
  paused run "alloc 0 300000" "keep 1 60000" "minor 0" "major"
  order target "alloc 1 3000"
  tell target stop
  ended_with 0 "$target_pid" target.err
  ended_with 0 "$run_pid"
  "$HEAPSONDE" export --to jsonl -q -o run.jsonl --force run.hsd
  : >run.err
  in_order run -v allow_loss=1
  fired_words run
  "$HEAPSONDE" report --json --metric live run.hsd >report.json 2>report.err
  grep -q 'ring_full.*upper ends' report.err
  jq -e --argjson words "$(summary run "[.domains[] | $WORDS] | add")" \
    --argjson lost "$(sum run samples_lost)" '
    .recording.intervals_hold and .recording.lost_words.value == $lost
      and .total.allocated.low == .total.allocated.words
      and .total.allocated.high == $words
      and .total.allocated.words + $lost == $words
      # A row may have all of it, or nothing.
      and all(.rows[]; .allocated.high == .allocated.words + $lost and .allocated.low == .allocated.words)
      # Lost blocks may live.
      and .total.live.high == .total.live.words + .total.unknown.words + $lost
      and .total.live.words + .total.dead_young.words + .total.dead_old.words + .total.unknown.words
        == .total.allocated.words' report.json
}

@test "a paused daemon: its profile loses what it counts, and others nothing" {
  start_daemon
  start_orders target 2
  start tiny -p "$target_pid" -r 1 --ring-size 64k
  start_record large -p "$target_pid" -r 2^-2 --ring-size 64M
  order target "minor 0"
  run_pid=$(worker_of "$target_pid")
  paused run "alloc 0 300000" "alloc 1 30000" "minor 0"
  order target "alloc 1 3000"
  wait_until "the loss to be seen" is "$tiny_id" '.lost.ring_full > 0'
  tell target stop
  ended_with 0 "$target_pid" target.err
  end_record large
  wait_until "the profile to end" is "$tiny_id" '.state == "finished"'
  "$HEAPSONDE" discard "$tiny_id"
  : >tiny.err
  in_order tiny -v allow_loss=1
  fired_words tiny
  (($(sum tiny samples_lost) > 0))
  [[ $(lost large) == '{}' ]]
}

@test "tables that are too small: blocks that are not followed, stacks that come again" {
  record_around run run.jsonl --force -r 1 --max-blocks 1000 --max-stacks 1 -- lists 30000
  in_order run -v allow_loss=1
  fired_words run
  (($(sum run samples_lost) == 0))
  local untracked
  untracked=$(awk -F '\t' '/^alloc_/ && $11 == "false" { n++ } END { print n + 0 }' run.tsv)
  ((untracked > 0 && $(summary run .lost.blocks_full) == untracked))
  (($(summary run .degraded.stacks_resent) > 0))
  [[ $(summary run '.lost | keys | join(" ")') == blocks_full ]]
}

# What a reader of NAME.jsonl may take for alive at its end: not what was there when a loss record
# said that lives are missing.
living() {
  jq -r -n 'reduce inputs as $r ({};
      if $r.type == "alloc_minor" or $r.type == "alloc_major" then
        if $r.tracked then .["\($r.id)"] = $r.n_samples else . end
      elif $r.type == "dealloc_minor" or $r.type == "dealloc_major" or $r.type == "unknown" then
        del(.["\($r.id)"])
      elif $r.type == "loss" and ($r.lives // 0) > 0 then {} else . end)
    | to_entries[] | "\(.key)\t\(.value)"' "$1.jsonl" | sort
}

@test "an output that left out deaths: no block is taken for alive that is dead" {
  start_daemon
  start_orders target 1
  start run -p "$target_pid" -r 1
  order target "minor 0"
  order target "keep 0 9000"
  "$HEAPSONDE" follow --format raw "$run_id" >slow.raw 2>slow.err </dev/null 3>&- &
  slow_pid=$!
  children+=("$slow_pid")
  wait_until "it to follow" is "$run_id" '.followers == 1'
  kill -STOP "$slow_pid"
  # What a queue of 4 MiB, a socket and a pipe hold, several times.
  local n
  for ((n = 0; n < 8; n++)); do
    order target "alloc 0 30000"
    order target "minor 0"
    drained() { is "$run_id" ".records > 0 and .lost == {}"; }
    wait_until "the output to have them" drained
  done
  order target "drop"
  order target "major"
  kill -CONT "$slow_pid"
  slow_told() { "$HEAPSONDE" export --to jsonl -q --force -o slow.jsonl slow.raw && grep -q '"cause":"output_full"' slow.jsonl; }
  wait_until "the loss to be told" slow_told
  order target "keep 0 600"
  order target "minor 0"
  end_profile "$run_id"
  ended_with 0 "$slow_pid" slow.err
  "$HEAPSONDE" export --to jsonl -q --force -o slow.jsonl slow.raw
  in_order run
  in_order slow -v allow_loss=1 -v follow=1
  (($(summary slow .lost.output_full_lives) > 0 && $(summary slow .lost.output_full_samples) > 0))
  living run >run.live
  living slow >slow.live
  # Both know of the last list.
  (($(wc -l <slow.live) >= 200))
  [[ -z $(comm -13 run.live slow.live) ]]
  # So do reports, and they add up.
  "$HEAPSONDE" report --json --metric live slow.raw >report.json 2>report.err
  jq -e --argjson live "$(awk '{ n += $2 } END { print n + 0 }' slow.live)" \
    --argjson lost "$(summary slow .lost.output_full_samples)" '
    .total.live.words == $live and .recording.lost_words.value == $lost
      and .total.live.high == .total.live.words + .total.unknown.words + $lost
      and .total.live.words + .total.dead_young.words + .total.dead_old.words + .total.unknown.words
        == .total.allocated.words' report.json
  "$HEAPSONDE" leaks --json slow.raw >leaks.json 2>leaks.err
  jq -e '.survivors_live.words <= .live.words' leaks.json
  tell target stop
  ended_with 0 "$target_pid" target.err
}

@test "more domains than the table has room for: their samples are counted, all of them" {
  start_target target spawner 300000 --domains 8600 --wait
  start_record whole -p "$target_pid" -r 2^-2 --ring-size 64M
  start_record run -p "$target_pid" -r 2^-2 --ring-size 64M
  kill -STOP "$run_pid"
  tell target go
  said target '^domain'
  kill -CONT "$run_pid"
  tell target end
  ended_with 0 "$target_pid" target.err
  ended_with 0 "$run_pid" run.err
  ended_with 0 "$whole_pid" whole.err
  "$LIB/flatten" run.jsonl >run.tsv
  [[ $(summary whole .lost) == '{}' ]]
  [[ $(summary run '.lost | keys | join(" ")') == 'domains_full domains_full_samples' ]]
  local fired lost
  fired=$(sum whole samples_hit)
  lost=$(summary run .lost.domains_full_samples)
  echo "$fired fired, $(sum run samples_hit) seen, $lost of domains without room"
  (($(sum run samples_hit) + lost == fired && lost > 0))
}
