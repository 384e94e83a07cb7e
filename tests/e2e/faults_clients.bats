#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# What can happen to the daemon's clients and outputs: killed, not read, full. Whoever it
# does not happen to goes on. Needs root and BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers
load daemon_helpers
load faults_helpers

# fed NAME…: the orders target has made half a megabyte of records, and these files have them all. So a
# reader that is held up for whatever time, but reads, loses nothing.
fed() {
  local name
  order target "alloc 0 30000" && order target "minor 0" || return
  # Nothing happens any more, so that all have the same last record in the end.
  have_all() {
    local last name
    last=$(tail -qn 1 "$1.jsonl")
    for name; do [[ $(tail -n 1 "$name.jsonl") == "$last" ]] || return; done
    is "$run_id" ".records == $(grep -c '^{"type":"alloc_' "$1.jsonl")"
  }
  wait_until "the records to be read" have_all "$@"
}

# feed_until FILTER NAME…: until it is true of the status of profile run.
feed_until() {
  local filter=$1 n
  shift
  for ((n = 0; n < 100; n++)); do
    is "$run_id" "$filter" && return
    fed "$@" || return
  done
  fail "fed $n times, and it is not so: $filter"
}

@test "a client killed while it follows: the profile and other followers go on" {
  start_daemon
  start_target target busy
  start run -p "$target_pid" -r 2^-16
  follow one "$run_id"
  follow two "$run_id"
  is "$run_id" '.followers == 2'
  more_records one two
  kill -KILL "$one_pid"
  ended_with 137 "$one_pid"
  wait_until "the daemon to notice" is "$run_id" '.followers == 1'
  more_records run two
  is "$run_id" '.state == "sampling"'
  end_profile "$run_id"
  ended_with 0 "$two_pid" two.err
  in_order run
  [[ $(lost two) == '{}' ]]
  target_is_well target
}

@test "a client killed in the middle of a start: the profile is there, and can be ended" {
  start_daemon
  start_target target busy
  local i
  for i in 1 2 3 4 5; do
    "$HEAPSONDE" start -p "$target_pid" -o "run$i.jsonl" >/dev/null 2>&1 3>&- &
    kill -KILL $!
    wait $! || true
  done
  # Requests that came to the daemon before their clients died are met, at once or a little later; one at
  # most, for it has all domains.
  end_all() {
    local id
    for id in $("$HEAPSONDE" status --json | jq .profile); do
      [[ $(status_of "$id" .state) != sampling ]] || "$HEAPSONDE" stop "$id" || return
      "$HEAPSONDE" discard "$id" || return
    done
    untouched "$target_pid"
  }
  another() { end_all && run_id=$("$HEAPSONDE" start --force -o run.jsonl -p "$target_pid" 3>&-); }
  wait_until "another profile to start" another
  end_profile "$run_id"
  wait_until "the target to be left alone" end_all
  target_is_well target
}

@test "a follower that does not read loses records, counted; the output does not" {
  start_daemon
  start_orders target 1
  start run -p "$target_pid" -r 2^-4
  follow slow "$run_id"
  follow quick "$run_id"
  kill -STOP "$slow_pid"
  # Its queue has 4 MiB; this is more than that and what sockets hold.
  feed_until '.output_bytes > 8000000' quick run
  kill -CONT "$slow_pid"
  loss_told() { fed quick run && grep -q '^{"type":"loss".*"cause":"output_full"' slow.jsonl; }
  wait_until "the slow one to be told" loss_told
  fed quick run slow
  end_profile "$run_id"
  ended_with 0 "$slow_pid" slow.err
  ended_with 0 "$quick_pid" quick.err
  # It has as many records less as it is told.
  jq -e -n 'reduce inputs as $r ({told: 0};
      if $r.type == "loss" and $r.cause == "output_full" then .told += $r.count
      elif $r.type == "summary" then .lost = $r.lost.output_full
      else . end) | .told > 0 and .told == .lost' slow.jsonl
  not grep -q output_full run.jsonl
  not grep -q output_full quick.jsonl
  whole slow
  [[ $(lost run) == '{}' && $(lost quick) == '{}' ]]
  # The counts agree: what the quick one has and the slow one has not.
  local events='^{"type":"(alloc|promote|dealloc|domain|unknown|major_cycle|counters)'
  local n_quick n_slow n_lost n_before
  n_quick=$(grep -Ec "$events" quick.jsonl)
  n_slow=$(grep -Ec "$events" slow.jsonl)
  n_lost=$(lost slow | jq .output_full)
  # The slow one began earlier: by what it has before the quick one's first record.
  n_before=$(grep -E "$events" slow.jsonl | grep -Fxn -m 1 -f <(grep -E -m 1 "$events" quick.jsonl) | cut -d: -f1)
  echo "quick $n_quick, slow $n_slow of which $n_before not later than quick's first, lost $n_lost"
  ((n_quick == n_slow - (n_before - 1) + n_lost))
  tell target stop
  ended_with 0 "$target_pid" target.err
}

@test "an output that nobody reads loses records, counted; followers do not" {
  start_daemon
  start_orders target 1
  local fifo
  mkfifo run.jsonl
  # A reader that has it open, and no more: as a file on a server that is stuck.
  exec {fifo}<>run.jsonl
  start run -p "$target_pid" -r 2^-4
  start_target target2 busy
  start other -p "$target2_pid" -r 2^-14
  follow quick "$run_id"
  feed_until '.lost.output_full > 0' quick
  fed quick
  more_records other
  is "$run_id" '.state == "sampling" and .output_error == null'
  "$HEAPSONDE" stop "$run_id"
  # It gives up what waits after some seconds, and says so.
  local status=0
  "$HEAPSONDE" discard "$run_id" 2>discard.err || status=$?
  ((status == 1))
  [[ $(wc -l <discard.err) == 1 ]]
  grep -Eiq 'incomplete.*time' discard.err
  ended_with 0 "$quick_pid" quick.err
  whole quick
  [[ $(lost quick) == '{}' ]]
  more_records other
  nothing_attached "$target_pid"
  end_profile "$other_id"
  tell target stop
  ended_with 0 "$target_pid" target.err
  target_is_well target2
}

@test "an output that is read again says what it has lost" {
  start_daemon
  start_target target busy
  local fifo
  mkfifo run.jsonl
  exec {fifo}<>run.jsonl
  start run -p "$target_pid" -r 2^-11
  wait_until "the output to be full" is "$run_id" '.lost.output_full > 0'
  cat <&"$fifo" >read.jsonl 3>&- &
  local reader=$!
  children+=("$reader")
  wait_until "the loss to be told" grep -q '^{"type":"loss".*"cause":"output_full"' read.jsonl
  end_profile "$run_id"
  wait_until "the summary" grep -q '^{"type":"summary"' read.jsonl
  kill "$reader"
  jq -e -n 'reduce inputs as $r ({told: 0};
      if $r.type == "loss" and $r.cause == "output_full" then .told += $r.count
      elif $r.type == "summary" then .lost = $r.lost.output_full
      else . end) | .told > 0 and .told == .lost' read.jsonl
  target_is_well target
}

@test "a full disk: the output ends on a whole line, and all else goes on" {
  start_daemon
  start_target target busy
  start_target target2 busy
  mkdir small
  mount -t tmpfs -o size=256k tmpfs small
  mounts+=("$PWD/small")
  local id status=0
  id=$("$HEAPSONDE" start -p "$target_pid" -r 2^-16 -o small/run.jsonl)
  follow quick "$id"
  start other -p "$target2_pid" -r 2^-16
  wait_until "the disk to be full" is "$id" '.output_error != null'
  is "$id" '.output_error | test("No space left")'
  "$HEAPSONDE" status "$id" | grep -q 'No space left'
  more_records quick other
  is "$id" '.state == "sampling"'
  (($(wc -c <small/run.jsonl) > 100000))
  whole small/run
  "$HEAPSONDE" stop "$id"
  "$HEAPSONDE" discard "$id" 2>discard.err || status=$?
  ((status == 1))
  [[ $(wc -l <discard.err) == 1 ]]
  grep -q 'incomplete.*No space left' discard.err
  whole small/run
  ended_with 0 "$quick_pid" quick.err
  [[ $(lost quick) == '{}' ]]
  more_records other
  end_profile "$other_id"
  in_order other
  target_is_well target
  target_is_well target2
}

@test "a full disk under a recording through the daemon: exit 1, and the reason" {
  start_daemon
  start_target target busy
  local status=0
  "$HEAPSONDE" record --socket "$HEAPSONDE_SOCKET" -p "$target_pid" -r 2^-10 --duration 1 -o /dev/full \
    2>record.err || status=$?
  ((status == 1))
  grep -q 'No space left' record.err
  nothing_attached "$target_pid"
  target_is_well target
}
