#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# record and stat through the daemon give what they give without; the daemon started by
# hand. Needs root and BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers
load daemon_helpers

@test "record --socket: the same records as without" {
  through() {
    n=$((${n:-0} + 1))
    start_target "target$n" lists 400000 --wait || return
    local pid=target${n}_pid
    start_record "run$n" --socket "$HEAPSONDE_SOCKET" -p "${!pid}" -r 2^-5 || return
    tell "target$n" go
    said "target$n" '^done' || return
    tell "target$n" end
    ended_with 0 "${!pid}" "target$n.err" && end_record "run$n" || return
    [[ $(reason "run$n") == "target exited" ]] || return
    "$LIB/counters" "run$n.tsv" "target$n.out" || return
    "$LIB/stats" -v counters=1 -v rate=0.03125 "run$n.tsv" "target$n.out"
  }
  start_daemon
  statistically through
  [[ $("$HEAPSONDE" status) == 'no profiles' ]]
}

@test "record --socket: --duration, --top, raw; and Ctrl-C" {
  start_daemon
  start_target target busy
  with_table() {
    "$HEAPSONDE" record --socket "$HEAPSONDE_SOCKET" -p "$target_pid" -r 2^-14 --duration "$1" --top 3 \
      --force -o run.jsonl >run.out 2>run.err </dev/null 3>&- && in_order run || return
    [[ $(reason run) == duration && ! -s run.out ]] || return
    cat run.err
    grep -Eq 'WORDS +LIVE +SHARE +ALLOCATION SITE' run.err && grep -q 'Busy.churn' run.err
  }
  given_time with_table
  nothing_attached "$target_pid"
  raw() {
    "$HEAPSONDE" record --socket "$HEAPSONDE_SOCKET" -p "$target_pid" -r 2^-14 --duration "$1" --format raw \
      --force -o raw.hsd || return
    "$HEAPSONDE" export raw.hsd >raw.jsonl 2>raw.err && in_order raw && (($(count raw alloc_minor) > 0))
  }
  given_time raw
  # To standard output.
  "$HEAPSONDE" record --socket "$HEAPSONDE_SOCKET" -p "$target_pid" -r 2^-14 --duration 0.5 >stdout.jsonl 2>stdout.err
  in_order stdout
  start_record last --socket "$HEAPSONDE_SOCKET" -p "$target_pid" -r 2^-14
  "$HEAPSONDE" status --json | jq -e .bound
  end_record last INT
  [[ $(reason last) == interrupted ]]
  nothing_attached "$target_pid"
  [[ $("$HEAPSONDE" status) == 'no profiles' ]]
}

@test "record --socket -- CMD: from its first allocation, with its exit code" {
  command() {
    n=$((${n:-0} + 1))
    record_run "run$n" --socket "$HEAPSONDE_SOCKET" -r 2^-5 -- lists 200000 || return
    "$LIB/counters" "run$n.tsv" "run$n.out" || return
    "$LIB/stats" -v counters=1 "run$n.tsv" "run$n.out"
  }
  start_daemon
  statistically command
  local code status
  for code in 0 7; do
    status=0
    "$HEAPSONDE" record --socket "$HEAPSONDE_SOCKET" -r 2^-10 --force -o code.jsonl -- "$TESTS_BUILD/lists" 1000 \
      --exit "$code" >code.out 2>code.err || status=$?
    ((status == code))
    in_order code
  done
  status=0
  "$HEAPSONDE" record --socket "$HEAPSONDE_SOCKET" -r 2^-10 --force -o code.jsonl -- "$TESTS_BUILD/lists" 100000 \
    --crash >code.out 2>code.err || status=$?
  ((status == 139))
  in_order code
}

@test "record --socket -- CMD: the same allocations, stacks and table as without" {
  start_daemon
  "$HEAPSONDE" record -r 1 --top 9 -o direct.jsonl -- "$TESTS_BUILD/lists" 3000 >direct.out 2>direct.err
  "$HEAPSONDE" record --socket "$HEAPSONDE_SOCKET" -r 1 --top 9 -o through.jsonl -- "$TESTS_BUILD/lists" 3000 \
    >through.out 2>through.err
  local name
  for name in direct through; do
    in_order "$name"
    "$LIB/stats" "$name.tsv" "$name.out"
    jq -n -r --arg unit Lists -f "$LIB/canonical.jq" "$name.jsonl" >"$name.txt"
    # The columns but LIVE, which hangs on the moment of the last collection.
    awk '{ $2 = ""; print }' "$name.err" >"$name.top"
  done
  [[ $(wc -l <direct.txt) -gt 1000 ]]
  cmp direct.txt through.txt
  grep -q 'Lists.conses' through.top
  diff direct.top through.top
}

@test "record --socket is one profile among others" {
  start_daemon
  start_orders target 2
  start_profile first -p "$target_pid" --domain 0
  start_record run --socket "$HEAPSONDE_SOCKET" -p "$target_pid" --domain 1 -r 2^-4
  refused "domain 1 .*samples for profile 2 already" start -p "$target_pid" --domain 1
  refused "domain 0 .*samples for profile 1 already" \
    record --socket "$HEAPSONDE_SOCKET" -p "$target_pid" --domain 0 -o other.jsonl
  order target "alloc 1 30000"
  # One with a command of its own can be stopped by others, too.
  "$HEAPSONDE" stop 2
  "$HEAPSONDE" discard 2
  ended_with 0 "$run_pid" run.err
  in_order run
  [[ $(domains_in run) == 1 ]]
  end_profile first
}

@test "stat --socket: each domain's counters, as without; profiles are not in the way" {
  start_daemon
  start_target target lists 3000000 --wait
  start_profile run -p "$target_pid"
  "$HEAPSONDE" stat --socket "$HEAPSONDE_SOCKET" -p "$target_pid" 0.5 >stat.out 2>stat.err 3>&- &
  local pid=$! allocated
  children+=("$pid")
  is_attached() { "$HEAPSONDE" status --json | jq -e -s 'any(.[]; .counters_only)'; }
  wait_until "stat to attach" is_attached
  tell target go
  said target '^done'
  allocated=$(awk -F '\t' '$1 == "expect" { n += $9 } END { print n }' target.out)
  words_shown() {
    awk '!column { for (i = 1; i <= NF; i++) if (toupper($i) ~ /^MINOR.WORDS$/) column = i; next }
      $column ~ /^[0-9]+$/ { words += $column } END { printf "%.0f\n", words }' stat.out
  }
  enough_shown() { (($(words_shown) >= allocated - 262144)); }
  wait_until "$allocated words to be shown" enough_shown
  (($(words_shown) <= allocated + 10000))
  tell target end
  ended_with 0 "$target_pid" target.err
  ended_with 0 "$pid" stat.err
  # With a count, and by its default.
  start_target other busy --domains 2
  # In each interval both domains have allocated, if these are long enough.
  thrice() {
    "$HEAPSONDE" stat --socket "$HEAPSONDE_SOCKET" -p "$other_pid" "$1" 3 >stat3.out || return
    cat stat3.out
    (($(grep -Ec '^ +[01] alive +[1-9]' stat3.out) == 6))
  }
  given_time thrice
  "$HEAPSONDE" stat -p "$other_pid" 0.3 3 >direct.out
  [[ $(head -n 1 stat3.out) == $(head -n 1 direct.out) && $(wc -l <stat3.out) == $(wc -l <direct.out) ]]
  "$HEAPSONDE" stat --socket "$HEAPSONDE_SOCKET" -p "$other_pid" >stat1.out
  (($(grep -Ec '^ +[01] alive +[0-9]' stat1.out) == 2))
  nothing_attached "$other_pid"
}

@test "stat --socket ends well with its target, though it asks all the time" {
  start_daemon
  local i stat
  for i in 1 2 3 4 5; do
    start_target "target$i" busy
    local pid=target${i}_pid
    anew stat.out
    "$HEAPSONDE" stat --socket "$HEAPSONDE_SOCKET" -p "${!pid}" 0.001 >stat.out 2>stat.err 3>&- &
    stat=$!
    children+=("$stat")
    wait_until "stat to print" grep -qs ' alive ' stat.out
    tell "target$i" stop
    ended_with 0 "${!pid}" "target$i.err"
    ended_with 0 "$stat" stat.err
    [[ ! -s stat.err ]]
  done
}

# ---- the daemon ---------------------------------------------------------------------------

@test "the daemon by hand: ready when it says so, one for a socket, SIGTERM ends it well" {
  for_everybody
  export HEAPSONDE_SOCKET=$anywhere/control.sock
  # Left behind by one that was killed.
  socat UNIX-LISTEN:"$HEAPSONDE_SOCKET" STDIO </dev/null >/dev/null 2>&1 3>&- &
  wait_until "a socket" test -S "$HEAPSONDE_SOCKET"
  kill -KILL $!
  wait $! || true
  [[ -S $HEAPSONDE_SOCKET ]]
  refused 'no daemon' status
  socat -u UNIX-RECV:"$PWD/notify" OPEN:notified,creat,append 3>&- &
  children+=($!)
  wait_until "somebody to notify" test -S notify
  NOTIFY_SOCKET=$PWD/notify start_daemon
  ready() { grep -aq 'READY=1' notified; }
  wait_until "READY=1" ready
  # One that is refused, and does no harm.
  local status=0
  timeout "$DEADLINE" "$HEAPSONDE" daemon --socket "$HEAPSONDE_SOCKET" >second.out 2>second.err 3>&- || status=$?
  ((status == 1))
  grep -q "another daemon listens on $HEAPSONDE_SOCKET" second.err
  start_target target busy --domains 2
  start_profile run -p "$target_pid" --domain 0 -r 2^-13
  start_profile stopped -p "$target_pid" --domain 1 -r 2^-13
  follow_profile live "$run_id"
  start_record bound --socket "$HEAPSONDE_SOCKET" -p "$target_pid" --domain 1 -r 2^-14 || true
  wait_until "some records" grep -q '^{"type":"alloc_' live.jsonl
  wait_until "some records" grep -q '^{"type":"alloc_' stopped.jsonl
  "$HEAPSONDE" stop "$stopped_id"
  stop_daemon
  grep -aq 'STOPPING=1' notified
  in_order run
  in_order stopped
  ended_with 0 "$live_pid" live.err
  in_order live -v follow=1
  [[ $(reason run) == interrupted && $(reason live) == interrupted && $(reason stopped) == interrupted ]]
  nothing_attached "$target_pid"
  refused 'no daemon' status
  # And again on the same socket.
  start_daemon
  start_profile again -p "$target_pid"
  end_profile again
  stop_daemon
  tell target stop
  ended_with 0 "$target_pid" target.err
  grep -q '^ok' target.out
}

@test "what is no socket is not replaced" {
  for_everybody
  export HEAPSONDE_SOCKET=$anywhere/control.sock
  echo precious >"$HEAPSONDE_SOCKET"
  local status=0
  timeout "$DEADLINE" "$HEAPSONDE" daemon --socket "$HEAPSONDE_SOCKET" >daemon.out 2>daemon.err 3>&- || status=$?
  ((status == 1))
  grep -q 'is not a socket' daemon.err
  [[ $(<"$HEAPSONDE_SOCKET") == precious ]]
  refused . status
}
