#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# The daemon or a worker is killed, stopped or ended: targets run on and nothing is left.
# Needs root and BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers
load daemon_helpers
load faults_helpers

@test "the daemon killed: targets run on, nothing is left, and another one can begin" {
  start_daemon
  start_target target busy --domains 2
  start_target target2 busy
  start run -p "$target_pid" -r 2^-14
  start run2 -p "$target2_pid" -r 2^-14
  follow one "$run_id"
  more_records run run2 one
  local pids pid
  mapfile -t pids < <(workers)
  ((${#pids[@]} == 2))
  for pid in "${pids[@]}"; do bpf_objects "$pid"; done >objects
  kill -KILL "$daemon_pid"
  ended_with 137 "$daemon_pid"
  for pid in "${pids[@]}"; do
    wait_until "worker $pid to end" has_ended "$pid"
  done
  all_gone objects
  nothing_attached "$target_pid"
  nothing_attached "$target2_pid"
  # The follower is told that this was not the end, or has got it.
  wait_until "the follower to end" has_ended "$one_pid"
  # What is on disk is whole lines, or was being written.
  head -n -1 run.jsonl | jq -e -n 'reduce inputs as $r (0; . + 1) | . > 0'
  not "$HEAPSONDE" status 2>status.err
  grep -q 'no daemon' status.err
  # On the same socket, with the same processes.
  [[ -S $HEAPSONDE_SOCKET ]]
  start_daemon
  [[ $("$HEAPSONDE" status) == 'no profiles' ]]
  start again -p "$target_pid" -r 2^-14
  start again2 -p "$target2_pid" -r 2^-14
  more_records again again2
  end_profile "$again_id"
  end_profile "$again2_id"
  in_order again
  in_order again2
  target_is_well target
  target_is_well target2
}

@test "the daemon killed while its targets do their exact work: they do it right" {
  start_daemon
  start_target target lists 3000000 --wait
  start run -p "$target_pid" -r 2^-6
  tell target go
  more_records run
  kill -KILL "$daemon_pid"
  ended_with 137 "$daemon_pid"
  said target '^done'
  wait_until "the target to be left alone" untouched "$target_pid"
  tell target end
  ended_with 0 "$target_pid" target.err
  [[ $(grep -c ^expect target.out) == 4 ]]
}

@test "a second daemon on the same socket is refused, and the first one goes on" {
  start_daemon
  local status=0
  timeout -k 5 "$DEADLINE" "$HEAPSONDE" daemon --socket "$HEAPSONDE_SOCKET" >second.out 2>second.err 3>&- || status=$?
  ((status == 1))
  grep -q 'another daemon listens' second.err
  [[ $("$HEAPSONDE" status) == 'no profiles' ]]
}

@test "SIGTERM of the daemon: summaries are written, nothing is left" {
  start_daemon
  start_target target busy
  start run -p "$target_pid" -r 2^-14
  follow one "$run_id"
  more_records run one
  bpf_objects "$(worker_of "$target_pid")" >objects
  kill -TERM "$daemon_pid"
  ended_with 0 "$daemon_pid"
  ended_with 0 "$one_pid" one.err
  in_order run
  grep -q '^{"type":"summary"' one.jsonl
  all_gone objects
  nothing_attached "$target_pid"
  target_is_well target
}

@test "a worker killed: its profiles have finished with an error, others go on" {
  start_daemon
  start_target target busy --domains 2
  start_target target2 busy
  start run -p "$target_pid" -r 2^-14 --domain 0
  start run1 -p "$target_pid" -r 2^-14 --domain 1
  start other -p "$target2_pid" -r 2^-14
  follow one "$run_id"
  follow two "$other_id"
  more_records one two run1
  local worker id
  worker=$(worker_of "$target_pid")
  bpf_objects "$worker" >objects
  kill -KILL "$worker"
  for id in "$run_id" "$run1_id"; do
    wait_until "the profile to finish" is "$id" '.state == "finished" and .reason == "error"'
  done
  all_gone objects
  nothing_attached "$target_pid"
  wait_until "its follower to end" has_ended "$one_pid"
  not wait "$one_pid"
  grep -q 'before the end' one.err
  more_records other two
  # As of any finished profile: no stop, but a discard.
  not "$HEAPSONDE" stop "$run_id" 2>stop.err
  grep -q 'finished already' stop.err
  "$HEAPSONDE" discard "$run_id"
  not "$HEAPSONDE" status "$run_id" 2>status.err
  # Another worker for the same process.
  start again -p "$target_pid" -r 2^-14
  more_records again
  end_profile "$again_id"
  in_order again
  end_profile "$other_id"
  in_order other
  target_is_well target
  target_is_well target2
}

@test "a worker that is stopped holds up its own profiles only" {
  start_daemon
  start_target target busy
  start_target target2 busy
  start run -p "$target_pid" -r 2^-14
  start other -p "$target2_pid" -r 2^-14
  local worker
  worker=$(worker_of "$target_pid")
  kill -STOP "$worker"
  "$HEAPSONDE" status >status.out
  [[ $(wc -l <status.out) == 3 ]]
  "$HEAPSONDE" stop "$run_id" 3>&- &
  local stop=$!
  children+=("$stop")
  more_records other
  end_profile "$other_id"
  in_order other
  kill -CONT "$worker"
  ended_with 0 "$stop"
  "$HEAPSONDE" discard "$run_id"
  in_order run -v allow_loss=1
  target_is_well target
}
