#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# Targets that end, execute a program, or whose PID is used again: each profile says so.
# Needs root and BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

# bats file_tags=untrusted

load helpers
load daemon_helpers
load faults_helpers

@test "a target killed, one that crashes, one that exits: each profile says so" {
  start_daemon
  local name
  for name in killed crashed stopped; do
    start_target "$name" busy
    local pid=${name}_pid
    start "p_$name" -p "${!pid}" -r 2^-14
    more_records "p_$name"
  done
  start_target exited lists 300000 --wait
  start p_exited -p "$exited_pid" -r 2^-6
  "$HEAPSONDE" stop "$p_stopped_id"
  kill -KILL "$killed_pid"
  ended_with 137 "$killed_pid"
  tell crashed crash
  ended_with 139 "$crashed_pid"
  tell exited go
  tell exited end
  ended_with 0 "$exited_pid" exited.err
  target_is_well stopped
  for name in killed crashed exited; do
    local id=p_${name}_id
    wait_until "the profile of $name to finish" is "${!id}" '.state == "finished" and .reason == "target exited"'
    in_order "p_$name"
    [[ $(reason "p_$name") == 'target exited' ]]
    "$HEAPSONDE" discard "${!id}"
  done
  wait_until "the stopped profile to finish" is "$p_stopped_id" '.state == "finished"'
  in_order p_stopped
  "$HEAPSONDE" discard "$p_stopped_id"
  # At a normal exit the counters are exact.
  "$LIB/counters" p_exited.tsv exited.out
  wait_until "the workers to end" no_workers
}

@test "a target that executes a program without the probes" {
  start_daemon
  start_target target fault_exec
  start run -p "$target_pid" -r 2^-14
  more_records run
  bpf_objects "$(worker_of "$target_pid")" >objects
  tell target "exec $TESTS_BUILD/stock/busy"
  wait_until "the profile to finish" is "$run_id" \
    '.state == "finished" and .reason == "target executed another program"'
  all_gone objects
  in_order run
  not grep -q 'Busy' run.jsonl
  not "$HEAPSONDE" start -p "$target_pid" 2>start.err
  grep -Eq 'OCAMLPARAM|-runtime-variant' start.err
  tell target stop
  ended_with 0 "$target_pid" target.err
  grep -q '^ok' target.out
}

@test "a target that executes its own program anew" {
  start_daemon
  start_target target fault_exec
  start run -p "$target_pid" -r 2^-14
  more_records run
  bpf_objects "$(worker_of "$target_pid")" >objects
  tell target "exec $TESTS_BUILD/fault_exec --after"
  wait_until "the profile to finish" is "$run_id" \
    '.state == "finished" and .reason == "target executed another program"'
  said target '^after'
  all_gone objects
  nothing_attached "$target_pid"
  in_order run
  not grep -q 'Fault_exec.after' run.jsonl
  # And a start on the new one sees the new one.
  start again -p "$target_pid" -r 2^-14
  more_records again
  end_profile "$again_id"
  in_order again
  grep -q 'Fault_exec.after' again.jsonl
  not grep -q 'Fault_exec.before' again.jsonl
  tell target stop
  ended_with 0 "$target_pid" target.err
  grep -q '^ok' target.out
}

@test "a start right after an exec, before the daemon has noticed it" {
  start_daemon
  start_target target fault_exec
  start run -p "$target_pid" -r 2^-14
  more_records run
  local worker
  worker=$(worker_of "$target_pid")
  kill -STOP "$worker"
  tell target "exec $TESTS_BUILD/fault_exec --after"
  said target '^after'
  "$HEAPSONDE" start -p "$target_pid" -r 2^-14 -o again.jsonl >again.id 3>&- &
  local again=$!
  children+=("$again")
  kill -CONT "$worker"
  ended_with 0 "$again"
  more_records again
  is "$run_id" '.state == "finished"'
  end_profile "$(<again.id)"
  in_order again
  not grep -q 'Fault_exec.before' again.jsonl
  not grep -q 'Fault_exec.after' run.jsonl
}

# start_at PID NAME PROGRAM ARG…: as start_target, but with this PID, which is free.
start_at() {
  local wanted=$1 name=$2 program=$TESTS_BUILD/$3 in
  shift 3
  [[ -p $name.in ]] || mkfifo "$name.in"
  exec {in}<>"$name.in"
  # Others may take it first; then it comes round again when they have ended.
  for _ in {1..200}; do
    anew "$name.out"
    echo $((wanted - 1)) >/proc/sys/kernel/ns_last_pid
    "$program" "$@" <"$name.in" >"$name.out" 2>"$name.err" {in}>&- 3>&- &
    if (($! == wanted)); then
      children+=($!)
      printf -v "${name}_pid" %d $!
      printf -v "${name}_in" %d "$in"
      wait_until "$program to be ready" grep -qs ^ready "$name.out"
      return
    fi
    kill -KILL $!
    wait $! 2>/dev/null || true
  done
  fail "PID $wanted was not to be had"
}

@test "a PID that is used again between start and stop" {
  start_daemon
  start_target target busy
  start run -p "$target_pid" -r 2^-14
  follow one "$run_id"
  more_records run one
  local worker pid=$target_pid
  worker=$(worker_of "$pid")
  bpf_objects "$worker" >objects
  # So that the daemon does not see it happen.
  kill -STOP "$worker"
  kill -KILL "$pid"
  ended_with 137 "$pid"
  start_at "$pid" new busy
  [[ $new_pid == "$pid" ]]
  "$HEAPSONDE" stop "$run_id" >stop.out 2>&1 3>&- &
  local stop=$!
  children+=("$stop")
  untouched "$new_pid"
  kill -CONT "$worker"
  wait_until "the stop to be answered" has_ended "$stop"
  wait_until "the profile to finish" is "$run_id" '.state == "finished"'
  is "$run_id" '.reason == "target exited" or .reason == "interrupted"'
  ended_with 0 "$one_pid" one.err
  in_order run
  all_gone objects
  untouched "$new_pid"
  # A start means the new one.
  start again -p "$new_pid" -r 2^-14
  more_records again
  is "$again_id" '.state == "sampling"'
  end_profile "$again_id"
  in_order again
  wait_until "the new one to be left alone" untouched "$new_pid"
  tell new stop
  ended_with 0 "$new_pid" new.err
  grep -q '^ok' new.out
}

@test "a PID that is used again, and a start before the daemon has noticed" {
  start_daemon
  start_target target busy
  start run -p "$target_pid" -r 2^-14
  more_records run
  local worker pid=$target_pid start
  worker=$(worker_of "$pid")
  kill -STOP "$worker"
  kill -KILL "$pid"
  ended_with 137 "$pid"
  start_at "$pid" new lists 30000 --wait
  "$HEAPSONDE" start -p "$pid" -r 1 --ring-size 32M -o again.jsonl >again.id 3>&- &
  start=$!
  children+=("$start")
  kill -CONT "$worker"
  ended_with 0 "$start"
  wait_until "the old profile to finish" is "$run_id" '.state == "finished" and .reason == "target exited"'
  is "$(<again.id)" '.state == "sampling"'
  tell new go
  said new '^done'
  tell new end
  ended_with 0 "$new_pid" new.err
  wait_until "the new profile to finish" is "$(<again.id)" '.state == "finished"'
  in_order again
  "$LIB/stats" again.tsv new.out
  in_order run
  not grep -q 'Lists' run.jsonl
}
