#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# What heapsonde asks of the kernel fails: each call of bpf and perf_event_open in turn, for want of
# memory or of permission, files beyond a limit, writes to a broken disk. Each time it
# either does without or ends with one line and exit status 1, and leaves nothing. Needs root and
# BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers
load daemon_helpers
load faults_helpers

# Numbers of system calls (x86-64), commands of bpf, and errors.
BPF=321 PERF_EVENT_OPEN=298 WRITE=1
MAP_CREATE=0 PROG_LOAD=5 LINK_CREATE=28
EPERM=1 EIO=5 ENOMEM=12 EINVAL=22 EMFILE=24

# A recording of the target as it is made here: short, with all that one has.
recording=(record --force -r 2^-14 --duration 0.05 -o run.jsonl)

# failing RULE… -- COMMAND…: where calls fail. Sets status; its messages are in
# call.err; the calls that there were are in calls.
failing() {
  status=0
  "$TESTS_BUILD/fail-call" calls "$@" >call.out 2>call.err </dev/null 3>&- || status=$?
}

# one_line: it has ended with status 0, or with 1 and one line that is no internal matter.
one_line() {
  case $status in
    0) return ;;
    1) (($(wc -l <call.err) == 1)) && grep -q '^heapsonde: [a-zA-Z]' call.err && return ;;
  esac
  cat call.err
  fail "$*: exit status $status"
}

# left_alone PID: nothing is left there nor in the kernel.
left_alone() {
  "$HEAPSONDE" residue -p "$1" >residue.out 2>residue.err && grep -q 'nothing left$' residue.out && return
  cat residue.out residue.err
  fail "something is left"
}

# each_call CALL ERRNO RULE…: the first call of this kind fails in one run, the second one in
# the next, until a run has had fewer. The target is recorded each time.
each_call() {
  local call=$1 error=$2 n calls failed=0 done_without=0
  shift 2
  for ((n = 1; ; n++)); do
    rm -f run.jsonl
    failing "$call=$error@$n" "$@" -- "$HEAPSONDE" "${recording[@]}" -p "$target_pid"
    one_line "call $n of $call" && left_alone "$target_pid" || return
    ((calls = $(head -n 1 calls))) || true
    ((status)) && ((calls >= n)) && failed=$((failed + 1))
    ((status)) || {
      [[ $(tail -n 1 run.jsonl | jq -r .type) == summary ]] || fail "call $n of $call: exit 0, but no summary" || return
      done_without=$((done_without + 1))
    }
    ((calls >= n)) || break
    ((n < 1000)) || fail "no end to the calls of $call" || return
  done
  echo "$((n - 1)) calls of $call: $failed failures that ended it, $done_without that did not"
  # The last run had none that failed.
  ((status == 0 && failed > 0)) || fail "the run without a failure: status $status; $failed failures"
}

@test "each call of bpf fails in turn, for want of memory" {
  start_target target busy
  each_call $BPF $ENOMEM
  target_is_well target
}

@test "each call of perf_event_open fails in turn, where a kernel has no other uprobes" {
  start_target target busy
  each_call $PERF_EVENT_OPEN $EMFILE "$BPF:$LINK_CREATE=$EINVAL"
  target_is_well target
}

@test "no memory, or no permission, for any map, program or link" {
  start_target target busy
  local rule
  for rule in $MAP_CREATE=$ENOMEM $MAP_CREATE=$EPERM $PROG_LOAD=$ENOMEM $PROG_LOAD=$EPERM; do
    failing "$BPF:$rule" -- "$HEAPSONDE" "${recording[@]}" -p "$target_pid"
    ((status == 1)) || fail "$rule: status $status"
    one_line "$rule"
    left_alone "$target_pid"
  done
  failing "$BPF:$MAP_CREATE=$ENOMEM" -- "$HEAPSONDE" stat -p "$target_pid" 0.1 1
  ((status == 1))
  one_line stat
  target_is_well target
}

@test "files beyond a limit: whatever it is it ends with one line, until it is enough" {
  start_target target busy
  local limit
  for ((limit = 5; ; limit++)); do
    status=0
    # The shell opens them before there is a limit.
    (
      ulimit -n "$limit"
      exec "$HEAPSONDE" "${recording[@]}" -p "$target_pid"
    ) >call.out 2>call.err </dev/null 3>&- {target_in}>&- || status=$?
    one_line "with $limit files"
    # Whether /proc is there, and shows the process, cannot be told then.
    not grep -Eq 'mount|hidden' call.err
    left_alone "$target_pid"
    ((status)) || break
    ((limit < 200)) || fail "200 files are not enough"
  done
  # Eight programs, six maps and eight links are among them.
  ((limit > 22))
  target_is_well target
}

@test "a disk that cannot be written: of each format exit 1 and the reason, wherever it is" {
  start_target target busy
  local format n
  for format in jsonl raw hsd; do
    for n in 1 2 3; do
      failing "$WRITE=$EIO@$n" -- "$HEAPSONDE" record --force -r 2^-8 --duration 2 --format "$format" \
        -o "run.$format" -p "$target_pid"
      # What is written besides to wake threads up may fail without harm.
      one_line "$format, write $n"
      ((status == 0)) || grep -q 'Input/output error' call.err
      left_alone "$target_pid"
    done
    failing "$WRITE=$EIO" -- "$HEAPSONDE" record --force -r 2^-8 --duration 2 --format "$format" \
      -o "run.$format" -p "$target_pid"
    # It cannot even say so, on stderr: that is written as well.
    ((status == 1)) || fail "$format: status $status"
    left_alone "$target_pid"
  done
  target_is_well target
}

@test "a full disk under a capture: what was written can be read" {
  start_target target busy
  mkdir small
  mount -t tmpfs -o size=32k tmpfs small
  mounts+=("$PWD/small")
  status=0
  "$HEAPSONDE" record -p "$target_pid" -r 2^-8 -o small/run.hsd >call.out 2>call.err </dev/null || status=$?
  ((status == 1))
  one_line "a full disk"
  grep -q 'No space left' call.err
  "$HEAPSONDE" export --to jsonl small/run.hsd -o run.jsonl 2>export.err || true
  jq -e -n 'reduce inputs as $r (0; . + 1) | . > 100' run.jsonl
  left_alone "$target_pid"
  target_is_well target
}
