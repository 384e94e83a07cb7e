#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# Forked children of targets: they run into no probe, and can be profiled themselves.
# Needs root and BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers
load daemon_helpers
load faults_helpers

# trap_all PID: make each probe site of a process kill it that runs into it. The
# process is to be stopped meanwhile.
trap_all() {
  local location
  while read -r _ location _; do
    # hlt, which is not for user space: SIGSEGV.
    printf '\xf4' | dd of="/proc/$1/mem" bs=1 seek="$location" conv=notrunc status=none || return
  done < <(probes "$1")
}

# forked NAME WORDS: a program with a profile NAME that has forked, and its child, which has
# stopped in the middle of its work. Sets target_pid and child.
forked() {
  start_target target fork "$2" --wait --children 1 --child-stops || return
  start "$1" -p "$target_pid" -r 2^-10 || return
  tell target go
  child_has_stopped() {
    child=$(pgrep -P "$target_pid") && grep -q '^State:[[:space:]]*T' "/proc/$child/status"
  }
  wait_until "the child to stop" child_has_stopped
}

@test "a forked child runs into no probe, and is none of the daemon's" {
  start_daemon
  forked run 20000000
  # Each site of the child would be its end now.
  trap_all "$child"
  [[ $(probes_armed "$child" | wc -l) == $(probes "$child" | wc -l) ]]
  kill -CONT "$child"
  said target '^done'
  grep -qx 'child ok' target.out
  tell target end
  ended_with 0 "$target_pid" target.err
  wait_until "the profile to finish" is "$run_id" '.state == "finished"'
  in_order run
  grep -q 'Fork.parent_work' run.jsonl
  not grep -q 'Fork.child_work' run.jsonl
  awk -F '\t' -v child="$child" '/^alloc_/ && $5 == child { exit 1 }' run.tsv
}

@test "what shows that a child runs into no probe shows it of a process that does" {
  start_daemon
  start_target target busy
  start run -p "$target_pid" -r 2^-14
  more_records run
  kill -STOP "$target_pid"
  trap_all "$target_pid"
  kill -CONT "$target_pid"
  ended_with 139 "$target_pid"
}

@test "a start on a child is a profile of the child's" {
  start_daemon
  forked run 20000000
  start child -p "$child" -r 2^-10
  kill -CONT "$child"
  said target '^done'
  grep -qx 'child ok' target.out
  wait_until "the child's profile to finish" is "$child_id" '.state == "finished"'
  is "$run_id" '.state == "sampling"'
  end_profile "$run_id"
  in_order child
  in_order run
  not grep -q 'Fork.child_work' run.jsonl
  grep -q 'Fork.child_work' child.jsonl
  tell target end
  ended_with 0 "$target_pid" target.err
}
