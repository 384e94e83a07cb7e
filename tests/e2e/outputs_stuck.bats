#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# Outputs that nobody reads, by the command itself: whatever ends a recording detaches at once, and what
# waits to be written is all there once somebody reads again, unless the user gives up. (The daemon's:
# losses.bats, faults_clients.bats.) Needs root and BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2034,SC2154

load helpers
load daemon_helpers

WAITS='^heapsonde: detached; waiting for room in .* \(interrupt again to leave them out\)$'

# opens_fifo PID: a process waits for a reader.
opens_fifo() {
  [[ $(<"/proc/$1/syscall") == "257 "* ]] # openat
}

# start_reader NAME: somebody who reads NAME.fifo into NAME.read.
start_reader() {
  cat "$1.fifo" >"$1.read" 2>"$1.cat.err" </dev/null 3>&- &
  printf -v "${1}_reader" %d $!
  children+=($!)
}

is_attached() { probes_up "$target_pid" | grep -qx alloc_0; }

# start_stuck NAME FORMAT OPTION…: a recording of the target at rate 1 into NAME.fifo, whose reader stops once
# it has begun; NAME_pid is its PID. What it records then is more than the pipe holds, and as lines or
# plain more than the queue, but not more than the ring buffer.
start_stuck() {
  local name=$1 reader=${1}_reader
  mkfifo "$name.fifo"
  start_reader "$name"
  "$HEAPSONDE" record -p "$target_pid" -r 1 --ring-size 64M --format "$2" -o "$name.fifo" "${@:3}" \
    >"$name.out" 2>"$name.err" </dev/null 3>&- &
  printf -v "${name}_pid" %d $!
  children+=($!)
  wait_until "it to attach" is_attached
  kill -STOP "${!reader}"
  order target "minor 0"
  order target "alloc 0 300000"
}

# says_that_it_waits NAME: and it does.
says_that_it_waits() {
  local pid=${1}_pid
  wait_until "it to say that it waits" grep -Eq "$WAITS" "$1.err"
  not has_ended "${!pid}"
}

# n_pairs NAME: how many of the blocks are there that were ordered.
n_pairs() {
  awk -F '\t' '$1 == "stack" && /Orders\.pairs/ { at[$2] = 1 } /^alloc_/ && $10 in at { n++ } END { print n + 0 }' "$1.tsv"
}

end_orders() {
  tell target stop
  ended_with 0 "$target_pid" target.err
}

# is_whole NAME FORMAT REASON: once somebody reads again, what came before the end is all there.
is_whole() {
  local pid=${1}_pid reader=${1}_reader
  kill -CONT "${!reader}"
  ended_with 0 "${!pid}" "$1.err" || return
  ended_with 0 "${!reader}" "$1.cat.err" || return
  if [[ $2 == jsonl ]]; then
    cp "$1.read" "$1.jsonl"
  else
    "$HEAPSONDE" export --to jsonl "$1.read" -o "$1.jsonl" || return
  fi
  in_order "$1" || return
  tail -n 1 "$1.jsonl" | jq -e --arg reason "$3" '.type == "summary" and .reason == $reason and .lost == {}'
}

@test "a signal while nobody reads: detached at once, and all is there when somebody reads again" {
  start_orders target 1
  local format
  for format in jsonl raw hsd; do
    start_stuck "$format" "$format"
    local pid=${format}_pid
    kill -INT "${!pid}"
    nothing_attached "$target_pid"
    # Nobody watches this.
    order target "alloc 0 3000"
    says_that_it_waits "$format"
    is_whole "$format" "$format" interrupted
    (($(n_pairs "$format") == 100000))
  done
  end_orders
}

@test "the end of the time while nobody reads" {
  start_orders target 1
  start_stuck run jsonl --duration 3
  nothing_attached "$target_pid"
  is_whole run jsonl duration
  end_orders
}

@test "the end of the program while nobody reads" {
  start_orders target 1
  start_stuck run jsonl
  end_orders
  says_that_it_waits run
  is_whole run jsonl "target exited"
  (($(n_pairs run) == 100000))
}

@test "who does not want to wait for a reader interrupts again: exit 1, one line, and nothing stays" {
  start_orders target 1
  local pid reader format
  for format in jsonl hsd; do
    start_stuck "$format" "$format"
    pid=${format}_pid reader=${format}_reader
    kill -TERM "${!pid}"
    says_that_it_waits "$format"
    kill -TERM "${!pid}"
    ended_with 1 "${!pid}" "$format.err"
    [[ $(grep -Ev "$WAITS" "$format.err") =~ ^heapsonde:\ $format.fifo\ has\ no\ room\ for\ the\ last\ records ]]
    "$HEAPSONDE" residue -p "$target_pid" | grep -q 'nothing left$'
    kill -CONT "${!reader}"
    ended_with 0 "${!reader}" "$format.cat.err"
  done
  # What was written can be read.
  jq -e -n '[inputs | select(.type == "alloc_minor")] | length > 100' <(sed '$d' jsonl.read)
  end_orders
}

@test "a command whose recording nobody reads ends as it would, and so does heapsonde when told to" {
  mkfifo run.fifo run.in
  start_reader run
  exec {run_in}<>run.in
  "$HEAPSONDE" record -r 1 --ring-size 64M -o run.fifo -- "$TESTS_BUILD/lists" 60000 --wait \
    >run.out 2>run.err <run.in 3>&- &
  run_pid=$!
  children+=("$run_pid")
  wait_until "the program to be ready" grep -q ^ready run.out
  kill -STOP "$run_reader"
  tell run go
  said run '^done'
  tell run end
  says_that_it_waits run
  grep -q '^expect' run.out
  kill -HUP "$run_pid"
  ended_with 1 "$run_pid" run.err
  kill -CONT "$run_reader"
}

@test "a FIFO that nobody opens: signals end heapsonde before anything is attached" {
  start_orders target 1
  mkfifo run.fifo
  local signal number pid
  for signal in INT TERM HUP; do
    number=$(kill -l "$signal")
    # bash has those that it starts in the background ignore SIGINT.
    env --default-signal="$signal" "$HEAPSONDE" record -p "$target_pid" -o run.fifo \
      >run.out 2>run.err </dev/null 3>&- &
    pid=$!
    children+=("$pid")
    wait_until "it to open the FIFO" opens_fifo "$pid"
    kill "-$signal" "$pid"
    ended_with $((128 + number)) "$pid" run.err
    untouched "$target_pid"
    # A command has not begun, and is gone.
    env --default-signal="$signal" "$HEAPSONDE" record -o run.fifo -- "$TESTS_BUILD/lists" 30 \
      >run.out 2>run.err </dev/null 3>&- &
    pid=$!
    children+=("$pid")
    wait_until "it to open the FIFO" opens_fifo "$pid"
    local child
    child=$(pgrep -P "$pid")
    kill "-$signal" "$pid"
    ended_with $((128 + number)) "$pid" run.err
    wait_until "the command to go" has_ended "$child"
    [[ ! -s run.out ]]
  done
  # And whoever comes late gets everything.
  "$HEAPSONDE" record -p "$target_pid" -r 1 -o run.fifo >run.out 2>run.err </dev/null 3>&- &
  run_pid=$!
  children+=("$run_pid")
  wait_until "it to open the FIFO" opens_fifo "$run_pid"
  start_reader run
  wait_until "it to attach" is_attached
  order target "minor 0"
  order target "alloc 0 3000"
  kill -TERM "$run_pid"
  is_whole run jsonl interrupted
  (($(n_pairs run) == 1000))
  end_orders
}
