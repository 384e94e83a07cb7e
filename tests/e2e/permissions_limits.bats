#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# How much one user may have of the daemon. Needs root and BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers
load daemon_helpers
load permissions_helpers

ONE=4242
OTHER=4343

@test "--max-profiles: so many for each user, and room again after a discard or an end" {
  daemon_for_users --max-profiles 2
  local n pid
  for n in 1 2 3; do start_of "target$n" $ONE "$anywhere/busy"; done
  start_of other $OTHER "$anywhere/busy"
  hs $ONE start -p "$target1_pid"
  hs $ONE start -p "$target2_pid"
  refused $ONE '2 of 2 profiles.*--max-profiles' start -p "$target3_pid"
  refused $ONE '2 of 2 profiles' record -p "$target3_pid"
  # Others have room of their own.
  hs $OTHER start -p "$other_pid"
  # One that is stopped counts still, as it is attached still.
  hs $ONE stop 1
  refused $ONE '2 of 2 profiles' start -p "$target3_pid"
  hs $ONE discard 1
  hs $ONE start -p "$target3_pid"
  refused $ONE '2 of 2 profiles' start -p "$target1_pid"
  kill -KILL "$target2_pid"
  wait_until "the profile to finish" is $ONE 2 '.state == "finished"'
  hs $ONE start -p "$target1_pid"
  # A refused start costs nothing.
  refused $ONE '2 of 2 profiles' start -p "$target1_pid"
  # Root has no such limit.
  start_target roots busy
  for n in 1 2 3; do start_target "roots$n" busy; done
  for n in 1 2 3; do
    pid=roots${n}_pid
    hs 0 start -p "${!pid}"
  done
}

@test "--max-blocks: of all profiles of a user" {
  daemon_for_users --max-blocks 100000
  start_of target1 $ONE "$anywhere/busy"
  start_of target2 $ONE "$anywhere/busy"
  start_of target3 $ONE "$anywhere/busy"
  hs $ONE start -p "$target1_pid"
  refused $ONE '65536 of 100000 blocks.*--max-blocks.*65536 more' start -p "$target2_pid"
  refused $ONE 'blocks' start -p "$target2_pid" --max-blocks 34465
  hs $ONE start -p "$target2_pid" --max-blocks 34464
  # One that follows none takes none.
  hs $ONE start -p "$target3_pid" --track alloc
  hs $ONE stop 1
  hs $ONE discard 1
  hs $ONE start -p "$target1_pid"
  [[ $(hs $ONE status --json | jq -c .profile | wc -l) == 3 ]]
  untouched_or_sampled() { [[ -n $(probes_up "$target2_pid") ]]; }
  untouched_or_sampled
}

@test "--max-memory: of all profiles of a user" {
  daemon_for_users --max-memory 12M
  start_of target1 $ONE "$anywhere/busy"
  start_of target2 $ONE "$anywhere/busy"
  refused $ONE 'MiB.*--max-memory' start -p "$target1_pid" --ring-size 16M
  untouched "$target1_pid"
  hs $ONE start -p "$target1_pid"
  refused $ONE 'MiB.*--max-memory.*discard' start -p "$target2_pid"
  untouched "$target2_pid"
  hs $ONE start -p "$target2_pid" --ring-size 4k --max-blocks 1000 --max-stacks 1000
  hs $ONE stop 2
  hs $ONE discard 2
  hs $ONE stop 1
  hs $ONE discard 1
  hs $ONE start -p "$target2_pid"
}
