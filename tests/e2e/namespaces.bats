#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# Targets in containers: namespaces, chroots, files that are elsewhere, gone or changed. What is
# said of them must be what is said of the same program outside, to the word. Needs root and BPF.
# Through the daemon, and heapsonde itself in a container: namespaces_daemon.bats.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers
load daemon_helpers
load top_helpers
load namespaces_helpers

@test "a PID namespace: the host's PID, and the inner one is shown" {
  reference
  start_inside target "$UNSHARE" -p --kill-child -f "$TESTS_BUILD/lists" 3000 --wait
  # What it says is its own PID.
  grep -qx 'ready 1' target.out
  listed "$target_pid" '.attachable and .ns_pid == 1 and .domains == 1'
  "$HEAPSONDE" list 2>list.err | awk -v pid="$target_pid" 'NR == 1 { column = $2 } $1 == pid { shown = $2 }
    END { exit !(column == "NSPID" && shown == 1) }'
  watched target
  [[ $(jq -r 'select(.type == "header").pid' target_run.jsonl) == "$target_pid" ]]
}

@test "a PID namespace: outside, the inner PID is another process" {
  local status=0
  sleep infinity 3>&- &
  local outer=$!
  children+=("$outer")
  # shellcheck disable=SC2016  # expanded there
  start_inside target "$UNSHARE" -p --kill-child -f --mount-proc \
    sh -c 'exec 4<&0; echo $(($0 - 1)) >/proc/sys/kernel/ns_last_pid; "$1" 3000 --wait <&4 & wait $!' "$outer" \
    "$TESTS_BUILD/lists"
  grep -qx "ready $outer" target.out
  listed "$target_pid" ".ns_pid == $outer"
  "$HEAPSONDE" record -p "$outer" 2>other.err || status=$?
  cat other.err
  ((status == 1))
  grep -Eqx "heapsonde: process $outer \(.*sleep\) is not an OCaml program" other.err
  untouched "$target_pid"
  tell target go
  end_target target
}

@test "list without containers has no column for them" {
  start_inside target "$TESTS_BUILD/lists" 3000 --wait
  listed "$target_pid" 'has("ns_pid") | not'
}

@test "a mount namespace: the executable is at a path that does not exist outside" {
  reference
  mkdir inner
  # shellcheck disable=SC2016  # expanded there
  start_inside target "$UNSHARE" -m sh -c 'mount -t tmpfs none inner && cp "$0" inner/lists &&
    exec inner/lists 3000 --wait' "$TESTS_BUILD/lists"
  [[ $(readlink "/proc/$target_pid/exe") == "$PWD/inner/lists" && ! -e inner/lists ]]
  listed "$target_pid" .attachable
  watched target
}

@test "a mount namespace: at the executable's path is another program outside" {
  reference
  # OCaml with probes as well, so that reading the wrong file would not be noticed at once.
  cp "$TESTS_BUILD/arrays" program
  # shellcheck disable=SC2016  # expanded there
  start_inside target "$UNSHARE" -m sh -c 'mount --bind "$0" program && exec ./program 3000 --wait' \
    "$TESTS_BUILD/lists"
  [[ $(readlink "/proc/$target_pid/exe") == "$PWD/program" ]]
  cmp -s program "$TESTS_BUILD/arrays"
  listed "$target_pid" .attachable
  watched target
}

@test "a chroot, and another program at its path outside of it" {
  reference
  make_root root "$TESTS_BUILD/lists"
  start_inside target "$(command -v chroot)" root /program 3000 --wait
  listed "$target_pid" .attachable
  watched target
}

@test "the executable has been deleted" {
  reference
  cp "$TESTS_BUILD/lists" program
  start_inside target ./program 3000 --wait
  rm program
  listed "$target_pid" .attachable
  watched target
}

@test "the executable has been replaced by another one" {
  reference
  cp "$TESTS_BUILD/lists" program
  start_inside target ./program 3000 --wait
  cp "$TESTS_BUILD/arrays" new
  mv new program
  listed "$target_pid" .attachable
  watched target
}

@test "the executable has been renamed, and another one put at its path" {
  reference
  cp "$TESTS_BUILD/lists" program
  start_inside target ./program 3000 --wait
  mv program old
  cp "$TESTS_BUILD/arrays" program
  watched target
}

@test "overlayfs: the executable is in the lower layer, or in the upper one" {
  reference
  mkdir lower
  cp "$TESTS_BUILD/lists" lower/program
  overlay over lower
  start_inside low over/merged/program 3000 --wait
  listed "$low_pid" .attachable
  watched low
  cp "$TESTS_BUILD/lists" over/merged/fresh
  start_inside up over/merged/fresh 3000 --wait
  watched up
}

@test "overlayfs mounted in a mount namespace of its own" {
  reference
  mkdir lower over
  cp "$TESTS_BUILD/lists" lower/program
  # shellcheck disable=SC2016  # expanded there
  start_inside target "$UNSHARE" -m sh -c 'mount -t tmpfs none over && mkdir over/u over/w over/m &&
    mount -t overlay -o lowerdir=lower,upperdir=over/u,workdir=over/w none over/m &&
    exec over/m/program 3000 --wait'
  watched target
}

@test "overlayfs: the executable was copied up before it was started" {
  reference
  mkdir lower
  cp "$TESTS_BUILD/lists" lower/program
  overlay over lower
  chmod 700 over/merged/program
  [[ -e over/upper/program ]]
  start_inside target over/merged/program 3000 --wait
  watched target
}

@test "overlayfs: the executable was copied up while it runs: refused, not recorded as empty" {
  local command status
  mkdir lower
  cp "$TESTS_BUILD/lists" lower/program
  overlay over lower
  start_inside target over/merged/program 3000 --wait
  chmod 700 over/merged/program
  [[ -e over/upper/program ]]
  for command in 'record -o run.jsonl' 'top -n 1' 'stat'; do
    status=0
    # shellcheck disable=SC2086  # words
    "$HEAPSONDE" $command -p "$target_pid" >refused.out 2>refused.err </dev/null || status=$?
    cat refused.out refused.err
    ((status == 1))
    [[ ! -s refused.out && ! -e run.jsonl ]]
    (($(wc -l <refused.err) == 1))
    grep -q "cannot reach the probes of process $target_pid.*restart the program" refused.err
  done
  untouched "$target_pid"
  tell target go
  end_target target
}

@test "overlayfs: the executable is copied up during a recording: the rate stays, the record is right" {
  reference
  mkdir lower
  cp "$TESTS_BUILD/lists" lower/program
  overlay over lower
  start_inside target over/merged/program 3000 --wait
  start_record run -p "$target_pid" -r 1
  chmod 700 over/merged/program
  tell target go
  said target '^done'
  end_target target
  end_record run
  as_outside run target
}

@test "a user namespace, in which the target is root" {
  reference
  start_inside target "$UNSHARE" -Ur "$TESTS_BUILD/lists" 3000 --wait
  listed "$target_pid" '.attachable and .uid == 0'
  watched target
}

@test "a user namespace of a user's: root inside, and its owner outside" {
  reference
  for_everybody
  install -m 755 "$TESTS_BUILD/lists" "$anywhere"
  start_inside target /usr/bin/setpriv --reuid 4242 --regid 4242 --clear-groups env "$UNSHARE" -Ur \
    "$anywhere/lists" 3000 --wait
  listed "$target_pid" '.attachable and .uid == 4242'
  watched target
}

@test "all namespaces at once" {
  reference
  start_inside target "$UNSHARE" -Urpmiunf --kill-child --mount-proc "$TESTS_BUILD/lists" 3000 --wait
  grep -qx 'ready 1' target.out
  listed "$target_pid" '.attachable and .ns_pid == 1'
  watched target
}

@test "PID namespaces in each other" {
  reference
  start_inside target "$UNSHARE" -p --kill-child -f --mount-proc \
    "$UNSHARE" -p --kill-child -f "$TESTS_BUILD/lists" 3000 --wait
  (($(awk '$1 == "NSpid:" { print NF - 1 }' "/proc/$target_pid/status") >= 3))
  listed "$target_pid" '.attachable and .ns_pid == 1'
  watched target
}

@test "a time namespace: times are the host's" {
  reference
  start_inside target "$UNSHARE" -T --monotonic 1000000 --boottime 1000000 "$TESTS_BUILD/lists" 3000 --wait
  watched target
  # heapsonde's own clock, before and after.
  jq -e -n '[inputs] | (map(select(.type == "header").time)[0]) as $from
    | (map(select(.type == "summary").time)[0]) as $until
    | [.[].time // empty] | length > 3000 and all(. >= $from and . <= $until)' target_run.jsonl
}

# ---- several views of one process -----------------------------------------------------------

@test "two tops at once, and a third on another process of the program: all right" {
  start_inside target "$TESTS_BUILD/lists" 3000 --wait
  start_inside other "$TESTS_BUILD/lists" 6000 --wait
  start_plain_top one "$target_pid"
  start_plain_top two "$target_pid"
  start_plain_top three "$other_pid"
  tell target go
  tell other go
  said target '^done'
  said other '^done'
  end_target target
  end_target other
  local name pid
  for name in one two three; do
    pid=${name}_top
    ended_with 0 "${!pid}" "$name.top.err"
  done
  top_exact one target
  top_exact two target
  top_exact three other
}

@test "two tops at once: one is killed, the other goes on and is right" {
  start_inside target "$TESTS_BUILD/lists" 3000 --wait
  start_plain_top one "$target_pid"
  start_plain_top two "$target_pid"
  kill -KILL "$one_top"
  ended_with 137 "$one_top"
  tell target go
  said target '^done'
  end_target target
  ended_with 0 "$two_top" two.top.err
  top_exact two target
}

@test "top on a forked child of a process that is being recorded: both right" {
  start_target target fork 6000 --wait --children 1 --hold
  start_record run -p "$target_pid" -r 1
  tell target go
  said target '^child [0-9]+'
  local child
  child=$(awk '$1 == "child" { print $2; exit }' target.out)
  # The probes of its parent are not its own.
  untouched "$child"
  start_plain_top child "$child"
  tell target go
  said target '^done'
  ended_with 0 "$child_top" child.top.err
  tell target end
  ended_with 0 "$target_pid" target.err
  end_record run
  grep -qx 'child ok' target.out
  "$LIB/stats" -v counters=1 run.tsv target.out
  # What fork.ml says of its children.
  printf 'expect\talloc_minor\tnormal\ttop\tFork.child_work\t-\t-\t-\t6000\t2000\t2\n' >child.out
  top_exact child child 1
}
