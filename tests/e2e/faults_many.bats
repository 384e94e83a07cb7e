#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# Many domains and many targets at once. Needs root and BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers
load daemon_helpers
load faults_helpers

@test "hundreds of domains a second: none is lost, all is counted, memory is bounded" {
  start_daemon
  start_target target spawner 4000000 --domains 2000 --wait
  start run -p "$target_pid" -r 2^-6
  local worker peak
  worker=$(worker_of "$target_pid")
  tell target go
  said target '^done'
  # Of the worker, the most that it ever had, in KiB.
  peak=$(awk '$1 == "VmHWM:" { print $2 }' "/proc/$worker/status")
  echo "the worker had $peak KiB"
  ((peak < 150000))
  (($(awk '$1 == "VmHWM:" { print $2 }' "/proc/$daemon_pid/status") < 50000))
  "$HEAPSONDE" stop "$run_id"
  "$HEAPSONDE" discard "$run_id"
  tell target end
  ended_with 0 "$target_pid" target.err
  in_order run
  awk -F '\t' '
    NR == FNR { if ($1 == "domain") { want[$2] = 1; n++ } next }
    $1 == "domain_spawn" { spawn[$2]++ }
    $1 == "domain_terminate" { end[$2]++; if (!spawn[$2]) bad = bad " " $2 " ends first;" }
    END {
      for (d in want)
        if (spawn[d] != 1 || end[d] != 1)
          bad = bad " " d ": " spawn[d] + 0 " spawned, " end[d] + 0 " ended;"
      if (n != 2000 || bad) { print n " domains;" bad; exit 1 }
    }' target.out run.tsv
  jq -e -n '[inputs | select(.type == "domain_terminate" and .domain > 0)]
    | length == 2000 and all(.[]; .minor_words >= 1990)' run.jsonl
  statistically "$LIB/stats" run.tsv target.out
}

@test "64 processes at once" {
  start_daemon
  local i pid id
  for i in {1..64}; do start_target "t$i" lists 3000 --wait; done
  for i in {1..64}; do
    pid=t${i}_pid
    start "r$i" -p "${!pid}" -r 2^-2 --ring-size 2M
  done
  [[ $("$HEAPSONDE" status --json | jq -s '[.[] | select(.state == "sampling") | .pid] | unique | length') == 64 ]]
  [[ $(workers | wc -l) == 64 ]]
  for i in {1..64}; do tell "t$i" go; done
  for i in {1..64}; do said "t$i" '^done'; done
  local ends=()
  for i in {1..64}; do
    id=r${i}_id
    end_profile "${!id}" 3>&- &
    ends+=($!)
  done
  for i in "${ends[@]}"; do wait "$i"; done
  [[ $("$HEAPSONDE" status) == 'no profiles' ]]
  wait_until "the workers to end" no_workers
  for i in {1..64}; do
    grep -q '^{"type":"alloc_minor"' "r$i.jsonl"
    [[ $(lost "r$i") == '{}' ]]
    tell "t$i" end
  done
  for i in 1 32 64; do in_order "r$i"; done
  for i in {1..64}; do
    pid=t${i}_pid
    ended_with 0 "${!pid}" "t$i.err"
  done
}

@test "64 processes at once, all of which end, with the daemon's profiles on them" {
  start_daemon
  local i pid
  for i in {1..64}; do start_target "t$i" lists 3000 --wait; done
  for i in {1..64}; do
    pid=t${i}_pid
    start "r$i" -p "${!pid}" -r 2^-2 --ring-size 2M
  done
  for i in {1..64}; do
    tell "t$i" go
    tell "t$i" end
  done
  for i in {1..64}; do
    pid=t${i}_pid
    ended_with 0 "${!pid}" "t$i.err"
  done
  all_finished() {
    [[ $("$HEAPSONDE" status --json | jq -s '[.[] | select(.state == "finished")] | length') == 64 ]]
  }
  wait_until "all profiles to finish" all_finished
  wait_until "the workers to end" no_workers
  for i in {1..64}; do
    grep -q '^{"type":"summary","reason":"target exited"' "r$i.jsonl"
  done
}

@test "a process that allocates faster than its records can be read: requests are answered" {
  start_daemon
  start_target target busy --domains 2 --flat-out
  start run -p "$target_pid" -r 2^-3 --ring-size 64M
  more_records run
  # Each makes a record take longer.
  local request i
  for i in 1 2 3 4; do
    "$HEAPSONDE" follow "$run_id" >/dev/null 2>&1 3>&- &
    children+=($!)
  done
  for request in "status $run_id" "rate $run_id 2^-2" "stop $run_id" "discard $run_id"; do
    # shellcheck disable=SC2086  # two words
    timeout "$DEADLINE" "$HEAPSONDE" $request >/dev/null
  done
  nothing_attached "$target_pid"
}
