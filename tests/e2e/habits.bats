#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# What all commands have in common: -h, -q, -v, one line for an error, and no colour where
# nobody wants it. Needs root and BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers
load daemon_helpers

# commands: all that --help names.
commands() {
  "$HEAPSONDE" --help | awk '/^  [a-z]/ { print $1 }'
}

@test "-h, -?, --help and heapsonde help are the same, on stdout, exit 0" {
  local command
  commands >names
  (($(wc -l <names) >= 12))
  while read -r command; do
    "$HEAPSONDE" "$command" --help >help 2>err
    grep -q "^Usage: heapsonde $command " help
    grep -q -- '-h, --help' help
    grep -q -- '-q, --quiet' help
    grep -q -- '-v, --verbose' help
    "$HEAPSONDE" "$command" -h 2>>err | cmp help
    "$HEAPSONDE" "$command" '-?' 2>>err | cmp help
    "$HEAPSONDE" help "$command" 2>>err | cmp help
    "$HEAPSONDE" "$command" --usage >usage 2>>err
    grep -q "^Usage: heapsonde $command " usage
    [[ ! -s err ]] || fail "$command: $(<err)"
  done <names
  "$HEAPSONDE" help >all
  cmp all <("$HEAPSONDE" -h)
  cmp all <("$HEAPSONDE" --help)
}

@test "help names each thing once" {
  local command
  commands >names
  [[ -z $(uniq -d < <(sort names)) ]]
  while read -r command; do
    # Options, and what lists of formats and the like begin with.
    "$HEAPSONDE" "$command" --help | grep -oE '^ +(-., +)?--[a-z-]+|^  [a-z]+  ' | sort | uniq -d >twice
    [[ ! -s twice ]] || fail "$command: $(<twice)"
  done <names
}

@test "a wrong usage is one line and exit 2, of every command, also with -q" {
  local command arguments status
  commands >names
  while read -r command; do
    for arguments in --no-such-option "-q --no-such-option"; do
      status=0
      # shellcheck disable=SC2086  # words
      "$HEAPSONDE" "$command" $arguments >out 2>err </dev/null || status=$?
      ((status == 2)) || fail "$command $arguments: exit $status"
      (($(wc -l <err) == 1)) || fail "$command $arguments: $(<err)"
      [[ ! -s out ]]
    done
  done <names
  for arguments in "help no-such-command" "help top record" no-such-command -v "-q list" ''; do
    status=0
    # shellcheck disable=SC2086  # words
    "$HEAPSONDE" $arguments >out 2>err || status=$?
    ((status == 2)) || fail "$arguments: exit $status"
    [[ -z $arguments ]] || (($(wc -l <err) == 1)) || fail "$arguments: $(<err)"
    [[ ! -s out ]]
  done
}

@test "a wrong value is one line and exit 2, of every option of every command" {
  local command option n=0 status also
  commands >names
  while read -r command; do
    "$HEAPSONDE" "$command" --help |
      sed -nE 's/^ +(-., +)?(--[a-z-]+)=(ADDR:PORT|BYTES|FORMAT|ID|KINDS?|METRIC|N|P|PID|RATE|ROWS|S|SOURCE|TIME|WHAT)( .*|$)/\2/p' >options
    # What it wants besides, or it would complain of that.
    case $command in
      record | start | stat | top) also='-p 1' ;;
      export | report | leaks | timeline) also=/dev/null ;;
      diff) also='/dev/null /dev/null' ;;
      follow) also=1 ;;
      *) also= ;;
    esac
    while read -r option; do
      status=0
      # shellcheck disable=SC2086  # words
      "$HEAPSONDE" "$command" $also "$option" 'no such' >out 2>err </dev/null || status=$?
      ((status == 2)) || fail "$command $option: exit $status: $(<err)"
      (($(wc -l <err) == 1)) || fail "$command $option: $(<err)"
      grep -q 'no such' err || fail "$command $option does not name what is wrong: $(<err)"
      [[ ! -s out ]]
      ((++n))
    done <options
  done <names
  # As many as there are, so that none is passed over.
  echo "$n options"
  ((n >= 55))
}

@test "record: a note says that the program has ended, -q none, -v how it was attached to" {
  local how
  for how in '' -q -v '-v -q' '-q -v'; do
    start_target target busy
    # shellcheck disable=SC2086  # words
    start_record "run" $how -p "$target_pid" -r 2^-12
    tell target stop
    ended_with 0 "$target_pid" target.err
    ended_with 0 "$run_pid" run.err
    in_order run
    case $how in
      *-q) [[ ! -s run.err ]] || fail "$how: $(<run.err)" ;;
      '') [[ $(<run.err) == "heapsonde: PID $target_pid has ended" ]] || fail "$(<run.err)" ;;
      *)
        grep -q "^heapsonde: PID $target_pid runs .*busy, OCaml 5\.[0-9.]*, 1 domain$" run.err
        grep -qF "kernel $(uname -r): " run.err
        grep -Eq 'attached in [0-9.]+ ms: rate 2\^-12 \(probe alloc_12\), 64 frames' run.err
        grep -q 'ring buffer of 33554432 bytes' run.err
        grep -Eq 'detached in [0-9.]+ ms' run.err
        ;;
    esac
    rm -f run.* target.*
  done
}

@test "stat: -v says how it was attached to, and the counters stay alone on stdout" {
  start_target target busy
  "$HEAPSONDE" stat -v -p "$target_pid" 0.2 1 >loud.out 2>loud.err
  "$HEAPSONDE" stat -q -p "$target_pid" 0.2 1 >quiet.out 2>quiet.err
  grep -Eq '^heapsonde: GC probes attached in [0-9.]+ ms$' loud.err
  [[ ! -s quiet.err ]]
  [[ $(head -n 1 loud.out) == "$(head -n 1 quiet.out)" ]]
}

@test "-q leaves errors, as one line, and their exit status" {
  local status=0
  "$HEAPSONDE" record -q -p 4194304 >out 2>err || status=$?
  ((status == 1))
  [[ $(<err) == 'heapsonde: no process with PID 4194304' ]]
}

@test "list: -q is silent about what one may not look at" {
  for_everybody
  as_user 65534 "$HEAPSONDE" list >out 2>err
  grep -q 'could not be looked at' err
  as_user 65534 "$HEAPSONDE" list -q >out 2>err
  [[ ! -s err ]]
}

@test "export: a capture that is cut off is a note, and none with -q" {
  "$HEAPSONDE" record -r 2^-3 -o run.hsd --format raw -- "$TESTS_BUILD/lists" 3000 >run.out
  head -c $(($(wc -c <run.hsd) / 2)) run.hsd >cut.hsd
  "$HEAPSONDE" export cut.hsd >cut.jsonl 2>err
  grep -q '^heapsonde: cut.hsd was cut off' err
  "$HEAPSONDE" export -q cut.hsd 2>err | cmp cut.jsonl
  [[ ! -s err ]]
}

@test "the daemon says what happens, with -q only what goes wrong, with -v also who asks" {
  start_daemon
  stop_daemon
  grep -q '^heapsonde: listening on' daemon.err
  not grep -q ' asks: ' daemon.err
  rm daemon.err
  start_daemon -q
  start_target target busy
  [[ $("$HEAPSONDE" start -p "$target_pid" 3>&-) == 1 ]]
  # What goes wrong: its worker is killed.
  kill -KILL "$(workers)"
  said_so() { grep -q 'was killed by signal 9' daemon.err; }
  wait_until "the daemon to say that a worker has gone" said_so
  stop_daemon
  not grep -Eq 'listening|started|stopping' daemon.err
  rm daemon.err
  start_daemon -v
  [[ $("$HEAPSONDE" start -p "$target_pid" 3>&-) == 1 ]]
  "$HEAPSONDE" status -v >out 2>err
  grep -qx "heapsonde: connected to the daemon at $HEAPSONDE_SOCKET" err
  "$HEAPSONDE" stop 1
  "$HEAPSONDE" discard 1
  stop_daemon
  grep -q '^heapsonde: user 0 asks: start$' daemon.err
  grep -q "^heapsonde: worker of PID $target_pid: process [0-9]*$" daemon.err
  grep -q '^heapsonde: user 0 asks: discard$' daemon.err
}

@test "sizes, durations and rates may be written as 512k, 500ms and 2^-10" {
  "$HEAPSONDE" record --interval 8k --ring-size 512k --duration 10m --track size=1k- \
    -o run.jsonl -- "$TESTS_BUILD/arrays" >run.out 2>run.err || fail "exit $?: $(cat run.err)"
  jq -e -n 'first(inputs) | .rate == 8 / 8192' run.jsonl
  jq -n 'reduce (inputs | select(.size?)) as $r ({n: 0, small: 0};
    .n += 1 | .small += (if $r.size < 1024 then 1 else 0 end))' run.jsonl >sizes
  cat sizes
  jq -e ".small == 0 and .n > 0" sizes
}

# on_terminal COMMAND: its output on a terminal of its own, which script makes.
on_terminal() {
  script -qec "$1" /dev/null >out </dev/null
  grep -q . out
}

@test "colour is for terminals that know it, and for nobody with NO_COLOR" {
  start_target target busy
  "$HEAPSONDE" record -q -r 2^-8 -o run.hsd -- "$TESTS_BUILD/lists" 30000 >run.out
  local command
  export TERM=xterm-256color
  unset NO_COLOR
  # One that has colours, or nothing of this is a test.
  on_terminal "$HEAPSONDE report run.hsd"
  grep -q $'\e\[1m' out
  for command in "report run.hsd" "leaks run.hsd" "timeline run.hsd" "diff run.hsd run.hsd" \
    list version "stat -p $target_pid 0.2 1" --help; do
    # shellcheck disable=SC2086  # words
    "$HEAPSONDE" $command >out 2>&1
    not grep -q $'\e' out
    NO_COLOR=1 on_terminal "$HEAPSONDE $command"
    not grep -q $'\e' out
    TERM=dumb on_terminal "$HEAPSONDE $command"
    not grep -q $'\e' out
  done
}
