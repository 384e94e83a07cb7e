#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# Outputs that fail: exit 1 and one line with the reason, what was written can be read, and whoever it
# does not concern goes on. Needs root and BPF.
#
#   output               fault           by the command itself     through the daemon
#   jsonl                full disk       here                      faults_clients.bats
#   raw                  full disk       here                      here
#   hsd                  full disk       captures.bats             here
#   jsonl, raw, hsd      EIO, write      here, failing_calls.bats  here (jsonl, hsd)
#   jsonl, raw, hsd      EIO, close      here                      here (jsonl, hsd)
#   jsonl, raw, hsd      nobody reads    outputs_stuck.bats        losses.bats, faults_clients.bats
#   exports              full disk       mishaps.bats              -
#   exports              EIO, write      here                      -
#   exports              EIO, close      here                      -
#   stdout               full, closed    here, each command        here, each command
#   stderr (log)         full, closed,   here                      here
#                        nobody reads
#   socket's folder      read-only, no   -                         here
#                        room, no folder
#
# Device mapper, whose dm-error would be a disk that is broken, is not in every kernel (nor loop devices in
# every container), so EIO comes of tests/lib/fail-call.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers
load daemon_helpers
load faults_helpers

WRITE=1 CLOSE=3
EIO=5

# full_disk: small, a file system with room for 64 KiB, and nothing in it.
full_disk() {
  if mountpoint -q small; then
    rm -f small/*
    return
  fi
  mkdir small && mount -t tmpfs -o size=64k tmpfs small && mounts+=("$PWD/small")
}

# readable FILE: what there is of a recording, by its format, has some allocations and is not cut within a
# line or a record.
readable() {
  local lines=$1
  if [[ $1 != *.jsonl ]]; then
    lines=read.jsonl
    "$HEAPSONDE" export "$1" --force -o "$lines" 2>read.err || fail "$(cat read.err)" || return
  fi
  jq -e -n '[inputs | select(.type | startswith("alloc_"))] | length > 10' "$lines" >/dev/null
}

# one_line FILE PATTERN: that is all there is in it.
one_line() {
  (($(wc -l <"$1") == 1)) && grep -Eq -- "^heapsonde: .*($2)" "$1" && return
  cat "$1"
  fail "not one line with /$2/"
}

# start_failing_daemon RULE…: as start_daemon; where calls of its processes fail. failing_pid is the PID
# of fail-call, which ends as the daemon does.
start_failing_daemon() {
  for_everybody || return
  export HEAPSONDE_SOCKET=$anywhere/control.sock
  "$TESTS_BUILD/fail-call" calls "$@" -- "$HEAPSONDE" daemon --socket "$HEAPSONDE_SOCKET" >daemon.out 2>daemon.err \
    </dev/null 3>&- &
  failing_pid=$!
  children+=("$failing_pid")
  wait_until "the daemon to answer" answers_or_ended "$failing_pid"
  daemon_pid=$(pgrep -P "$failing_pid") && children+=("$daemon_pid")
}

@test "a full disk, of each format, by oneself" {
  start_target target busy
  local format status
  for format in jsonl raw; do
    full_disk
    status=0
    "$HEAPSONDE" record -p "$target_pid" -r 2^-6 -o "small/run.$format" --format "$format" >out 2>err </dev/null || status=$?
    ((status == 1))
    [[ ! -s out ]]
    one_line err 'No space left.*readable'
    readable "small/run.$format"
    nothing_attached "$target_pid"
  done
  target_is_well target
}

@test "a full disk under captures of the daemon: what was written can be read, and others go on" {
  start_daemon
  start_target target busy
  start_target target2 busy
  start other -p "$target2_pid" -r 2^-14
  local format id
  for format in raw hsd; do
    full_disk
    id=$("$HEAPSONDE" start -p "$target_pid" -r 2^-6 --ring-size 16M -o "small/run.$format" --format "$format")
    wait_until "the disk to be full" is "$id" '.output_error != null'
    is "$id" '.output_error | test("No space left")'
    "$HEAPSONDE" stop "$id"
    refused 'incomplete.*No space left' discard "$id"
    readable "small/run.$format"
  done
  more_records other
  end_profile "$other_id"
  in_order other
  wait_until "the workers to end" no_workers
  stop_daemon
  target_is_well target
  target_is_well target2
}

@test "a broken disk under each output of the daemon, at a write and at the close" {
  local format rule id
  start_target target busy
  # What waits to be written is the same of all formats.
  for format in jsonl hsd; do
    for rule in "$WRITE:$PWD/run=$EIO@2" "$CLOSE:$PWD/run=$EIO"; do
      start_failing_daemon "$rule"
      id=$("$HEAPSONDE" start --force -p "$target_pid" -r 2^-14 -o "run.$format" --format "$format")
      if [[ $rule == "$WRITE:"* ]]; then
        wait_until "the write to fail" is "$id" '.output_error != null'
        is "$id" '.output_error | test("Input/output error")'
      else
        wait_until "some records" is "$id" '.records > 100'
        is "$id" '.output_error == null and .state == "sampling"'
      fi
      "$HEAPSONDE" stop "$id"
      refused 'incomplete.*Input/output error' discard "$id"
      [[ $("$HEAPSONDE" status) == 'no profiles' ]]
      nothing_attached "$target_pid"
      kill -TERM "$daemon_pid"
      ended_with 0 "$failing_pid" daemon.err
    done
  done
  target_is_well target
}

# record_failing RULE: a recording of the target into run.$format, under fail-call.
record_failing() {
  status=0
  "$TESTS_BUILD/fail-call" calls "$1" -- "$HEAPSONDE" record --force -p "$target_pid" -r 2^-12 \
    --duration 0.1 --format "$format" -o "run.$format" >out 2>err </dev/null 3>&- || status=$?
}

@test "a broken disk under a recording: at each write in turn, and at the close" {
  start_target target busy
  local format n status
  for format in jsonl raw hsd; do
    # The first is of the beginning, and the last that there are of the end.
    for ((n = 1; n <= 4; n++)); do
      rm -f "run.$format"
      record_failing "$WRITE:$PWD/run=$EIO@$n"
      (($(<calls) >= n)) || break
      # The others go well: one alone that failed is a hole.
      ((status == 1)) || fail "$format, write $n: status $status"
      one_line err 'Input/output error'
      [[ ! -s run.$format ]] || "$HEAPSONDE" export "run.$format" --force -o read.jsonl 2>read.err || [[ $format == jsonl ]]
      nothing_attached "$target_pid"
    done
    ((n > 2)) || fail "$format: only $((n - 1)) writes"
    record_failing "$CLOSE:$PWD/run=$EIO"
    ((status == 1)) || fail "$format, close: status $status"
    one_line err 'Input/output error'
    readable "run.$format"
    nothing_attached "$target_pid"
  done
  target_is_well target
}

@test "a broken disk under exports: at each write in turn, and at the close" {
  local golden=$BATS_TEST_DIRNAME/../golden/growing.hsd to rule n status
  # not_exported RULE: exit 1, one line, and nothing under its name.
  not_exported() {
    status=0
    "$TESTS_BUILD/fail-call" calls "$1" -- "$HEAPSONDE" export "$golden" --to "$to" -o "out.$to" >out 2>err </dev/null 3>&- ||
      status=$?
    (($(<calls) >= n)) || return 0
    ((status == 1)) || fail "$to, $1: status $status" || return
    one_line err 'Input/output error' && [[ ! -e out.$to && $(ls) != *.new* ]]
  }
  for to in jsonl ctf pprof folded speedscope html; do
    for ((n = 1; n <= 40; n++)); do
      not_exported "$WRITE:$PWD/out.$to=$EIO@$n"
      (($(<calls) >= n)) || break
    done
    ((n > 1)) || fail "$to: no write"
    n=1
    rm -f "out.$to"
    not_exported "$CLOSE:$PWD/out.$to=$EIO"
    (($(<calls) >= 1))
  done
}

# cannot_say ARG…: heapsonde ARG… with a full disk as stdout, and without any: each time exit 1.
cannot_say() {
  local status=0
  "$HEAPSONDE" "$@" >/dev/full 2>err </dev/null 3>&- || status=$?
  if ((status != 1)) || not grep -q 'No space left' err; then
    fail "heapsonde $* >/dev/full: status $status, $(cat err)"
    return
  fi
  status=0
  "$HEAPSONDE" "$@" >&- 2>err </dev/null 3>&- || status=$?
  ((status == 1)) && grep -q 'Bad file descriptor' err && return
  fail "heapsonde $* >&-: status $status, $(cat err)"
}

@test "standard output full or closed: each command says so" {
  local golden=$BATS_TEST_DIRNAME/../golden/growing.hsd command id
  start_target target busy
  for command in --version --help version list "residue -p $target_pid" "stat -p $target_pid 0.1 1" \
    "record -p $target_pid -r 2^-14 --duration 0.2" "report $golden" "leaks $golden" "timeline $golden" \
    "diff $golden $golden" "export $golden" "export $golden --to html -o -"; do
    # shellcheck disable=SC2086  # words
    cannot_say $command
  done
  nothing_attached "$target_pid"
  start_daemon
  id=$("$HEAPSONDE" start -p "$target_pid" -r 2^-14 -o run.jsonl)
  for command in status "status $id" "follow $id"; do
    # shellcheck disable=SC2086
    cannot_say $command
  done
  # It is there, though nobody was told its number.
  for command in full closed; do
    start_target "$command" busy
  done
  not "$HEAPSONDE" start -p "$full_pid" >/dev/full
  not "$HEAPSONDE" start -p "$closed_pid" -o closed.jsonl >&-
  [[ $("$HEAPSONDE" status --json | jq -s 'map(.pid) == [$ARGS.positional[] | tonumber]' --args "$target_pid" "$full_pid" "$closed_pid") == true ]]
  is "$id" '.state == "sampling"'
  end_profile "$id"
  stop_daemon
  target_is_well target
}

@test "messages that nobody can read: the recording is as it is, and so is its file" {
  start_target target busy
  local status how
  # The last is a pipe whose only reader has gone.
  for how in '2>/dev/full' '2>&-' '0<&- 1>&- 2>&-' '2> >(exec true)'; do
    status=0
    eval '"$HEAPSONDE" record -v --force -p "$target_pid" -r 2^-14 --duration 0.3 -o run.jsonl' "$how" 3>&- || status=$?
    ((status == 0)) || fail "$how: status $status"
    : >run.err
    in_order run
    # What it cannot say shows in the status all the same.
    status=0
    eval '"$HEAPSONDE" record -p 999999999 -o never.jsonl' "$how" 3>&- || status=$?
    ((status == 1)) && [[ ! -e never.jsonl ]] || fail "$how: status $status"
  done
  target_is_well target
}

@test "a daemon whose messages nobody can read" {
  start_target target busy
  local how status=0
  for_everybody
  export HEAPSONDE_SOCKET=$anywhere/control.sock
  for how in '2>/dev/full' '2>&-' '0<&- 1>&- 2>&-'; do
    eval 'exec "$HEAPSONDE" daemon -v --socket "$HEAPSONDE_SOCKET"' "$how" 3>&- &
    daemon_pid=$!
    children+=("$daemon_pid")
    wait_until "the daemon to answer" answers_or_ended "$daemon_pid"
    start killed -p "$target_pid" -r 2^-14
    more_records killed
    # It would say so.
    kill -KILL "$(workers)"
    wait_until "the profile to finish" is "$killed_id" '.state == "finished" and .reason == "error"'
    start run -p "$target_pid" -r 2^-14
    more_records run
    end_profile "$run_id"
    in_order run
    "$HEAPSONDE" discard "$killed_id"
    kill -TERM "$daemon_pid"
    ended_with 0 "$daemon_pid"
  done
  target_is_well target
}

@test "a folder in which there can be no socket" {
  mkdir full read_only
  mount -t tmpfs -o nr_inodes=1 tmpfs full
  mounts+=("$PWD/full")
  mount -t tmpfs -o ro tmpfs read_only
  mounts+=("$PWD/read_only")
  touch file
  refused 'No space left' daemon --socket "$PWD/full/control.sock"
  refused 'Read-only' daemon --socket "$PWD/read_only/control.sock"
  refused 'Not a directory' daemon --socket "$PWD/file/control.sock"
  refused 'No such file' daemon --socket "$PWD/none/of/them/control.sock"
  refused 'too long|socket' daemon --socket "$PWD/$(printf '%0108d' 0)"
  # Room for the lock and not for the socket.
  mount -t tmpfs -o remount,nr_inodes=2 tmpfs full
  refused 'No space left' daemon --socket "$PWD/full/control.sock"
}
