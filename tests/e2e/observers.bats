#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# Several heapsondes on one process: none sees that the others are there. Needs root
# and BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers

# observed RATE…: as many heapsondes as rates on one program.
observed() {
  local rate n=0 i
  observers=$((${observers:-0} + 1))
  local target=target$observers
  start_target "$target" lists 400000 --wait || return
  local pid=${target}_pid
  for rate; do
    start_record "${target}_$((n++))" -p "${!pid}" -r "$rate" || return
  done
  tell "$target" go
  said "$target" '^done' || return
  tell "$target" end
  ended_with 0 "${!pid}" "$target.err" || return
  local status=0 worst=0
  for ((i = 0; i < n; i++)); do
    end_record "${target}_$i" || return
    status=0
    "$LIB/stats" -v counters=1 "${target}_$i.tsv" "$target.out" || status=$?
    ((status != 1)) || return 1
    ((status == 0)) || worst=$status
  done
  return "$worst"
}

@test "two at different rates: both right" {
  statistically observed 2^-4 2^-9
}

@test "two at the same rate: both right, and independent ids" {
  statistically observed 2^-6 2^-6
}

@test "two at thinned rates of the same tier" {
  statistically observed 0.01 0.012
}

@test "three, one of which samples every word" {
  few() {
    start_target few lists 3000 --wait || return
    start_record few0 -p "$few_pid" -r 1 || return
    start_record few1 -p "$few_pid" -r 2^-3 || return
    start_record few2 -p "$few_pid" -r 0.1 || return
    tell few go
    said few '^done' || return
    tell few end
    ended_with 0 "$few_pid" few.err || return
    end_record few0 && end_record few1 && end_record few2
  }
  few
  "$LIB/stats" few0.tsv few.out
  statistically "$LIB/stats" few1.tsv few.out
  statistically "$LIB/stats" few2.tsv few.out
}

@test "two around one program, at different stack depths" {
  start_target target stack --wait
  start_record shallow -p "$target_pid" -r 1 --stack-depth 3
  start_record deep -p "$target_pid" -r 1 --stack-depth 1024
  tell target go
  said target '^done'
  tell target end
  ended_with 0 "$target_pid" target.err
  end_record shallow
  end_record deep
  "$LIB/places" deep.jsonl target.out
}

@test "when one goes, the other goes on and is right" {
  start_target target lists 400000 --wait
  start_record first -p "$target_pid" -r 2^-3
  start_record second -p "$target_pid" -r 2^-8
  end_record first INT
  tell target go
  said target '^done'
  tell target end
  ended_with 0 "$target_pid" target.err
  end_record second
  "$LIB/stats" -v counters=1 second.tsv target.out
}

@test "when one is killed, the other goes on and is right" {
  start_target target lists 400000 --wait
  start_record first -p "$target_pid" -r 2^-3
  start_record second -p "$target_pid" -r 2^-8
  kill -KILL "$first_pid"
  ended_with 137 "$first_pid"
  tell target go
  said target '^done'
  tell target end
  ended_with 0 "$target_pid" target.err
  end_record second
  "$LIB/stats" -v counters=1 second.tsv target.out
}

@test "one process's records are of that process only" {
  start_target one busy
  start_target other busy
  start_record run -p "$one_pid" -r 2^-14
  wait_until "some records" grep -q '^{"type":"alloc_' run.jsonl
  # The other's probes are the same bytes of the same file, and stay as they are.
  [[ -z $(probes_up "$other_pid") ]]
  tell one stop
  ended_with 0 "$one_pid" one.err
  end_record run
  tell other stop
  ended_with 0 "$other_pid" other.err
  jq -e -n --argjson pid "$one_pid" 'first(inputs) | .pid == $pid' run.jsonl
  awk -F '\t' -v pid="$other_pid" '/^alloc_/ && $5 == pid { exit 1 }' run.tsv
}
