#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# What a kernel lacks is made up for: each fallback, forced by HEAPSONDE_WITHOUT, does the
# whole job on this kernel as well. Where the kernel lacks the feature anyway the test is the
# same, and holds. Needs root and BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers
load daemon_helpers

# offers FEATURE: does heapsonde find it here?
offers() {
  "$HEAPSONDE" version --json | jq -e --arg f "$1" '.features[$f] == true' >/dev/null
}

# links PID: the kinds of BPF links that heapsonde holds, and how many of each: "perf 7".
links() {
  cat "/proc/$1/fdinfo/"* 2>/dev/null | awk '$1 == "link_type:" { n[$2]++ } END { for (k in n) print k, n[k] }'
}

# the_job_done: every word of a program that makes lists and lets them go; the lives of blocks;
# then a program that runs already, whose probes are looked at. Kinds of links are those of
# $expected (perf or uprobe_multi), armed sites begin with what matches $armed.
the_job_done() {
  record_run all -r 1 -- lists 200
  "$LIB/stats" -v counters=2 all.tsv all.out
  record_run lives -r 1 -- lifetimes 40
  "$LIB/fates" lives.tsv lives.out
  start_target target busy --domains 2
  start_record run -v -p "$target_pid" -r 2^-14
  wait_until "some records" grep -q '^{"type":"alloc_' run.jsonl
  bpf_objects "$run_pid" >objects
  links "$run_pid" >kinds
  if [[ $(wc -l <kinds) != 1 ]] || not grep -q "^$expected " kinds; then
    fail "not $expected: $(cat kinds)"
  fi
  peek "$target_pid" | awk '$2 != "nop" { print $2 }' >armed
  if [[ ! -s armed ]] || grep -qvxE "$armed" armed; then
    fail "not all $armed: $(cat armed)"
  fi
  end_record run INT
  nothing_left "$target_pid" objects
  tell target stop
  ended_with 0 "$target_pid" target.err
  grep -q '^ok' target.out
}

# this_kernels: what the_job_done finds where nothing is taken away.
this_kernels() {
  expected=perf
  not offers uprobe_multi_by_pid || expected=uprobe_multi
  armed=cc66
  not offers nop10 || armed='90cc|9048'
}

# bats test_tags=kernel
@test "with all that this kernel offers" {
  this_kernels
  the_job_done
}

@test "without uprobe_multi: perf uprobes" {
  export HEAPSONDE_WITHOUT=uprobe_multi
  not offers uprobe_multi
  not offers uprobe_multi_by_pid
  this_kernels
  [[ $expected == perf ]]
  the_job_done
}

@test "without sleepable programs: plain reads" {
  export HEAPSONDE_WITHOUT=sleepable_uprobe
  not offers sleepable_uprobe
  this_kernels
  the_job_done
  grep -q 'cannot fault pages in' run.err
}

# bats test_tags=kernel
@test "without optimized probes: breakpoints on the one-byte nop" {
  export HEAPSONDE_WITHOUT=nop10
  not offers nop10
  this_kernels
  [[ $armed == cc66 ]]
  the_job_done
}

# bats test_tags=kernel
@test "without anything that has a fallback" {
  export HEAPSONDE_WITHOUT=uprobe_multi,sleepable_uprobe,nop10
  this_kernels
  [[ $expected == perf && $armed == cc66 ]]
  the_job_done
}

# bats test_tags=kernel
@test "the daemon without anything that has a fallback" {
  export HEAPSONDE_WITHOUT=uprobe_multi,sleepable_uprobe,nop10
  start_daemon
  start_target target busy --domains 2
  start_profile run -p "$target_pid" -r 2^-14
  wait_until "some records" grep -q '^{"type":"alloc_' run.jsonl
  local worker
  worker=$(pgrep -P "$daemon_pid")
  [[ $(links "$worker") == perf\ * ]] || fail "not perf: $(links "$worker")"
  "$HEAPSONDE" stop "$run_id"
  "$HEAPSONDE" discard "$run_id"
  wait_until "the target to be left alone" untouched "$target_pid"
  in_order run
}

@test "without both ways of attaching, or without what is none: refused, in one line" {
  local status
  for without in uprobe_multi,perf_uprobe nop100; do
    status=0
    HEAPSONDE_WITHOUT=$without "$HEAPSONDE" record -o never.jsonl -- "$TESTS_BUILD/lists" 10 >out 2>err ||
      status=$?
    [[ $status == 1 && ! -s out && $(wc -l <err) == 1 ]]
    [[ ! -e never.jsonl ]]
  done
  grep -q 'HEAPSONDE_WITHOUT.*nop100' err
}
