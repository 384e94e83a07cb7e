#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# Containers and the daemon: targets in containers as root and as their owner; and heapsonde or
# the daemon itself in a container. Needs root and BPF. Without the daemon: namespaces.bats.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers
load daemon_helpers
load top_helpers
load namespaces_helpers

ONE=4242

# daemon_and_lists: a daemon, and lists where every user may run it.
daemon_and_lists() {
  start_daemon && install -m 755 "$TESTS_BUILD/lists" "$anywhere"
}

# profiled NAME UID: start, stop and discard by this user on target NAME; right to the word.
profiled() {
  local name=$1 pid=${1}_pid id
  id=$(as_user "$2" "$HEAPSONDE" start -p "${!pid}" -r 1 --ring-size 8M --force \
    -o "$(folder_of "$2")/$name.jsonl") || return
  tell "$name" go
  said "$name" '^done' && as_user "$2" "$HEAPSONDE" stop "$id" || return
  as_user "$2" "$HEAPSONDE" discard "$id" && end_target "$name" || return
  cp "$(folder_of "$2")/$name.jsonl" "${name}_run.jsonl" && : >"${name}_run.err" &&
    in_order "${name}_run" || return
  # It was stopped before the last collection, so the counters lag behind: names and sites.
  sites "${name}_run" | diff "$BATS_FILE_TMPDIR/sites" - || fail "the sites of $name" || return
  build_ids "${name}_run" | diff "$BATS_FILE_TMPDIR/build_ids" - || fail "the build ids of $name"
}

# as_one COMMAND…: the command that runs it as user ONE, for start_inside.
as_one=(/usr/bin/setpriv --reuid "$ONE" --regid "$ONE" --clear-groups env)

@test "start, stop: in a PID, a mount namespace, a chroot, as root and as the owner" {
  reference
  daemon_and_lists
  make_root "$anywhere/root" "$TESTS_BUILD/lists"
  chmod -R a+rX "$anywhere/root"
  local uid
  for uid in 0 "$ONE"; do
    local be=()
    ((uid == 0)) || be=("${as_one[@]}")
    start_inside "pid$uid" "$UNSHARE" -p --kill-child -f --mount-proc "${be[@]}" "$anywhere/lists" 3000 --wait
    profiled "pid$uid" "$uid"
    cp "$TESTS_BUILD/arrays" "$anywhere/program"
    # shellcheck disable=SC2016  # expanded there
    start_inside "mount$uid" "$UNSHARE" -m sh -c 'mount --bind "$0/lists" "$0/program" && shift "$1" && exec "$@"' \
      "$anywhere" 1 "${be[@]}" "$anywhere/program" 3000 --wait
    profiled "mount$uid" "$uid"
    start_inside "root$uid" "$(command -v chroot)" --userspec="$uid:$uid" --groups= "$anywhere/root" /program 3000 --wait
    profiled "root$uid" "$uid"
  done
}

@test "start, stop: a deleted, a replaced executable, one on overlayfs; as root and as the owner" {
  reference
  daemon_and_lists
  mkdir "$anywhere/lower"
  install -m 755 "$TESTS_BUILD/lists" "$anywhere/lower/program"
  overlay "$anywhere/over" "$anywhere/lower"
  chmod 755 "$anywhere/over" "$anywhere/over/merged"
  local uid
  for uid in 0 "$ONE"; do
    local be=(/usr/bin/env)
    ((uid == 0)) || be=("${as_one[@]}")
    install -m 755 "$TESTS_BUILD/lists" "$anywhere/program"
    start_inside "deleted$uid" "${be[@]}" "$anywhere/program" 3000 --wait
    rm "$anywhere/program"
    profiled "deleted$uid" "$uid"
    install -m 755 "$TESTS_BUILD/lists" "$anywhere/program"
    start_inside "replaced$uid" "${be[@]}" "$anywhere/program" 3000 --wait
    install -m 755 "$TESTS_BUILD/arrays" "$anywhere/new"
    mv "$anywhere/new" "$anywhere/program"
    profiled "replaced$uid" "$uid"
    start_inside "overlay$uid" "${be[@]}" "$anywhere/over/merged/program" 3000 --wait
    profiled "overlay$uid" "$uid"
  done
}

@test "a copied-up executable: the daemon refuses it too, and holds nothing of it" {
  daemon_and_lists
  mkdir lower
  cp "$TESTS_BUILD/lists" lower/program
  overlay over lower
  start_inside target over/merged/program 3000 --wait
  chmod 700 over/merged/program
  refused "cannot reach the probes of process $target_pid" start -p "$target_pid"
  [[ $("$HEAPSONDE" status) == 'no profiles' ]]
  untouched "$target_pid"
}

@test "a user namespace: not for its owner, who is root in it; for root only" {
  reference
  daemon_and_lists
  local uid status how
  # shellcheck disable=SC2086  # words
  for how in -Ur "-Urpmf --kill-child --mount-proc"; do
    start_inside "target${#how}" "${as_one[@]}" "$UNSHARE" $how "$anywhere/lists" 3000 --wait
    local pid="target${#how}_pid"
    for uid in "$ONE" 4343; do
      status=0
      as_user "$uid" "$HEAPSONDE" start -p "${!pid}" >refused.out 2>refused.err || status=$?
      cat refused.err
      ((status == 1))
      grep -Eq "process ${!pid} (has capabilities|is in a user namespace|does not run entirely as user $uid)" refused.err
    done
    # And who is root in a user namespace of his own is not root to the daemon.
    status=0
    as_user "$ONE" "$UNSHARE" -Ur "$HEAPSONDE" stat --socket "$HEAPSONDE_SOCKET" -p "${!pid}" 1 1 >refused.out 2>refused.err || status=$?
    cat refused.err
    ((status == 1))
    grep -Eq "process ${!pid} (has capabilities|is in a user namespace)" refused.err
    [[ $("$HEAPSONDE" status) == 'no profiles' ]]
    untouched "${!pid}"
    profiled "target${#how}" 0
  done
}

# ---- heapsonde in a container ---------------------------------------------------------------

# container NAME: PID and mount namespaces of their own, with a /proc; NAME_init is the host's PID
# of the process that holds them. inside NAME COMMAND… runs something there, in this folder.
container() {
  "$UNSHARE" -p -f --kill-child --mount-proc sh -c 'echo ready; exec sleep infinity' >"$1.container" 3>&- &
  children+=($!)
  wait_until "the container" grep -q ready "$1.container" || return
  printf -v "${1}_init" %d "$(pgrep -P $!)"
}

# heapsonde_in NAME: from here on HEAPSONDE is one that runs in the container.
heapsonde_in() {
  local init=${1}_init
  # shellcheck disable=SC2016  # expanded there
  printf '#!/bin/sh\nexec %q -t %q -p -m sh -c '\''cd "$0" && exec "$@"'\'' %q %q "$@"\n' \
    "$NSENTER" "${!init}" "$PWD" "$HEAPSONDE" >"heapsonde-in-$1"
  chmod +x "heapsonde-in-$1"
  HEAPSONDE=$PWD/heapsonde-in-$1
}

@test "heapsonde in a PID namespace, and the target with it: the inner PID; all is right" {
  reference
  container box
  start_inside target "$NSENTER" -t "$box_init" -p -m "$TESTS_BUILD/lists" 3000 --wait
  local inner
  inner=$(inner_pid "$target_pid")
  grep -qx "ready $inner" target.out
  heapsonde_in box
  listed "$inner" '.attachable and .domains == 1 and (has("ns_pid") | not)'
  watched target "$inner"
  [[ $(jq -r 'select(.type == "header").pid' target_run.jsonl) == "$inner" ]]
}

@test "heapsonde in a PID namespace, the target in one below it; --domain" {
  reference
  container box
  start_inside target "$NSENTER" -t "$box_init" -p -m \
    "$UNSHARE" -p --kill-child -f "$TESTS_BUILD/lists" 3000 --wait
  local middle
  middle=$(awk '$1 == "NSpid:" { print $(NF - 1) }' "/proc/$target_pid/status")
  heapsonde_in box
  listed "$middle" '.attachable and .ns_pid == 1'
  start_record only -p "$middle" -r 1 --domain 0
  watched target "$middle"
  end_record only
  as_outside only target
}

@test "heapsonde in a PID namespace: start a program, and record it" {
  reference
  container box
  heapsonde_in box
  record_run run -r 1 -- lists 3000
  "$LIB/stats" -v counters=1 run.tsv run.out
  [[ $(sites run | cut -f 2) == "$(cut -f 2 "$BATS_FILE_TMPDIR/sites")" ]]
}

@test "heapsonde in a PID namespace does not see the host's processes" {
  start_inside target "$TESTS_BUILD/lists" 3000 --wait
  container box
  heapsonde_in box
  "$HEAPSONDE" list --json >list.jsonl 2>list.err
  [[ ! -s list.jsonl ]]
  local status=0
  "$HEAPSONDE" stat -p "$target_pid" 1 1 >none.out 2>none.err || status=$?
  cat none.err
  ((status == 1))
  grep -Eq "no process with PID $target_pid|process $target_pid .*not" none.err
}

@test "the daemon in a PID namespace: for those in it, and not for others, whose PIDs are others" {
  reference
  for_everybody
  container box
  local outside=$HEAPSONDE command
  heapsonde_in box
  start_daemon
  start_inside target "$NSENTER" -t "$box_init" -p -m "$TESTS_BUILD/lists" 3000 --wait
  local inner
  inner=$(inner_pid "$target_pid")
  for command in "start -p $inner" "record --socket $HEAPSONDE_SOCKET -p $inner" "stat --socket $HEAPSONDE_SOCKET -p $target_pid"; do
    # shellcheck disable=SC2086  # words
    HEAPSONDE=$outside refused 'the daemon on .* is in another PID namespace' $command
  done
  [[ $("$HEAPSONDE" status) == 'no profiles' ]]
  untouched "$target_pid"
  # What has no PID in it is for everybody.
  [[ $("$outside" status) == 'no profiles' ]]
  start_record run --socket "$HEAPSONDE_SOCKET" -p "$inner" -r 1
  tell target go
  said target '^done'
  end_target target
  end_record run
  as_outside run target
}

@test "a client in a PID namespace of its own: the daemon outside would take its PIDs for others" {
  start_daemon
  container box
  start_inside target "$NSENTER" -t "$box_init" -p -m "$TESTS_BUILD/lists" 3000 --wait
  heapsonde_in box
  local command
  for command in "start -p $(inner_pid "$target_pid")" "record --socket $HEAPSONDE_SOCKET -o run.jsonl -p $target_pid" \
    "stat --socket $HEAPSONDE_SOCKET -p $(inner_pid "$target_pid")" "top --socket $HEAPSONDE_SOCKET -p $(inner_pid "$target_pid")"; do
    # shellcheck disable=SC2086  # words
    refused 'the daemon on .* is in another PID namespace' $command
    [[ ! -e run.jsonl ]]
  done
  [[ $("$HEAPSONDE" status) == 'no profiles' ]]
  untouched "$target_pid"
}

@test "heapsonde in a time namespace: times are the host's all the same" {
  reference
  local from
  from=$(date +%s)
  start_inside target "$TESTS_BUILD/lists" 3000 --wait
  printf '#!/bin/sh\nexec %q -T --monotonic 1000000 --boottime 1000000 %q "$@"\n' "$UNSHARE" "$HEAPSONDE" >shifted
  chmod +x shifted
  HEAPSONDE=$PWD/shifted watched target
  # By the host's clocks it was now.
  jq -e -n --argjson from "$from" --argjson until "$(date +%s)" '[inputs]
    | (map(select(.type == "header"))[0].wall_offset) as $wall
    | (map(select(.type == "header").time)[0]) as $first | (map(select(.type == "summary").time)[0]) as $last
    | [.[].time // empty] | length > 3000
    and all(. >= $first and . <= $last and (. + $wall) / 1e9 > $from - 2 and (. + $wall) / 1e9 < $until + 2)' target_run.jsonl
}

@test "a /proc of another PID namespace, or none: refused, with what to do" {
  start_inside target "$TESTS_BUILD/lists" 3000 --wait
  local command status how
  for how in foreign none; do
    for command in list "record -p $target_pid" "stat -p $target_pid" "top -p $target_pid" "record -- $TESTS_BUILD/lists 100"; do
      status=0
      if [[ $how == foreign ]]; then
        # shellcheck disable=SC2086  # words
        "$UNSHARE" -p -f "$HEAPSONDE" $command >refused.out 2>refused.err </dev/null || status=$?
      else
        # shellcheck disable=SC2016  # expanded there
        "$UNSHARE" -m sh -c "umount -l /proc; exec \"$HEAPSONDE\" $command" >refused.out 2>refused.err </dev/null || status=$?
      fi
      # ASan wants a /proc as well, and says so.
      sed -i '/^==[0-9]*==WARNING: /d' refused.err
      echo "$how, $command: $(cat refused.err)"
      ((status == 1))
      [[ ! -s refused.out ]]
      (($(wc -l <refused.err) == 1))
      grep -q 'mount -t proc proc /proc' refused.err
    done
  done
  untouched "$target_pid"
}
