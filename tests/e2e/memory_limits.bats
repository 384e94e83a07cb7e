#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# Limits of memory. BPF maps are no locked memory since Linux 5.11, so RLIMIT_MEMLOCK is of no
# consequence; they count for the memory control group, and where that has no room the kernel makes
# no map, or kills. Needs root, BPF and control groups.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers
load daemon_helpers
load faults_helpers
load cgroup_helpers

# With this limit a ring buffer of 64 MiB cannot be had, and a small one can, with all else that
# heapsonde needs; sanitizers need as much again.
SMALL=$(((${HEAPSONDE_REPORTS:+30} + 30) << 20))
little=(--ring-size 512k --max-blocks 10000 --max-stacks 1000)

# memlock PID: the soft limit.
memlock() {
  awk '/^Max locked memory/ { print $4 }' "/proc/$1/limits"
}

# bats test_tags=kernel
@test "no locked memory at all, and no right to have more: every word is told all the same" {
  local status=0
  (
    ulimit -l 0
    exec setpriv --bounding-set -ipc_lock,-sys_resource "$HEAPSONDE" record --force -r 1 -o all.jsonl -- \
      "$TESTS_BUILD/lists" 200 >all.out 2>all.err </dev/null 3>&-
  ) || status=$?
  ((status == 0)) || fail "status $status: $(cat all.err)"
  [[ ! -s all.err ]]
  in_order all
  "$LIB/stats" -v counters=2 all.tsv all.out
}

@test "the limit of locked memory is left as it is, also by the daemon" {
  ulimit -S -l 64
  start_target target busy
  start_record run -p "$target_pid" -r 2^-14
  [[ $(memlock "$run_pid") == 65536 ]] || fail "$(memlock "$run_pid")"
  start_daemon
  start profile -p "$target_pid" -r 2^-14
  [[ $(memlock "$daemon_pid") == 65536 && $(memlock "$(workers)") == 65536 ]]
  more_records run profile
  end_profile "$profile_id"
  end_record run INT
  target_is_well target
}

@test "a control group without room for the maps: one line that says what to do, and nothing stays" {
  make_cgroup small memory
  limit_memory small $SMALL
  start_target target busy
  local status=0
  (in_cgroup small "$HEAPSONDE" record -p "$target_pid" -r 2^-14 --ring-size 64M -o run.jsonl) >run.out 2>run.err </dev/null 3>&- || status=$?
  cat run.err
  ((status == 1 && $(wc -l <run.err) == 1))
  [[ ! -s run.out ]]
  grep -q '^heapsonde: .*no memory.*--ring-size.*memory\.max' run.err
  "$HEAPSONDE" residue -p "$target_pid" | grep 'nothing left$'
  untouched "$target_pid"
  [[ $(oom_kills small) == 0 ]]
  # It is the maps: with less of them there is room.
  (in_cgroup small "$HEAPSONDE" record --force -p "$target_pid" -r 2^-14 --duration 0.3 "${little[@]}" -o run.jsonl) \
    2>run.err </dev/null 3>&-
  : >run.err
  in_order run
  target_is_well target
}

# Not with sanitizers: the worker then needs a page of its own at any moment, also while all of the group's
# memory has gone into a ring buffer, and is killed for it.
# bats test_tags=other-build
@test "a worker in a small control group: what has no room is refused, all else goes on" {
  make_cgroup small memory
  start_daemon
  start_target target busy --domains 2
  start_target target2 busy
  start other -p "$target2_pid" -r 2^-14 "${little[@]}"
  start first -p "$target_pid" --domain 0 -r 2^-16 "${little[@]}"
  # The worker alone: who else is in the group may need a page just when all is taken, and the
  # kernel kills for that.
  join_cgroup small "$(worker_of "$target_pid")"
  limit_memory small $SMALL
  local i
  for i in 1 2 3; do
    refused 'no memory.*--ring-size.*memory\.max' \
      start -p "$target_pid" --domain 1 --ring-size 64M -o "run$i.jsonl"
  done
  more_records other first
  [[ $("$HEAPSONDE" status --json | jq -s 'map(.profile) | sort == ['"$other_id,$first_id"']') == true ]]
  [[ $(oom_kills small) == 0 ]]
  limit_memory small ""
  start run -p "$target_pid" --domain 1 -r 2^-14 --ring-size 64M
  more_records run
  end_profile "$run_id"
  end_profile "$first_id"
  end_profile "$other_id"
  in_order run
  in_order first
  in_order other
  wait_until "the workers to end" no_workers
  stop_daemon
  target_is_well target
  target_is_well target2
}

@test "a worker that the kernel kills for want of memory: its profiles say so, and others live" {
  make_cgroup small memory
  limit_memory small $((1 << 20))
  start_daemon
  start_target target busy
  start_target target2 busy
  start run -p "$target_pid" -r 2^-10
  start other -p "$target2_pid" -r 2^-14
  follow slow "$run_id"
  local worker
  worker=$(worker_of "$target_pid")
  bpf_objects "$worker" >objects
  # What it takes from now on counts there; and what waits for a follower that does not read grows to some MiB.
  join_cgroup small "$worker"
  kill -STOP "$slow_pid"
  wait_until "the profile to finish" is "$run_id" '.state == "finished" and .reason == "error"'
  kill -CONT "$slow_pid"
  (($(oom_kills small) >= 1))
  grep -q "worker of PID $target_pid was killed by signal 9" daemon.err
  all_gone objects
  "$HEAPSONDE" residue -p "$target_pid" | grep 'nothing left$'
  more_records other
  "$HEAPSONDE" discard "$run_id"
  start again -p "$target_pid" -r 2^-14
  more_records again
  end_profile "$again_id"
  end_profile "$other_id"
  in_order other
  in_order again
  stop_daemon
  target_is_well target
  target_is_well target2
}
