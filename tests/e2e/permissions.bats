#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# Which processes a user may profile through the daemon, and whose profiles he may see and
# change. Needs root and BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

# bats file_tags=untrusted

load helpers
load daemon_helpers
load permissions_helpers

ONE=4242
OTHER=4343

# ---- a user's own process -----------------------------------------------------------

@test "a user does all there is to do with a process of his own" {
  daemon_for_users
  start_of target $ONE "$anywhere/busy"
  cd "$(folder_of $ONE)"
  [[ $(hs $ONE start -p "$target_pid" -r 2^-10 -o run.jsonl) == 1 ]]
  wait_until "some records" grep -q '^{"type":"alloc_' run.jsonl
  [[ $(stat -c '%u %a' run.jsonl) == "$ONE 644" ]]
  is $ONE 1 '.state == "sampling" and .uid == 4242'
  hs $ONE status | grep -Eq "^ *1 +$target_pid +$ONE +sampling"
  hs $ONE follow 1 >follow.jsonl &
  children+=($!)
  wait_until "records to follow" grep -q '^{"type":"alloc_' follow.jsonl
  hs $ONE rate 1 2^-12
  hs $ONE stop 1
  is $ONE 1 '.state == "stopped" and .reason == "interrupted"'
  hs $ONE discard 1
  ended_with 0 $!
  grep -q '^{"type":"summary"' follow.jsonl
  grep -q '^{"type":"summary"' run.jsonl
  [[ $(hs $ONE status) == 'no profiles' ]]
  hs $ONE record -p "$target_pid" -r 2^-10 --duration 1 -o record.jsonl
  grep -q '^{"type":"summary"' record.jsonl
  hs $ONE stat -p "$target_pid" 1 1 | grep -Eq '^ +0 alive'
  hs $ONE record -r 2^-6 -o child.jsonl -- "$anywhere/lists" 10000 >lists.out
  grep -q '^{"type":"alloc_' child.jsonl
  wait_until "the target to be left alone" untouched "$target_pid"
}

@test "a user's process that runs for a group of his others" {
  daemon_for_users
  # The primary group must be the peer's too: rights come with groups as well.
  start_target target /usr/bin/setpriv --reuid $ONE --regid $OTHER --clear-groups env "$anywhere/busy"
  no_start 'group' $ONE "$target_pid"
}

# ---- processes that are not a user's to profile ---------------------------------------

@test "not another user's process, nor root's" {
  daemon_for_users
  start_of target $OTHER "$anywhere/busy"
  start_target roots "$TESTS_BUILD/busy"
  no_start "does not run entirely as user $ONE" $ONE "$target_pid"
  no_start "does not run entirely as user $ONE" $ONE "$roots_pid"
  refused $ONE "does not run entirely as user $ONE" stat -p "$target_pid"
  refused $ONE "does not run entirely as user $ONE" record -p "$target_pid"
  refused $ONE "does not run entirely as user $ONE" start -p "$target_pid" -o "$(folder_of $ONE)/run.jsonl"
  [[ -z $(ls "$(folder_of $ONE)") ]]
  # What is no OCaml program, or no process, is said to be neither.
  refused $ONE . start -p 1
  refused $ONE 'no process' start -p "$(</proc/sys/kernel/pid_max)"
}

@test "not a process with another real, effective or saved user" {
  daemon_for_users
  local ids n=0 name
  for ids in '4343 4242 4242' '4242 4343 4242' '4242 4242 4343' '4242 4242 0' '0 4242 4242'; do
    name=target$((++n))
    start_as "$name" "$ids 1"
    local pid=${name}_pid
    [[ $(awk '$1 == "Uid:" { print $2, $3, $4 }' "/proc/${!pid}/status") == "$ids" ]]
    no_start "does not run entirely as user $ONE" $ONE "${!pid}"
    no_start "does not run entirely as user $OTHER" $OTHER "${!pid}"
  done
  # The saved one alone is in the way, and it is named.
  no_start 'saved 4343' $ONE "$target3_pid"
}

@test "not a set-user-id or set-group-id program, whosever it is" {
  daemon_for_users
  install -o $ONE -g $ONE -m 4755 "$TESTS_BUILD/busy" "$anywhere/own_setuid"
  install -o $ONE -g $ONE -m 2755 "$TESTS_BUILD/busy" "$anywhere/own_setgid"
  install -o $OTHER -g $OTHER -m 4755 "$TESTS_BUILD/busy" "$anywhere/others_setuid"
  install -m 4755 "$TESTS_BUILD/busy" "$anywhere/roots_setuid"
  local name
  for name in own_setuid own_setgid others_setuid roots_setuid; do
    start_of "$name" $ONE "$anywhere/$name"
    read -r _ pid _ <"$name.out"
    no_start 'set-user-id|set-group-id|does not run entirely' $ONE "$pid"
    # Nor may the one whose rights it has.
    no_start 'set-user-id|set-group-id|does not run entirely' $OTHER "$pid"
  done
  read -r _ pid _ <own_setuid.out
  refused $ONE 'set-user-id program' start -p "$pid"
  read -r _ pid _ <own_setgid.out
  refused $ONE 'set-group-id program' start -p "$pid"
  # Root may.
  [[ $(hs 0 start -p "$pid") == [1-9]* ]]
}

@test "not one that is not dumpable" {
  daemon_for_users
  # One that he may execute, but not read.
  install -m 711 "$TESTS_BUILD/busy" "$anywhere/unreadable"
  start_of unreadable $ONE "$anywhere/unreadable"
  no_start 'not dumpable' $ONE "$unreadable_pid"
  # One that says so itself.
  start_as secretive '4242 4242 4242 0'
  no_start 'not dumpable' $ONE "$secretive_pid"
  # The same without that is profiled: nothing else was in the way.
  start_as open '4242 4242 4242 1'
  [[ $(hs $ONE start -p "$open_pid") == [1-9]* ]]
}

@test "not one that has capabilities" {
  daemon_for_users
  start_target target /usr/bin/setpriv --reuid $ONE --regid $ONE --clear-groups \
    --inh-caps +net_bind_service --ambient-caps +net_bind_service env "$anywhere/busy"
  not grep -q '^CapEff:.0*$' "/proc/$target_pid/status"
  no_start 'has capabilities' $ONE "$target_pid"
}

@test "not one in a user namespace of its own" {
  daemon_for_users
  start_of target $ONE unshare -U "$anywhere/busy"
  no_start 'namespace|capabilities' $ONE "$target_pid"
}

# ---- profiles ---------------------------------------------------------------------------

@test "another user's profile is, in each request, as one that does not exist" {
  daemon_for_users
  start_of target $ONE "$anywhere/busy"
  [[ $(hs $ONE start -p "$target_pid" -r 2^-10 -o "$(folder_of $ONE)/run.jsonl") == 1 ]]
  local args number
  for args in 'status N' 'follow N' 'stop N' 'discard N' 'rate N 2^-12'; do
    for number in 1 9; do
      # shellcheck disable=SC2086  # words
      refused $OTHER "no profile $number" ${args/N/$number}
      sed "s/$number/N/" refused.err >"said.$number"
    done
    cmp said.1 said.9
  done
  [[ $(hs $OTHER status) == 'no profiles' ]]
  is $ONE 1 '.state == "sampling" and .followers == 0 and .rate == 0.0009765625'
  # The same of one that was stopped, and of one that was discarded.
  hs $ONE stop 1
  refused $OTHER 'no profile 1' stop 1
  hs $ONE discard 1
  refused $OTHER 'no profile 1' discard 1
  refused $ONE 'discarded already' discard 1
}

@test "a user does not see what root does with his process" {
  daemon_for_users
  start_of target $ONE "$anywhere/busy"
  hs 0 start -p "$target_pid" -r 2^-10
  [[ $(hs $ONE status) == 'no profiles' ]]
  refused $ONE 'no profile 1' follow 1
  refused $ONE 'no profile 1' stop 1
  is 0 1 '.state == "sampling"'
}

@test "root may everything, with everybody's profiles" {
  daemon_for_users
  start_of target $ONE "$anywhere/busy"
  start_of other $OTHER "$anywhere/busy"
  hs $ONE start -p "$target_pid" -r 2^-10
  hs $OTHER start -p "$other_pid" -r 2^-10
  hs 0 status --json | jq -e -s '[.[].uid] == [4242, 4343]'
  hs 0 rate 1 2^-12
  timeout -k 5 "$DEADLINE" "$HEAPSONDE" follow 1 2>/dev/null | head -n 3 >follow.jsonl
  grep -q '^{"type":"header"' follow.jsonl
  hs 0 stop 1
  is $ONE 1 '.state == "stopped"'
  hs 0 discard 1
  [[ $(hs $ONE status) == 'no profiles' ]]
  # Of processes, too, that their users may not profile.
  install -m 4711 "$TESTS_BUILD/busy" "$anywhere/setuid"
  start_of setuid $ONE "$anywhere/setuid"
  hs 0 start -p "$setuid_pid"
}
