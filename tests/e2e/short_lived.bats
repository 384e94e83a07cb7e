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

# A storm of programs that live for between some ms and two seconds, until the file `calm` is there. They
# are of an executable of this test's own: nobody else is attached to that. Each line in the file `slow`
# makes them live as long again. With a PID in the file `again` those after it are given out again and again.
storm() {
  local life words slow
  while [[ ! -e calm ]]; do
    [[ ! -e again ]] || cat again >/proc/sys/kernel/ns_last_pid
    slow=$(wc -l <slow)
    words=100
    for life in 2 10 50 200; do
      # It works when its stdin ends, and then it ends.
      sleep "$(printf '%d.%02d' $((life * (slow + 1) / 100)) $((life * (slow + 1) % 100)))" |
        ./lists $words --wait >/dev/null &
      words=$((words * 10))
    done
    wait
  done
}

start_storm() {
  cp "$TESTS_BUILD/lists" .
  : >slow
  storm 3>&- &
  storm_pid=$!
  children+=("$storm_pid")
  wait_until "the storm" one_of_them
}

end_storm() {
  touch calm
  ended_with 0 "$storm_pid"
}

# one_of_them: the PID of one, or of one that has just ended, in $pid.
one_of_them() {
  local found
  found=$(pgrep -P "$storm_pid" -x lists | shuf -n 1) && [[ -n $found ]] && pid=$found
}

# longer_lives N: so many attempts have been made; on a busy machine all may have come too late.
longer_lives() {
  ((done_ > 0 || $1 % 10 < 9)) || echo longer >>slow
}

# attempt ARG…: heapsonde ARG… ends with 0, or with 1 and one line: the process has ended, or it is still
# the one that a profile is on; or what matches $also, if set.
attempt() {
  local status=0
  "$HEAPSONDE" "$@" >attempt.out 2>attempt.err </dev/null 3>&- || status=$?
  if ((status == 0)); then
    done_=$((done_ + 1))
  elif ((status == 1)) && (($(wc -l <attempt.err) == 1)) &&
    grep -Eqx "heapsonde: (process $pid has ended|no process with PID $pid|the domains of process $pid sample for profile [0-9]+ already${also:+|$also})" \
      attempt.err; then
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
    one_of_them || true
    attempt residue -p "$pid"
    one_of_them || true
    attempt record --force -p "$pid" -r 2^-8 --duration 1 -o run.jsonl
    one_of_them || true
    attempt stat -p "$pid" 0.1 1
    longer_lives "$i"
  done
  end_storm
  echo "# $done_ done, $refused_ refused" >&3
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

# starts N [COMMAND…]: so many attempts at profiles of processes that vanish, and some more until there has
# been a profile, and COMMAND succeeds.
starts() {
  local n=$1 end=$((tried + 300))
  shift
  for (( ; n > 0 || done_ == 0; n--, tried++)); do
    ((tried < end)) || fail "no process lived long enough: $done_ profiles, $refused_ refused" || return
    one_of_them || true
    attempt start --force -p "$pid" -r 2^-8 -o "run.$tried.jsonl" || return
    longer_lives "$tried"
    ((n > 1)) || (($# == 0)) || "$@" || n=2
  done
  discard_all
}

@test "processes that vanish under the daemon: no worker, no file, no memory stays" {
  local pid done_=0 refused_=0 tried=0 files kib
  start_daemon
  start_storm
  # What it needs once and for all it has by then.
  starts 8
  files=$(open_files)
  kib=$(resident_kib)
  starts 24
  end_storm
  echo "# $done_ profiles, $refused_ refused" >&3
  ((done_ + refused_ == tried && done_ > 0))
  wait_until "the links to go" no_link
  [[ $("$HEAPSONDE" status) == 'no profiles' ]]
  (($(open_files) == files)) || fail "$files open files before, $(open_files) after"
  # A page for each would be 96 KiB; allocators have their ways.
  (($(resident_kib) - kib < 2048)) || fail "$kib KiB before, $(resident_kib) after"
  stop_daemon
}

# of_one_process FILE: all of it is of the process that its header names, which has one thread. Its counters, which run from its
# first word on, tell which program that was: `lists N` allocates N words at each of four places.
of_one_process() {
  jq -e -n 'reduce inputs as $r ({headers: 0, threads: []};
      if $r.type == "header" then .headers += 1 | .n = ($r.command | split(" ")[1] | tonumber)
      elif $r.type | startswith("alloc_") then .threads = (.threads + [$r.thread] | unique)
      elif $r.type == "summary" then .reason = $r.reason | .words = ($r.domains | map(.minor_words) | add // 0)
      else . end)
    | .headers == 1 and (.threads | length) <= 1
      and (.reason != "target exited" or .words == 0 or (.words > 3.9 * .n and .words < 4.1 * .n + 3000))' "$1" >of_one ||
    fail "$1: $(head -n 1 "$1") $(tail -n 1 "$1")"
}

# in_own_pids FUNCTION: in a PID namespace of its own, where no PID is anybody else's. What it starts ends
# with it.
in_own_pids() {
  # shellcheck disable=SC2016 # that shell's
  unshare --pid --fork --mount-proc --kill-child bash -c "$(declare -f)
    DEADLINE=$DEADLINE
    children=() mounts=() cgroups=() anywhere=
    trap teardown EXIT
    set -eE"'
    "$1"' in_own_pids "$1" 3>&-
}

# pids_came_again: some profile is of a process with the PID of an earlier one's.
pids_came_again() {
  [[ -n $(cat run.*.jsonl | jq -r 'select(.type == "header") | "\(.pid) \(.time)"' | sort -u | cut -d ' ' -f 1 | uniq -d) ]]
}

storm_of_few_pids() {
  local pid done_=0 refused_=0 tried=0
  # Our own, or one of the shell, can have the PID by then.
  local also='process [0-9]+ \(.*\) is not an OCaml program|[0-9]+ is a thread of process [0-9]+: .*'
  start_daemon
  echo 300 >again
  start_storm
  starts 30 pids_came_again
  end_storm
  echo "$done_ profiles, $refused_ refused"
  ((done_ + refused_ == tried))
  [[ $("$HEAPSONDE" status) == 'no profiles' ]]
  stop_daemon
}

@test "a storm in which PIDs are used again: each output is of one process" {
  local file
  in_own_pids storm_of_few_pids >storm.out
  echo "# $(grep refused storm.out)" >&3
  wait_until "the links to go" no_link
  for file in run.*.jsonl; do
    # One of a start that was refused is empty.
    [[ ! -s $file ]] || of_one_process "$file"
  done
  pids_came_again
}
