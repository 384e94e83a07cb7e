#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# Processors that come and go under heapsonde and its target: not a word is missing, and detaching
# leaves nothing. And a heapsonde that gets next to no processor: what it loses is counted. Needs root and
# BPF.
#
# in: HEAPSONDE_TEST_MACHINE=own: nobody else uses this machine (tests/vm/init), so its second processor
#     is taken away and given back, again and again. On others all threads are moved from one
#     processor to another instead, now onto the same and now onto different ones.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers
load daemon_helpers
load cgroup_helpers

CPU1=/sys/devices/system/cpu/cpu1/online

# allowed: the processors that we may run on, one a line.
allowed() {
  awk '$1 == "Cpus_allowed_list:" { print $2 }' /proc/self/status | tr , '\n' |
    while IFS=- read -r first last; do seq "$first" "${last:-$first}"; done
}

# turn PID…: of a machine of our own a processor goes and comes back; else all threads of each of these
# processes go to some processor.
turn() {
  local pid
  if [[ ${HEAPSONDE_TEST_MACHINE-} == own ]]; then
    echo 0 >"$CPU1" && sleep 0.02 && echo 1 >"$CPU1"
    return
  fi
  # One that has ended is no failure; then the one that it is about has not.
  for pid; do taskset -a -p -c "${cpus[RANDOM % ${#cpus[@]}]}" "$pid" >/dev/null 2>&1 || true; done
}

# turn_until_calm PID…: turns until the file `calm` is there, their number in the file `turns`.
turn_until_calm() {
  local n=0 cpus
  mapfile -t cpus < <(allowed)
  while [[ ! -e calm ]]; do
    turn "$@" || return
    n=$((n + 1))
    echo $n >turns.new && mv turns.new turns
    sleep "0.0$((RANDOM % 3))"
  done
}

# has_turned N: there have been so many turns.
has_turned() {
  [[ -e turns ]] && (($(<turns) >= $1))
}

# bats test_tags=kernel
@test "processors come and go: every word is told, and nothing is left" {
  local turning n
  if [[ ${HEAPSONDE_TEST_MACHINE-} == own ]]; then
    [[ -w $CPU1 ]] || fail "this kernel cannot take a processor away"
  fi
  start_orders target 4
  start_record run -p "$target_pid" -r 1 --ring-size 64M
  turn_until_calm "$target_pid" "$run_pid" 3>&- &
  turning=$!
  children+=("$turning")
  # All four at once, two blocks each in a millisecond; a block each of two where all is emulated, also
  # what looks at the records afterwards.
  local busy="0 1 2 3" words=6
  [[ ${HEAPSONDE_TEST_MACHINE-} != own ]] || busy="0 3" words=3
  for n in $busy; do order target "steady $n $words"; done
  wait_until "turns" has_turned 12
  # Another one comes and goes meanwhile.
  start_record other -p "$target_pid" -r 2^-4 --ring-size 16M
  bpf_objects "$other_pid" >objects
  n=$(<turns)
  wait_until "turns" has_turned $((n + 6))
  end_record other INT
  gone objects
  n=$(<turns)
  wait_until "turns" has_turned $((n + 6))
  for n in $busy; do order target "steady $n 0"; done
  "$HEAPSONDE" residue -p "$target_pid" | grep "attached by PID $run_pid "
  bpf_objects "$run_pid" >objects
  tell target stop
  ended_with 0 "$target_pid" target.err
  end_record run
  gone objects
  touch calm
  ended_with 0 "$turning"
  echo "# $(<turns) turns, $(count run alloc_minor) blocks" >&3
  [[ $(tail -n 1 run.jsonl | jq -c .lost) == '{}' ]]
  "$LIB/stats" -v counters=2 run.tsv /dev/null
  [[ ${HEAPSONDE_TEST_MACHINE-} != own || $(<"$CPU1") == 1 ]]
}

@test "next to no processor for heapsonde: what it loses is counted, to the word" {
  make_cgroup slow cpu
  start_target target lists 100000 --wait
  start_record run -p "$target_pid" -r 1 --ring-size 512k
  bpf_objects "$run_pid" >objects
  # It samples, and from now on runs for a thousandth of the time.
  join_cgroup slow "$run_pid"
  limit_cpu slow 1000
  tell target go
  said target '^done'
  limit_cpu slow ""
  # At a normal exit the counters are exact.
  tell target end
  ended_with 0 "$target_pid" target.err
  ended_with 0 "$run_pid" run.err
  in_order run -v allow_loss=1
  gone objects
  jq -e -n 'reduce inputs as $r ({n: 0, told: 0};
      if $r.type | startswith("alloc_") then .n += $r.n_samples
      elif $r.type == "loss" and $r.cause == "ring_full" then .told += $r.count
      elif $r.type == "summary" then .lost = $r.lost.ring_full
        | .hit = ([$r.domains[].samples_hit] | add) | .kept = ([$r.domains[].samples_kept] | add)
        | .words = ([$r.domains[] | .end_minor_words - .base_minor_words + .end_major_words - .base_major_words
            - .end_promoted_words + .base_promoted_words] | add)
      else . end) | debug | .lost > 0 and .told == .lost and .kept == .n and .hit == .kept + .lost
      and .hit == .words' run.jsonl
}
