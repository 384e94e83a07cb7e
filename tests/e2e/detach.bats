#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# However a recording ends, nothing stays behind: no semaphore up, no breakpoint in the
# target, no BPF program, map or link; and the target runs on. However the target ends,
# the records up to then are written. Needs root and BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers

# A busy target with heapsonde attached (run.jsonl), records coming, and the list of
# what heapsonde holds in the kernel. Sets target_pid, run_pid.
attached() {
  start_target target busy --domains 2 || return
  start_record run -p "$target_pid" -r 2^-14 || return
  wait_until "some records" grep -q '^{"type":"alloc_' run.jsonl || return
  bpf_objects "$run_pid" >objects
  # What is looked for afterwards is there now.
  [[ -n $(probes_up "$target_pid") ]] || fail "no semaphore is up while heapsonde is attached" || return
  [[ -n $(probes_armed "$target_pid") ]] || fail "no probe is armed while heapsonde is attached"
}

# The target runs on, its sums are right, and it ends well.
target_is_well() {
  tell target stop
  ended_with 0 "$target_pid" target.err || return
  grep -q '^ok' target.out || fail "the target computed something wrong: $(cat target.out)"
}

@test "Ctrl-C: the records are whole, nothing is left, the target runs on" {
  attached
  end_record run INT
  [[ $(reason run) == *interrupt* ]]
  nothing_left "$target_pid" objects
  target_is_well
}

@test "SIGTERM ends a recording as Ctrl-C does" {
  attached
  end_record run TERM
  nothing_left "$target_pid" objects
  target_is_well
}

@test "SIGHUP ends a recording as Ctrl-C does" {
  attached
  end_record run HUP
  nothing_left "$target_pid" objects
  target_is_well
}

@test "SIGKILL of heapsonde: nothing is left, the target runs on" {
  attached
  kill -KILL "$run_pid"
  ended_with 137 "$run_pid"
  nothing_left "$target_pid" objects
  # What had been written is readable: all lines but perhaps the last.
  head -n -1 run.jsonl | jq -n 'reduce inputs as $r (0; . + 1) | . > 0' -e
  target_is_well
}

@test "the duration ends a recording, with the target still running" {
  # Long enough to be looked at meanwhile.
  start_target target busy --domains 2
  seen_attached() {
    start_record run -p "$target_pid" -r 2^-14 --duration "$1" || return
    bpf_objects "$run_pid" >objects
    end_record run && [[ $(reason run) == *duration* && -s objects ]]
  }
  given_time seen_attached
  nothing_left "$target_pid" objects
  target_is_well
}

@test "Ctrl-C while a second heapsonde goes on: only its probes stay" {
  attached
  start_record second -p "$target_pid" -r 2^-15
  end_record run INT
  gone objects
  bpf_objects "$second_pid" >second.objects
  tier_14_is_down() { not grep -qx alloc_14 <(probes_up "$target_pid"); }
  wait_until "tier 14 to go" tier_14_is_down
  probes_up "$target_pid" | grep -qx alloc_15
  end_record second INT
  nothing_left "$target_pid" second.objects
  target_is_well
}

@test "attached and detached again and again: the target is as it was" {
  start_target target busy --domains 2
  local i
  for i in 1 2 3 4; do
    start_record "run$i" -p "$target_pid" -r 2^-14
    local pid=run${i}_pid
    bpf_objects "${!pid}" >>objects
    end_record "run$i" INT
  done
  nothing_left "$target_pid" objects
  target_is_well
}

@test "the target ends: the rest is written, exit 0" {
  attached
  target_is_well
  end_record run
  [[ $(reason run) == *exit* ]]
  gone objects
  # At a normal exit the counters are exact. (Of a run that was attached to, too.)
  "$LIB/counters" run.tsv target.out
}

@test "SIGKILL of the target: the records up to then, a note, exit 0" {
  attached
  kill -KILL "$target_pid"
  ended_with 137 "$target_pid"
  end_record run
  grep -q '^alloc_' run.tsv
  [[ $(reason run) == target* ]]
  grep -Eiq 'kill|exit|end' run.err
  gone objects
}

@test "the target crashes: the records up to then, a note, exit 0" {
  attached
  tell target crash
  ended_with 139 "$target_pid"
  end_record run
  grep -q '^alloc_' run.tsv
  [[ $(reason run) == target* ]]
  grep -Eiq 'kill|exit|end' run.err
  gone objects
}

@test "heapsonde stopped for a while (SIGSTOP) loses no more than it counts" {
  start_target target busy --domains 2
  start_record run -p "$target_pid" -r 2^-10 --ring-size 1M
  bpf_objects "$run_pid" >objects
  kill -STOP "$run_pid"
  # Long enough for the target to overrun the ring buffer; if it does not, nothing is lost.
  sleep 1
  kill -INT "$run_pid"
  kill -CONT "$run_pid"
  ended_with 0 "$run_pid" run.err
  in_order run -v allow_loss=1
  # A sample that was kept is in the records or it is counted as lost.
  awk -F '\t' '
    /^alloc_/ { seen += $7 }
    $1 == "summary" {
      lost = $3
      for (i = 4; i <= NF; i++) { split($i, d, ":"); kept += d[10] }
    }
    END { print seen, "seen,", kept, "kept,", lost, "lost"; exit !(seen == kept || lost > 0) }' run.tsv
  nothing_left "$target_pid" objects
  target_is_well
}

@test "stdout is a pipe whose reader goes: heapsonde ends, nothing is left" {
  start_target target busy
  mkfifo pipe
  "$HEAPSONDE" record -p "$target_pid" -r 2^-10 >pipe 2>run.err </dev/null 3>&- &
  local pid=$!
  children+=("$pid")
  head -n 3 pipe >head.jsonl
  wait_until "heapsonde to end" has_ended "$pid"
  [[ $(wc -l <head.jsonl) == 3 ]]
  wait_until "the target to be left alone" untouched "$target_pid"
  target_is_well
}

@test "record -- CMD: Ctrl-C ends the recording, not the program" {
  mkfifo in
  exec {in}<>in
  "$HEAPSONDE" record -r 2^-12 -o run.jsonl -- "$TESTS_BUILD/busy" \
    <in >run.out 2>run.err {in}>&- 3>&- &
  run_pid=$!
  children+=("$run_pid")
  wait_until "the program to be ready" grep -q ^ready run.out
  children+=("$(awk '{ print $2; exit }' run.out)")
  # To the whole group, as a terminal does, is another matter: busy would die of it.
  kill -INT "$run_pid"
  echo stop >&"$in"
  wait_until "heapsonde to end" has_ended "$run_pid"
  wait_until "the program's end" grep -q '^ok' run.out
  in_order run
}

@test "record -- CMD: SIGKILL of heapsonde leaves the program running, and right" {
  mkfifo in
  exec {in}<>in
  "$HEAPSONDE" record -r 2^-12 -o run.jsonl -- "$TESTS_BUILD/busy" \
    <in >run.out 2>run.err {in}>&- 3>&- &
  run_pid=$!
  children+=("$run_pid")
  wait_until "the program to be ready" grep -q ^ready run.out
  target_pid=$(awk '{ print $2; exit }' run.out)
  children+=("$target_pid")
  wait_until "some records" grep -q '^{"type":"alloc_' run.jsonl
  bpf_objects "$run_pid" >objects
  kill -KILL "$run_pid"
  ended_with 137 "$run_pid"
  nothing_left "$target_pid" objects
  echo stop >&"$in"
  wait_until "the program's end" grep -q '^ok' run.out
}
