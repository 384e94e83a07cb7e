#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# Major cycles and counters: each cycle is told by each domain, once, after the deaths that it
# found; counters come while a program runs, when they have changed. Needs root and BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers
load daemon_helpers

# cycles_told NAME DOMAINS ANSWER: between the two moments of an answer to `cycles` (see
# orders.ml) domains 0 to DOMAINS-1 have told as many cycles in NAME.tsv as there were, and
# no other has.
cycles_told() {
  awk -F '\t' -v n_domains="$2" -v answer="$3" '
    BEGIN { split(answer, a, ":") }
    $1 == "major_cycle" && $4 > a[2] && $4 < a[3] { n[$2]++ }
    END {
      for (d = 0; d < n_domains; d++) {
        if (n[d] != a[1] || a[1] < 1)
          bad = 1
        printf "domain %d: %d cycles told of %d\n", d, n[d], a[1]
      }
      for (d in n)
        if (d >= n_domains) { bad = 1; print "domain " d " told " n[d] }
      exit bad
    }' "$1.tsv"
}

# has_counters NAME DOMAIN: they have come.
has_counters() {
  grep -q '^{"type":"counters","domain":'"$2"',' "$1.jsonl"
}

@test "each major cycle is told: one domain, from the program's beginning" {
  cat >script <<<'cycles 7
stop'
  "$HEAPSONDE" record -r 2^-6 -o run.jsonl -- "$TESTS_BUILD/orders" <script >run.out 2>run.err 3>&-
  in_order run
  local answer
  answer=$(awk '$1 == "done" { print $3 }' run.out)
  cycles_told run 1 "$answer"
  # None is missing from the first on, and the summary has as many.
  jq -e -n '[inputs | select(.type == "major_cycle" or .type == "summary")]
    | (.[:-1] | map(.major_collections)) as $told
    | .[-1].domains[0].major_collections as $n | $told == [range(1; $n + 1)]' run.jsonl
}

@test "each major cycle is told by each of four domains, waiting or not" {
  start_orders target 4
  start_record run -p "$target_pid" -r 2^-6
  order target "cycles 5"
  local first=$answer
  order target "alloc 1 100000"
  order target "keep 2 30000"
  order target "cycles 3"
  local second=$answer
  tell target stop
  ended_with 0 "$target_pid" target.err
  end_record run
  cycles_told run 4 "$first"
  cycles_told run 4 "$second"
}

@test "domains that are not covered tell their cycles: they may inherit blocks" {
  start_orders target 3
  start_record run -p "$target_pid" -r 2^-6 --domain 1
  order target "keep 1 30000"
  order target "cycles 2"
  local first=$answer
  tell target stop
  ended_with 0 "$target_pid" target.err
  end_record run
  cycles_told run 3 "$first"
}

@test "a cycle is told after the deaths that it found" {
  start_orders target 4
  start_record run -p "$target_pid" -r 2^-3
  local d
  for d in 0 1 2 3; do order target "keep $d 60000"; done
  order target "cycles 1"
  order target drop
  order target "cycles 2"
  tell target stop
  ended_with 0 "$target_pid" target.err
  end_record run
  # The collection that found it dead is the next that its owner tells.
  awk -F '\t' '
    $1 == "dealloc_major" { waits[$4]++; if (!time[$4]) time[$4] = $6; if ($6 != time[$4]) bad++; n++ }
    $1 == "major_cycle" { if (time[$2] > $4) bad++; waits[$2] = time[$2] = 0 }
    END {
      for (d in waits) bad += waits[d]
      print n + 0, "deaths in the major heap,", bad + 0, "not before their cycle"
      exit n < 1000 || bad > 0
    }' run.tsv
}

@test "through the daemon, after stop: cycles are told while blocks are followed" {
  start_daemon
  start_orders target 2
  start_profile run -p "$target_pid" -r 1
  order target "keep 0 30000"
  order target "keep 1 30000"
  order target "cycles 2"
  local sampling=$answer
  "$HEAPSONDE" stop "$run_id"
  order target "cycles 4"
  local stopped=$answer
  end_profile run
  cycles_told run 2 "$sampling"
  cycles_told run 2 "$stopped"
}

@test "through the daemon, after stop: no cycle is told if no block is followed" {
  start_daemon
  start_orders target 2
  start_profile run -p "$target_pid" -r 1 --track alloc
  order target "keep 1 3000"
  order target "cycles 2"
  local sampling=$answer
  "$HEAPSONDE" stop "$run_id"
  order target "cycles 4"
  local stopped=$answer
  end_profile run
  cycles_told run 2 "$sampling"
  awk -F '\t' -v answer="$stopped" 'BEGIN { split(answer, a, ":") }
    $1 == "major_cycle" && $4 > a[2] { n++ } END { print n + 0, "told in vain"; exit n > 0 }' run.tsv
}

@test "counters come while the program runs, and agree with the summary" {
  start_target target busy --domains 3
  start_record run -p "$target_pid" -r 2^-14
  local d
  for d in 0 1 2; do
    wait_until "counters of domain $d" has_counters run "$d"
  done
  not grep -q '^{"type":"summary"' run.jsonl
  tell target stop
  ended_with 0 "$target_pid" target.err
  # in_order holds the last ones against the summary.
  end_record run
  jq -e -n '[inputs | select(.type == "counters")] | length >= 6
    and all(.[]; .minor_words > 0 and .samples_kept >= 0)' run.jsonl
}

@test "a program in which nothing changes has no counters told" {
  start_daemon
  start_orders target 3
  start_profile idle -p "$target_pid" -r 2^-8
  # A profile of another process shows that time passes.
  start_target other busy
  start_profile clock -p "$other_pid" -r 2^-14
  told_thrice() {
    (($(grep -c '^{"type":"counters"' clock.jsonl) >= 3))
  }
  wait_until "some seconds to pass" told_thrice
  end_profile idle
  end_profile clock
  [[ $(count idle counters) == 0 ]]
}

@test "many domains: at most 256 have their counters told at a time, and all at the end" {
  record_run run -r 2^-7 -- spawner 1000000 --domains 1000
  # in_order has seen that those told last are those of the summary.
  jq -s -e '[.[] | select(.type == "counters")] | group_by(.time)
    | map(length) | .[:-1] | all(. <= 256)' run.jsonl
  jq -s -e '[.[] | select(.type == "counters") | .domain] | unique | length > 900' run.jsonl
}

@test "a raw capture has the cycles and the counters" {
  cat >script <<<'keep 0 3000
cycles 3
stop'
  "$HEAPSONDE" record --format raw -r 2^-3 -o run.hsd -- "$TESTS_BUILD/orders" <script >run.out 2>run.err 3>&-
  "$HEAPSONDE" export run.hsd >run.jsonl
  in_order run
  cycles_told run 1 "$(awk '$1 == "done" && NF == 3 { print $3 }' run.out)"
  (($(count run counters) >= 1))
}
