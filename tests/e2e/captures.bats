#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# Compressed captures (record -o x.hsd): they hold what JSON lines would have, from root's
# recorder and from the daemon; what is cut off is readable up to there.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers
load daemon_helpers

# same_program NAME NAME: two runs of tests/programs/stack made the same allocations with the
# same stacks, but for the order between threads and the addresses.
same_program() {
  local name
  for name; do
    jq -n -r --arg unit Stack -f "$LIB/canonical.jq" "$name.jsonl" >"$name.txt"
  done
  [[ -s $1.txt ]]
  diff -u "$1.txt" "$2.txt" | head -n 20
  cmp "$1.txt" "$2.txt"
}

# exported NAME: NAME.hsd as NAME.jsonl, in good order, and nothing said about it.
exported() {
  "$HEAPSONDE" export "$1.hsd" --force -o "$1.jsonl" 2>"$1.err" || return
  [[ ! -s $1.err ]] || fail "$(<"$1.err")" || return
  in_order "$1"
}

n_allocs() {
  "$HEAPSONDE" export -q "$1" | grep -c '^{"type":"alloc_'
}

has_allocs() {
  local n
  n=$(n_allocs "$1" 2>/dev/null) && ((n >= $2))
}

@test "record -o x.hsd has what JSON lines have, and is a zstd file" {
  record_run direct -r 1 -- stack
  "$HEAPSONDE" record -r 1 -o run.hsd -- "$TESTS_BUILD/stack" >run.out
  exported run
  same_program direct run
  zstd -q -t run.hsd
  # What is in it is a plain capture. Both are read from a pipe, too.
  zstd -q -d -c run.hsd >plain.hsd
  [[ $(head -c 8 plain.hsd) == heapsond ]]
  (($(wc -c <run.hsd) * 4 < $(wc -c <plain.hsd)))
  "$HEAPSONDE" export plain.hsd | cmp run.jsonl
  "$HEAPSONDE" export - <plain.hsd | cmp run.jsonl
  # shellcheck disable=SC2002  # a pipe is what is tested
  cat run.hsd | "$HEAPSONDE" export - | cmp run.jsonl
  # Compressed by somebody else, in several frames.
  split -b 100K plain.hsd piece.
  zstd -q -19 piece.*
  cat piece.*.zst | "$HEAPSONDE" export - | cmp run.jsonl
}

@test "the samples in a compressed capture stand for what was allocated" {
  compressed() {
    "$HEAPSONDE" record -r 2^-5 --force -o run.hsd -- "$TESTS_BUILD/lists" 200000 >run.out || return
    exported run || return
    "$LIB/counters" run.tsv run.out || return
    "$LIB/stats" -v counters=1 run.tsv run.out
  }
  statistically compressed
}

@test "--format overrides the name" {
  "$HEAPSONDE" record -r 2^-5 --format jsonl -o lines.hsd -- "$TESTS_BUILD/lists" 3000 >run.out
  [[ $(head -c 16 lines.hsd) == '{"type":"header"' ]]
  "$HEAPSONDE" record -r 2^-5 --format raw -o raw.hsd -- "$TESTS_BUILD/lists" 3000 >run.out
  [[ $(head -c 8 raw.hsd) == heapsond ]]
  "$HEAPSONDE" record -r 2^-5 --format hsd -o run.jsonl -- "$TESTS_BUILD/lists" 3000 >run.out
  zstd -q -d -c --no-check run.jsonl >run.plain
  [[ $(head -c 8 run.plain) == heapsond ]]
  # To a pipe.
  "$HEAPSONDE" record -r 2^-5 --format hsd -- "$TESTS_BUILD/lists" 3000 2>run.err |
    tail -c +1 >mixed.hsd
  # The program writes to the same place, so this only has to be there.
  [[ -s mixed.hsd ]]
}

@test "a recorder that is killed leaves a capture that is good up to there" {
  start_target target busy
  "$HEAPSONDE" record -p "$target_pid" -r 2^-10 -o run.hsd >run.out 2>run.err </dev/null 3>&- &
  local recorder=$! n
  children+=("$recorder")
  # It can be read while it is written.
  wait_until "some records" has_allocs run.hsd 1000
  n=$(n_allocs run.hsd)
  wait_until "more records" has_allocs run.hsd $((n + 1000))
  kill -KILL "$recorder"
  wait_until "the recorder to be gone" has_ended "$recorder"
  "$HEAPSONDE" export run.hsd -o run.jsonl 2>export.err
  grep -q 'was cut off' export.err
  (($(grep -c '^{"type":"alloc_' run.jsonl) >= n + 1000))
  jq -e -n 'first(inputs) | .type == "header"' run.jsonl
  # Cut anywhere, too: never refused, and never more than before.
  local size at last=0 now
  size=$(wc -c <run.hsd)
  for at in 1 2 3 4 5 8 20 100 1000 $((size / 3)) $((size / 2)) $((size - 9)) $((size - 1)); do
    head -c "$at" run.hsd >cut.hsd
    "$HEAPSONDE" export cut.hsd --force -o cut.jsonl 2>export.err
    grep -q 'was cut off' export.err
    now=$(wc -l <cut.jsonl)
    ((now >= last))
    head -n "$now" run.jsonl | cmp cut.jsonl
    last=$now
  done
  wait_until "the target to be left alone" untouched "$target_pid"
}

@test "a full disk under a compressed capture: what was written can be exported" {
  start_target target busy
  mkdir small
  mount -t tmpfs -o size=64k tmpfs small
  mounts+=("$PWD/small")
  local status=0
  "$HEAPSONDE" record -p "$target_pid" -r 2^-4 -o small/run.hsd 2>run.err </dev/null || status=$?
  ((status == 1))
  grep -Eq 'No space left.*readable' run.err
  "$HEAPSONDE" export small/run.hsd -o run.jsonl 2>export.err
  grep -q 'was cut off' export.err
  (($(grep -c '^{"type":"alloc_' run.jsonl) > 1000))
  wait_until "the target to be left alone" untouched "$target_pid"
  tell target stop
  ended_with 0 "$target_pid" target.err
}

@test "the daemon writes compressed captures, to files and to followers" {
  start_daemon
  record_run direct -r 1 -- stack
  "$HEAPSONDE" record --socket "$HEAPSONDE_SOCKET" -r 1 -o run.hsd -- "$TESTS_BUILD/stack" >run.out
  exported run
  same_program direct run
  zstd -q -t run.hsd
  start_target target busy
  [[ $("$HEAPSONDE" start -p "$target_pid" -r 2^-12 -o one.hsd) == 2 ]]
  "$HEAPSONDE" follow 2 --format hsd >follow.hsd 3>&- &
  local follower=$!
  children+=("$follower")
  wait_until "some records" has_allocs one.hsd 1000
  wait_until "some records" has_allocs follow.hsd 1000
  "$HEAPSONDE" stop 2
  "$HEAPSONDE" discard 2
  ended_with 0 "$follower"
  exported one
  # Blocks that a late follower has not seen allocated may die there.
  "$HEAPSONDE" export follow.hsd >follow.jsonl 2>follow.err
  [[ ! -s follow.err ]]
  # Of the same blocks they say the same.
  jq -c 'select(.type == "alloc_minor") | [.id, .time, .size]' one.jsonl | sort >one.txt
  jq -c 'select(.type == "alloc_minor") | [.id, .time, .size]' follow.jsonl | sort >follow.txt
  (($(wc -l <follow.txt) >= 1000))
  [[ -z $(comm -13 one.txt follow.txt) ]]
}

@test "a daemon that is killed leaves compressed captures that are good up to there" {
  start_daemon
  start_target target busy
  "$HEAPSONDE" start -p "$target_pid" -r 2^-12 -o run.hsd >id
  wait_until "some records" has_allocs run.hsd 2000
  # shellcheck disable=SC2046  # several words
  kill -KILL "$daemon_pid" $(workers)
  "$HEAPSONDE" export run.hsd -o run.jsonl 2>export.err
  grep -q 'was cut off' export.err
  (($(grep -c '^{"type":"alloc_' run.jsonl) >= 2000))
}

@test "the header has the host and the mappings, with build ids" {
  "$HEAPSONDE" record -r 2^-5 -o run.hsd -- "$TESTS_BUILD/lists" 3000 >run.out
  "$HEAPSONDE" export run.hsd | head -n 1 >header.json
  [[ $(jq -r .host header.json) == "$(uname -n)" ]]
  local id
  id=$(LC_ALL=C readelf -n "$TESTS_BUILD/lists" | awk '/Build ID:/ { print $3 }')
  [[ -n $id ]]
  jq -e --arg exe "$(realpath "$TESTS_BUILD/lists")" --arg id "$id" \
    '[.mappings[] | select(.file == $exe)]
     | length >= 1 and all(.build_id == $id and .start < .end and .offset >= 0)' header.json
}
