#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# The files that -o names: existing ones are refused without --force, names are expanded,
# and nothing half-made is left. Progress bars.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers
load daemon_helpers

@test "a file that exists is refused, and stays as it is; --force replaces it" {
  start_daemon
  start_target target busy
  "$TESTS_BUILD/make-capture" -n 1000 >in.hsd
  echo precious >old
  refused 'old exists; --force replaces it' record -p "$target_pid" --duration 0.2 -o old
  refused 'old exists; --force replaces it' record -o old -- "$TESTS_BUILD/lists" 1000
  refused 'old exists; --force replaces it' start -p "$target_pid" -o old
  refused 'old exists; --force replaces it' export in.hsd -o old
  [[ $(<old) == precious ]]
  [[ $("$HEAPSONDE" status) == 'no profiles' ]]
  [[ $(ls) != *.new* ]]
  chmod 640 old
  "$HEAPSONDE" export in.hsd --force -o old
  jq -e -n 'reduce inputs as $r (0; . + 1) | . > 1000' old
  [[ $(stat -c %a old) == 640 ]]
  "$HEAPSONDE" record -p "$target_pid" --duration 0.2 --force -o old 2>record.err
  jq -e -n 'first(inputs).pid' old
  [[ $("$HEAPSONDE" start -p "$target_pid" --force -o old) == 1 ]]
  "$HEAPSONDE" stop 1
  "$HEAPSONDE" discard 1
  jq -e -n 'first(inputs).pid' old
}

@test "what is no regular file is not in the way" {
  "$TESTS_BUILD/make-capture" -n 1000 >in.hsd
  "$HEAPSONDE" export in.hsd >out.jsonl
  "$HEAPSONDE" export in.hsd -o /dev/null
  "$HEAPSONDE" export in.hsd -o /dev/stdout | cmp - out.jsonl
  "$HEAPSONDE" export in.hsd -o - | cmp - out.jsonl
  # Also where that is a file, which is appended to if so opened.
  echo before >log
  "$HEAPSONDE" export in.hsd -o /dev/stdout >>log
  [[ $(head -n 1 log) == before ]]
  tail -n +2 log | cmp - out.jsonl
  mkfifo pipe
  cat pipe >from_pipe &
  "$HEAPSONDE" export in.hsd -o pipe
  wait $!
  cmp from_pipe out.jsonl
  "$HEAPSONDE" record -r 2^-10 -o /dev/null -- "$TESTS_BUILD/lists" 1000 >lists.out
}

@test "%p, %t, %h and %% in file names" {
  start_daemon
  start_target target busy
  local before after name
  before=$(date -u +%Y%m%dT%H%M%SZ)
  "$HEAPSONDE" record -p "$target_pid" --duration 0.2 -o '%h.%p.%t.%%.jsonl' 2>record.err
  after=$(date -u +%Y%m%dT%H%M%SZ)
  name=$(ls ./*.%.jsonl)
  [[ $name =~ ^\./"$(uname -n)"\."$target_pid"\.([0-9]{8}T[0-9]{6}Z)\.%\.jsonl$ ]]
  [[ ! ${BASH_REMATCH[1]} < $before && ! ${BASH_REMATCH[1]} > $after ]]
  # The process of a command, and through the daemon.
  "$HEAPSONDE" record -r 2^-10 -o 'command.%p.jsonl' -- "$TESTS_BUILD/lists" 1000 >lists.out
  name=$(ls command.*)
  [[ $(jq -n 'first(inputs).pid' "$name") == "$(tr -dc 0-9 <<<"$name")" ]]
  "$HEAPSONDE" record --socket "$HEAPSONDE_SOCKET" -r 2^-10 -o 'through.%p.jsonl' -- "$TESTS_BUILD/lists" 1000 \
    >lists.out
  name=$(ls through.*)
  [[ $(jq -n 'first(inputs).pid' "$name") == "$(tr -dc 0-9 <<<"$name")" ]]
  "$HEAPSONDE" start -p "$target_pid" -o 'start.%p.hsd' >id
  [[ -e start.$target_pid.hsd ]]
  local bad status
  for bad in %q 100% a%; do
    status=0
    "$HEAPSONDE" record -p "$target_pid" -o "$bad" 2>bad.err || status=$?
    ((status == 2))
    grep -q 'no other %' bad.err
  done
}

@test "an export that fails leaves nothing under its name" {
  "$TESTS_BUILD/make-capture" -n 20000 >in.hsd
  # A chunk of a kind that there is none of, in the middle.
  {
    head -c 100000 in.hsd
    printf '\377%.0s' {1..64}
  } >damaged.hsd
  refused 'damaged at byte' export damaged.hsd -o out.jsonl
  [[ ! -e out.jsonl ]]
  echo precious >old
  refused 'damaged at byte' export damaged.hsd --force -o old
  [[ $(<old) == precious ]]
  [[ $(ls) != *.new* ]]
  refused 'No space left' export in.hsd -o /dev/full
  zstd -q in.hsd -o compressed.hsd
  printf '\0\0\0\0' | dd of=compressed.hsd bs=1 seek=5000 conv=notrunc status=none
  refused 'damaged' export compressed.hsd -o out.jsonl
  [[ ! -e out.jsonl ]]
}

@test "a long export shows its progress on a terminal, and only there" {
  "$TESTS_BUILD/make-capture" -n 500000 >in.hsd
  "$HEAPSONDE" export in.hsd --force -o out.jsonl 2>out.err
  [[ ! -s out.err ]]
  script -q -e -c "'$HEAPSONDE' export in.hsd --force -o out.jsonl" typescript >/dev/null
  grep -q 'jsonl \[#* *\].*of 6[0-9] MiB' typescript
  # Erased in the end.
  [[ $(tail -c 100 typescript | tr -d '\n') == *$'\r\e[K'* ]]
  script -q -e -c "'$HEAPSONDE' export in.hsd -q --force -o out.jsonl" typescript >/dev/null
  not grep -q '%' typescript || fail "-q is not quiet"
}
