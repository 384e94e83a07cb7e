#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# Targets that fork and exec. Needs root and BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers

@test "a forked child is not sampled, ends well, and does not disturb its parent" {
  forked() {
    record_run run -r 2^-6 -- fork 400000 || return
    [[ $(grep -cx 'child ok' run.out) == 3 ]] || fail "$(cat run.out)" || return
    "$LIB/stats" -v counters=1 run.tsv run.out
  }
  statistically forked
}

@test "children forked from a process that is attached to" {
  start_target target fork 400000 --wait
  start_record run -p "$target_pid" -r 2^-3
  tell target go
  said target '^done'
  tell target end
  ended_with 0 "$target_pid" target.err
  end_record run
  [[ $(grep -cx 'child ok' target.out) == 3 ]]
  statistically "$LIB/stats" -v counters=1 run.tsv target.out
}

# bats test_tags=kernel
@test "a child forked while heapsonde is attached lives on when it has gone" {
  # The child inherits the breakpoints; heapsonde detaches while it works.
  start_target target fork 60000000 --wait --children 2
  start_record run -p "$target_pid" -r 2^-10
  tell target go
  wait_until "some records" grep -q '^{"type":"alloc_' run.jsonl
  end_record run INT
  said target '^done'
  tell target end
  ended_with 0 "$target_pid" target.err
  [[ $(grep -cx 'child ok' target.out) == 2 ]]
}

@test "a target that execs another program is gone" {
  start_target target busy
  start_record run -p "$target_pid" -r 2^-14
  wait_until "some records" grep -q '^{"type":"alloc_' run.jsonl
  bpf_objects "$run_pid" >objects
  tell target exec
  end_record run
  ended_with 0 "$target_pid"
  gone objects
}

@test "a program that is started twice: only the one that was named is sampled" {
  start_target one lists 100000 --wait
  start_target two lists 100000 --wait
  start_record run -p "$one_pid" -r 2^-3
  tell two go
  said two '^done'
  tell one go
  said one '^done'
  tell one end
  tell two end
  ended_with 0 "$one_pid" one.err
  ended_with 0 "$two_pid" two.err
  end_record run
  statistically "$LIB/stats" -v counters=1 run.tsv one.out
}
