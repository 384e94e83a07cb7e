#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# Processes that come and go faster than one can look: whatever is done to one that has just
# ended is either done or a clear error, nothing is left, and the daemon does not grow. Needs root and
# BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers
load daemon_helpers

# A storm of programs that live for between some ms and half a second, until the file `calm`
# is there. They are of an executable of this test's own: nobody else is attached to that.
storm() {
  local words
  while [[ ! -e calm ]]; do
    for words in 100 1000 100000 3000000; do
      ./lists "$words" >/dev/null &
    done
    wait
  done
}

start_storm() {
  cp "$TESTS_BUILD/lists" .
  storm 3>&- &
  storm_pid=$!
  children+=("$storm_pid")
  wait_until "the storm" newest
}

end_storm() {
  touch calm
  ended_with 0 "$storm_pid"
}

# newest: the PID of the youngest of them, or one that has just ended, in $pid.
newest() {
  local found
  found=$(pgrep -n -P "$storm_pid" -x lists) && pid=$found
}

# attempt ARG…: heapsonde ARG… ends with 0, or with 1 and one line: the process has ended.
attempt() {
  local status=0
  "$HEAPSONDE" "$@" >attempt.out 2>attempt.err </dev/null 3>&- || status=$?
  if ((status == 0)); then
    done_=$((done_ + 1))
  elif ((status == 1)) && (($(wc -l <attempt.err) == 1)) &&
    grep -Eqx "heapsonde: (process $pid has ended|no process with PID $pid)" attempt.err; then
    refused_=$((refused_ + 1))
  else
    cat attempt.err
    fail "heapsonde $*: exit status $status"
  fi
}

# No link into the program, of whichever process.
no_link() {
  [[ -z $(bpftool -j link show | jq --arg path "$PWD/lists" '.[] | select(.path == $path)') ]]
}

@test "processes that vanish: list, residue, record and stat" {
  local i pid done_=0 refused_=0
  start_storm
  for ((i = 0; i < 8; i++)); do
    "$HEAPSONDE" list >list.out
    newest || true
    attempt residue -p "$pid"
    newest || true
    attempt record --force -p "$pid" -r 2^-8 --duration 1 -o run.jsonl
    newest || true
    attempt stat -p "$pid" 0.1 1
  done
  end_storm
  ((done_ + refused_ == 24))
  wait_until "the links to go" no_link
}

open_files() { find "/proc/$daemon_pid/fd" -mindepth 1 | wc -l; }
resident_kib() { awk '$1 == "VmRSS:" { print $2 }' "/proc/$daemon_pid/status"; }

# discard_all: what the daemon has, once it has finished.
all_finished() {
  "$HEAPSONDE" status --json >status.jsonl && jq -e -n '[inputs | .state == "finished"] | all' status.jsonl >all
}

discard_all() {
  local id
  wait_until "the profiles to finish" all_finished
  for id in $(jq .profile status.jsonl); do "$HEAPSONDE" discard "$id" || return; done
  no_workers() { [[ -z $(workers) ]]; }
  wait_until "the workers to end" no_workers
}

# starts N: so many profiles of processes that vanish.
starts() {
  local i
  for ((i = 0; i < $1; i++)); do
    newest || true
    attempt start --force -p "$pid" -r 2^-8 -o "run.$i.jsonl"
  done
  discard_all
}

@test "processes that vanish under the daemon: no worker, no file, no memory stays" {
  local pid done_=0 refused_=0 files kib
  start_daemon
  start_storm
  # What it needs once and for all it has by then.
  starts 8
  files=$(open_files)
  kib=$(resident_kib)
  starts 24
  end_storm
  ((done_ + refused_ == 32))
  wait_until "the links to go" no_link
  [[ $("$HEAPSONDE" status) == 'no profiles' ]]
  (($(open_files) == files)) || fail "$files open files before, $(open_files) after"
  # A page for each would be 96 KiB; allocators have their ways.
  (($(resident_kib) - kib < 2048)) || fail "$kib KiB before, $(resident_kib) after"
  stop_daemon
}
