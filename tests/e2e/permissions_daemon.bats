#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# What the daemon itself can do and does not do for a user: files that he may not write,
# programs with more rights than his. Needs root and BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

# bats file_tags=untrusted

load helpers
load daemon_helpers
load permissions_helpers

ONE=4242
OTHER=4343

# ---- outputs ----------------------------------------------------------------------------

@test "the client opens the output: no user writes where he may not" {
  daemon_for_users
  start_of target $ONE "$anywhere/busy"
  local own path
  own=$(folder_of $ONE)
  echo precious >"$anywhere/roots"
  chmod 644 "$anywhere/roots"
  ln -s "$anywhere/roots" "$own/link"
  mkdir "$own/sub"
  for path in "$anywhere/roots" "$anywhere/new" "$own/link" "$(folder_of $OTHER)/new" \
    /etc/heapsonde-test "$own/sub" "$own/no-such-folder/new" /proc/sys/kernel/core_pattern; do
    refused $ONE 'cannot open' start -p "$target_pid" --force -o "$path"
    [[ $(hs 0 status) == 'no profiles' ]]
  done
  [[ $(<"$anywhere/roots") == precious ]]
  [[ ! -e $anywhere/new && ! -e /etc/heapsonde-test && -z $(ls "$(folder_of $OTHER)") ]]
  [[ -L $own/link && $(readlink "$own/link") == "$anywhere/roots" ]]
  # Nor can he overwrite his own with a start that is refused.
  as_user $ONE sh -c "echo mine >'$own/mine'"
  start_target roots busy
  refused $ONE entirely start -p "$roots_pid" --force -o "$own/mine"
  [[ $(<"$own/mine") == mine ]]
}

@test "the daemon itself has no file open for writing but what clients passed" {
  daemon_for_users
  start_of target $ONE "$anywhere/busy"
  hs $ONE start -p "$target_pid" -r 2^-10 -o "$(folder_of $ONE)/run.jsonl"
  wait_until "some records" grep -q '^{"type":"alloc_' "$(folder_of $ONE)/run.jsonl"
  local pid fd path
  for pid in "$daemon_pid" $(workers); do
    for fd in "/proc/$pid/fd/"*; do
      path=$(readlink "$fd") || continue
      [[ $path == /* && $path != /dev/null && -f $path ]] || continue
      # The flags are octal; the last digit's low bits are the access mode.
      if awk '$1 == "flags:" { exit !($2 % 10 % 4) }' "/proc/$pid/fdinfo/${fd##*/}"; then
        echo "$path"
      fi
    done
  done | sort -u | grep -v "^$BATS_RUN_TMPDIR/" >all # where we have sent its messages
  # A build with sanitizers has a file for what they report as well.
  grep -v "^${HEAPSONDE_REPORTS:-$BATS_RUN_TMPDIR}/" all >written
  cat written
  [[ $(<written) == "$(printf '%s\n' "$(folder_of $ONE)/run.jsonl" "$HEAPSONDE_SOCKET.lock" | sort)" ]]
}

# ---- a program with more rights, in the middle ----------------------------------------------

@test "a set-user-id program that a profiled process executes is not looked into" {
  daemon_for_users
  install -m 4755 "$TESTS_BUILD/fault_exec" "$anywhere/setuid"
  start_of target $ONE "$anywhere/fault_exec"
  local own
  own=$(folder_of $ONE)
  hs $ONE start -p "$target_pid" -r 2^-6 -o "$own/run.jsonl"
  hs $ONE follow 1 >follow.jsonl &
  follow_pid=$!
  children+=("$follow_pid")
  wait_until "some records" grep -q '^{"type":"alloc_' follow.jsonl
  tell target "exec $anywhere/setuid --after"
  said target '^after'
  # It runs as root now, and is at work.
  [[ $(awk '$1 == "Uid:" { print $2, $3 }' "/proc/$target_pid/status") == "$ONE 0" ]]
  ended_with 0 "$follow_pid"
  is $ONE 1 '.state == "finished" and .reason == "target executed another program"'
  not hs $ONE stop 1
  local file
  for file in "$own/run.jsonl" follow.jsonl; do
    grep -q 'Fault_exec.before' "$file"
    grep -q '^{"type":"summary","reason":"target executed another program"' "$file"
    not grep -q -e 'Fault_exec.after' -e --after "$file"
  done
  not grep -q -e --after <(hs $ONE status --json 1)
  untouched "$target_pid"
  refused $ONE entirely start -p "$target_pid"
  tell target stop
  ended_with 0 "$target_pid" target.err
  grep -q '^ok' target.out
}

# ---- the daemon's own rights -----------------------------------------------------------------

# The capabilities that docs/daemon.md names for this kernel, as /proc shows them.
expected_caps() {
  local name caps=0
  local -A number=([DAC_READ_SEARCH]=2 [SYS_PTRACE]=19 [SYS_ADMIN]=21 [PERFMON]=38 [BPF]=39
    [CHECKPOINT_RESTORE]=40)
  "$HEAPSONDE" version >version.out
  while read -r name; do
    # Only where the kernel lacks something.
    if [[ $name == SYS_ADMIN ]] && grep -q 'uprobe_multi by process *yes' version.out; then continue; fi
    [[ -n ${number[$name]} ]] || fail "docs/daemon.md names $name" || return
    caps=$((caps | 1 << number[$name]))
  done < <(sed -n 's/^| .CAP_\([A-Z_]*\).*/\1/p' "$LIB/../../docs/daemon.md")
  printf '%016x' "$caps"
}

@test "the running daemon and its workers have the capabilities they need and no others" {
  daemon_for_users
  start_of target $ONE "$anywhere/busy"
  hs $ONE start -p "$target_pid" -r 2^-10
  local pid caps n=0 name value
  caps=$(expected_caps)
  [[ $caps != 0000000000000000 ]]
  for pid in "$daemon_pid" $(workers); do
    n=$((n + 1))
    while read -r name value; do
      [[ $(awk -v name="$name:" '$1 == name { print $2 }' "/proc/$pid/status") == "$value" ]] ||
        fail "process $pid: $(grep "^$name" "/proc/$pid/status"), not $value"
    done <<STATUS
CapEff $caps
CapPrm $caps
CapBnd $caps
CapInh 0000000000000000
CapAmb 0000000000000000
NoNewPrivs 1
Seccomp 2
STATUS
  done
  ((n == 2))
}

@test "the socket is everybody's, its folder and its lock are not" {
  daemon_for_users
  [[ $(stat -c %a "$HEAPSONDE_SOCKET") == 666 ]]
  [[ $(stat -c '%u %a' "$HEAPSONDE_SOCKET.lock") == '0 600' ]]
  not as_user $ONE rm -f "$HEAPSONDE_SOCKET"
  [[ -S $HEAPSONDE_SOCKET ]]
}

# sleeps PROCESS: what the programs of its profile have been told, "true" or "false".
sleeps() {
  local worker id
  worker=$(worker_of "$1") || return
  for id in $(bpf_objects "$worker" | awk '$1 == "map" { print $2 }'); do
    bpftool map show id "$id" | grep -q '\.rodata' || continue
    bpftool -j map dump id "$id" 2>/dev/null | jq '.. | objects | select(has("cfg_sleepable")).cfg_sleepable'
  done
}

@test "programs that wait for a page of the target are root's only" {
  daemon_for_users
  start_of target1 "$ONE" "$anywhere/busy"
  start_target target2 busy
  hs "$ONE" start -p "$target1_pid" -r 2^-10
  hs 0 start -p "$target2_pid" -r 2^-10
  [[ $(sleeps "$target1_pid") == false ]]
  [[ $(sleeps "$target2_pid") == true ]]
}
