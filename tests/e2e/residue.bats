#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# heapsonde residue: finds what is left of a heapsonde, and who holds it; a heapsonde at
# work is no residue. Needs root and BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers
load daemon_helpers

# residue STATUS [OPTION…]: it ends with this status, its lines are in residue.out and
# residue.err; stderr has one line if it failed, else none.
residue() {
  local expected=$1 status=0
  shift
  "$HEAPSONDE" residue "$@" >residue.out 2>residue.err </dev/null 3>&- || status=$?
  ((status == expected && $(wc -l <residue.err) == (status != 0))) && return
  cat residue.out residue.err
  fail "heapsonde residue $* ended with status $status, not $expected"
}

# says PATTERN: a line on stdout does.
says() {
  grep -Eq -- "$1" residue.out && return
  cat residue.out residue.err
  fail "heapsonde residue did not say /$1/"
}

# start_busy NAME ARG…: a target of a file that no other test runs: who is attached to a process of the
# same file counts as attached to this one.
start_busy() {
  [[ -e busy ]] || cp "$TESTS_BUILD/busy" busy
  start_target "$1" ./busy "${@:2}"
}

# A target, and a recording of it. Sets target_pid, run_pid.
recorded() {
  start_busy target --domains 2 && start_record run -p "$target_pid" -r 2^-14
}

# The recording is killed, and has ended.
kill_recording() {
  kill -KILL "$run_pid"
  ended_with 137 "$run_pid"
}

target_is_well() {
  tell target stop
  ended_with 0 "$target_pid" target.err || return
  grep -q '^ok' target.out || fail "the target computed something wrong: $(cat target.out)"
}

# Of what heapsonde holds in the kernel, the first of a kind that has a probe's program.
object_of() {
  bpf_objects "$run_pid" | awk -v kind="$1" '$1 == kind { print $2; exit }'
}

@test "nobody attached: nothing is left" {
  start_busy target
  residue 0 -p "$target_pid"
  says "^process $target_pid \(.*busy.*\): nothing left$"
  (($(wc -l <residue.out) == 1))
  target_is_well
}

@test "a heapsonde at work is named, and is no residue" {
  recorded
  start_record second -p "$target_pid" -r 2^-15
  residue 0 -p "$target_pid"
  says "^process $target_pid .*: attached by PID $run_pid \(.*heapsonde record.*\), with 8 links, 8 programs and [0-9]+ maps; [1-9][0-9]* semaphores up, [1-9][0-9]* probes armed$"
  says "attached by PID $second_pid "
  (($(wc -l <residue.out) == 2))
  end_record second INT
  residue 0 -p "$target_pid"
  says "attached by PID $run_pid "
  (($(wc -l <residue.out) == 1))
  end_record run INT
  residue 0 -p "$target_pid"
  says 'nothing left$'
  target_is_well
}

@test "a heapsonde that was killed leaves nothing" {
  recorded
  kill_recording
  residue 0 -p "$target_pid"
  says 'nothing left$'
  # As the tests' own eyes see it.
  untouched "$target_pid"
  target_is_well
}

@test "what keeps a link alive is found: the link, its program, its maps, its probe" {
  recorded
  mkdir pins
  mount -t bpf bpf pins
  mounts+=("$PWD/pins")
  local link program
  link=$(object_of link)
  program=$(bpftool -j link show id "$link" | jq .prog_id)
  bpftool link pin id "$link" pins/link
  kill_recording
  residue 1 -p "$target_pid"
  says "^BPF link $link \(hs_[a-z_]+\), held by no process$"
  says "^BPF program $program \(hs_[a-z_]+\), held by no process$"
  says '^BPF map [0-9]+ \(domains\), held by no process$'
  says "^process $target_pid .*: probe [a-z_0-9]+: its semaphore is 1, its code has [0-9a-f]+ where the file has [0-9a-f]+$"
  grep -Eq '^heapsonde: [0-9]+ things are left .* /sys/fs/bpf' residue.err
  # Also without a process, whatever else runs on this machine.
  "$HEAPSONDE" residue --wait 1 >all.out 2>all.err && fail "exit 0"
  grep -q "^BPF link $link " all.out
  rm pins/link
  residue 0 -p "$target_pid"
  says 'nothing left$'
  target_is_well
}

@test "what is left of another process is none of this one's, also when that has ended" {
  recorded
  start_busy other
  start_record second -p "$other_pid" -r 2^-14
  mkdir pins
  mount -t bpf bpf pins
  mounts+=("$PWD/pins")
  local link
  link=$(object_of link)
  bpftool link pin id "$link" pins/link
  kill_recording
  # Whatever else is done on this machine: nothing that was made for the other one has stayed.
  residue 0 -p "$other_pid"
  says "^process $other_pid .*: attached by PID $second_pid "
  (($(wc -l <residue.out) == 1))
  end_record second INT
  residue 0 -p "$other_pid"
  (($(wc -l <residue.out) == 1))
  target_is_well
  residue 0 -p "$other_pid"
  says 'nothing left$'
  (($(wc -l <residue.out) == 1))
  # It is not forgotten.
  "$HEAPSONDE" residue --wait 1 >residue.out 2>residue.err && fail "exit 0"
  says "^BPF link $link \(hs_[a-z_]+\), held by no process$"
}

@test "who holds a map open is named" {
  recorded
  local map
  # That of the constants, which tells whose it is. Of another one nobody could, and other tests may run.
  map=$(bpftool -j prog show id "$(object_of prog)" | jq '.map_ids[]' |
    while read -r id; do bpftool -j map show id "$id"; done | jq 'select(.name | endswith(".rodata")).id')
  # BPF_MAP_GET_FD_BY_ID
  perl -e 'syscall(321, 14, pack("LLL", $ARGV[0], 0, 0), 12) >= 0 or die $!; $| = 1; print "open\n"; sleep' \
    "$map" >holder.out 3>&- &
  local holder=$!
  children+=("$holder")
  wait_until "the map to be open" grep -q open holder.out
  kill_recording
  residue 1 -p "$target_pid"
  says "^BPF map $map \(.*\), held by PID $holder \(perl .*\)$"
  grep -q "1 thing is left: end process $holder" residue.err
  kill "$holder"
  residue 0 -p "$target_pid"
  target_is_well
}

@test "another tool's probe is found, and not said to be heapsonde's" {
  start_busy target
  bpftrace -p "$target_pid" -e "usdt:$PWD/busy:ocaml:minor_end { @n = count(); }" >trace.out 2>&1 3>&- &
  local tracer=$!
  children+=("$tracer")
  semaphore_is_up() { grep -qx minor_end <(probes_up "$target_pid"); }
  wait_until "bpftrace to attach" semaphore_is_up
  residue 1 -p "$target_pid"
  says "^process $target_pid .*: probe minor_end: its semaphore is 1, its code has [0-9a-f]+ where"
  (($(wc -l <residue.out) == 1))
  grep -q '1 thing is left, but nothing of a heapsonde: end the other tool' residue.err
  kill -INT "$tracer"
  wait_until "bpftrace to end" has_ended "$tracer"
  residue 0 -p "$target_pid"
  target_is_well
}

@test "a child forked meanwhile is free of its parent's probes" {
  start_target target fork 1500000000 --wait --children 1
  start_record run -p "$target_pid" -r 2^-17
  tell target go
  child_works() {
    child=$(pgrep -P "$target_pid") && awk '{ exit !($14 > 0) }' "/proc/$child/stat"
  }
  wait_until "the child to work" child_works
  kill -STOP "$child"
  residue 0 -p "$child"
  says "^process $child .*: nothing left$"
  residue 0 -p "$target_pid"
  says "^process $target_pid .*: attached by PID $run_pid "
  kill -KILL "$child"
  end_record run INT
  residue 0 -p "$target_pid"
  says 'nothing left$'
}

@test "the daemon's worker is named while it has a profile, and nothing is left of it" {
  start_daemon
  start_busy target
  start_profile run -p "$target_pid" -r 2^-14
  residue 0 -p "$target_pid"
  says "attached by PID $(workers) \(.*heapsonde daemon.*\)"
  kill -KILL "$(workers)"
  no_workers() { [[ -z $(workers) ]]; }
  wait_until "the worker to end" no_workers
  residue 0 -p "$target_pid"
  says 'nothing left$'
  stop_daemon
  target_is_well
}

@test "all processes at once" {
  recorded
  start_busy other
  # What else runs on this machine may have left something: no matter here.
  "$HEAPSONDE" residue >residue.out 2>residue.err || true
  says "^process $target_pid .*: attached by PID $run_pid "
  says "^process $other_pid .*: nothing left$"
  end_record run INT
  target_is_well
}

@test "who is not root is told what he cannot see, exit 1" {
  for_everybody
  start_busy target
  local status=0
  as_user 65534 "$HEAPSONDE" residue -p "$target_pid" >residue.out 2>residue.err || status=$?
  ((status == 1))
  [[ ! -s residue.out ]]
  grep -q 'not permitted.*root' residue.err
  (($(wc -l <residue.err) == 1))
  status=0
  as_user 65534 "$HEAPSONDE" residue -q >residue.out 2>residue.err || status=$?
  ((status == 1))
  grep -q 'not permitted to see the BPF objects.*run as root' residue.err
  (($(wc -l <residue.err) == 1))
}

@test "a process that is none of ours is refused" {
  refused 'no process with PID 999999999|not a PID' residue -p 999999999
  sleep 600 3>&- &
  children+=($!)
  refused 'not an OCaml program' residue -p $!
  start_target stock "$TESTS_BUILD/stock/busy"
  refused 'without heapsonde.s probes' residue -p "$stock_pid"
  local status=0
  "$HEAPSONDE" residue 12 2>residue.err || status=$?
  ((status == 2))
}
