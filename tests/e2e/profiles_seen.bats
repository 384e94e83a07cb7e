#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# What one sees of the daemon's profiles: those who follow, the status, the output when
# the program ends; and that the checkers would see what is wrong. Needs root and BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers
load daemon_helpers

@test "follow: the records of the output from then on, ending with the summary" {
  start_daemon
  start_orders target 2
  start_profile run -p "$target_pid" -r 2^-4
  order target "alloc 1 100000"
  order target "keep 1 30000"
  order target "minor 0"
  follow_profile live "$run_id"
  [[ $(status_of "$run_id" .followers) == 1 ]]
  order target "alloc 0 100000"
  order target "alloc 1 100000"
  order target "spawn 1"
  order target "alloc $answer 100000"
  order target drop
  order target major
  order target major
  "$HEAPSONDE" stop "$run_id"
  order target "alloc 1 30000"
  end_profile run
  ended_with 0 "$live_pid" live.err
  [[ ! -s live.err ]]
  in_order live -v follow=1
  # Each record of the one is a record of the other, with the same stack, from its first
  # one on.
  local name
  for name in run live; do
    jq -r -n 'foreach inputs as $r ({};
        if $r.type == "stack" then .stacks[$r.id | tostring] = $r.frames | .line = null
        elif $r.type | IN("thread", "header", "summary") or . == "profile" then .line = null
        elif ($r.stack // 0) != 0 then .line = ($r | .stack = null) + {frames: .stacks[$r.stack | tostring]}
        else .line = $r end;
        .line | select(.) | tojson)' "$name.jsonl" >"$name.lines"
  done
  [[ -s live.lines ]]
  (($(wc -l <live.lines) < $(wc -l <run.lines)))
  tail -n "$(wc -l <live.lines)" run.lines | diff -q - live.lines
  # What died had been allocated before: the stream begins in the middle.
  awk -F '\t' '/^alloc_/ { known[$2] = 1 } $1 == "dealloc_major" && !($2 in known) { n++ }
    END { print n + 0, "died that were allocated before"; exit !n }' live.tsv
  diff <(tail -n 1 run.jsonl) <(tail -n 1 live.jsonl)
}

@test "follow of a stopped profile, by several, and without an output" {
  start_daemon
  start_orders target 2
  [[ $("$HEAPSONDE" start -p "$target_pid" -r 2^-4 3>&-) == 1 ]]
  order target "keep 1 30000"
  order target "minor 1"
  follow_profile one 1
  "$HEAPSONDE" stop 1
  follow_profile two 1
  follow_profile three 1
  [[ $(status_of 1 '.followers, .output_bytes' | paste -sd ' ') == "3 null" ]]
  kill -INT "$three_pid"
  ended_with 0 "$three_pid" three.err
  order target drop
  order target major
  order target major
  "$HEAPSONDE" discard 1
  ended_with 0 "$one_pid" one.err
  ended_with 0 "$two_pid" two.err
  in_order one -v follow=1
  in_order two -v follow=1
  (($(count two dealloc_major) > 500))
  (($(count one dealloc_major) == $(count two dealloc_major)))
  (($(count two alloc_minor) == 0))
  sed -n 2p two.jsonl | jq -e '.state == "stopped" and .reason == "interrupted"'
}

@test "--track: heaps, sources, allocations only" {
  start_daemon
  tracked() {
    start_target "t_$1" lifetimes 300 --wait || return
    local pid=t_${1}_pid
    start_profile "$1" -p "${!pid}" -r 2^-2 --track "$2" || return
    [[ $(status_of "$(("${1}_id"))" .track) == "$2" ]] || return
    tell "t_$1" go
    said "t_$1" '^done' || return
    tell "t_$1" end
    ended_with 0 "${!pid}" "t_$1.err" || return
    wait_until "the profile to finish" has_state "$(("${1}_id"))" finished || return
    end_profile "$1" || return
    awk -F '\t' '/^alloc_/ { print $1, $9 }' "$1.tsv" | sort -u | paste -sd , >"$1.kinds"
    cat "$1.kinds"
  }
  tracked minor minor
  grep -q 'alloc_minor normal' minor.kinds
  not grep -q alloc_major minor.kinds
  (($(count minor promote) > 0))
  tracked major major,normal
  [[ $(<major.kinds) == 'alloc_major normal' ]]
  (($(count major dealloc_major) > 0))
  tracked custom marshal,custom,minor
  [[ $(<custom.kinds) == 'alloc_minor custom,alloc_minor marshal' ]]
  tracked alloc alloc
  awk -F '\t' '/^(promote|dealloc_|unknown)/ { bad++ } /^alloc_/ { n++; if ($11 != "false") bad++ }
    END { exit !n || bad }' alloc.tsv
  tracked all all
  "$LIB/fates" all.tsv t_all.out
  local status=0
  "$HEAPSONDE" start -p $$ --track nonsense 2>usage.err || status=$?
  ((status == 2))
}

@test "status: a table for people, JSON for scripts, one profile in detail" {
  start_daemon
  [[ $("$HEAPSONDE" status) == 'no profiles' ]]
  [[ -z $("$HEAPSONDE" status --json) ]]
  refused "no profile 1" status 1
  start_orders target 3
  start_target other busy
  start_profile run -p "$target_pid" --domain 1 --domain 2 -r 2^-6 --stack-depth 7
  [[ $("$HEAPSONDE" start -p "$other_pid" -r 0.0001 --ring-size 16M --track minor --json 3>&-) == '{"profile":2}' ]]
  order target "alloc 1 300000"
  order target "keep 1 300000"
  order target "minor 1"
  as_of_now() { [[ $("$HEAPSONDE" status | awk '$1 == 1 { print $6 }') == $(status_of 1 .records) ]]; }
  wait_until "the table to show the records" as_of_now
  "$HEAPSONDE" status >table
  cat table
  [[ $(awk 'NR == 1 { $1 = $1; print }' table) == "ID PID USER STATE RATE RECORDS LIVE-WORDS LOST COMMAND" ]]
  grep -Eq "^ *1 +$target_pid +root +sampling +2\^-6 +[0-9]+ +[0-9.]+k +0 +.*orders --domains 3" table
  grep -Eq "^ *2 +$other_pid +root +sampling +0\.0001 +[0-9]+ +[0-9.]+[kM]? +0 +.*busy" table
  (($(wc -l <table) == 3))
  "$HEAPSONDE" status --json | jq -s -e --argjson pid "$target_pid" --argjson other "$other_pid" '
    length == 2 and [.[].profile] == [1, 2] and [.[].pid] == [$pid, $other]
    and all(.[]; .state == "sampling" and .reason == null and .uid == 0 and .rates == 1 and .lost == {}
      and .counters_only == false and .bound == false and .followers == 0 and .output_error == null
      and (has("domains") | not))
    and .[0].listed == [1, 2] and .[1].listed == null and .[0].stack_depth == 7 and .[1].stack_depth == 64
    and .[0].track == "all" and .[1].track == "minor" and .[0].output_bytes > 0 and .[1].output_bytes == null
    and .[0].rate == 0.015625 and .[0].records > 0 and .[0].samples >= .[0].records and .[0].time > 0'
  # In detail it is as of this moment.
  "$HEAPSONDE" status 1 >detail
  cat detail
  grep -Eq '^state +sampling' detail
  grep -Eq '^rate +2\^-6' detail
  grep -Eq '^ +1 +alive +2\^-6 ' detail
  status_of 1 '.domains[] | select(.domain == 1) | .sampled, .minor_words - .base_minor_words >= 590000' |
    paste -sd ' ' | grep -qx 'true true'
  status_of 1 '.domains[] | select(.domain == 0).sampled' | grep -qx false
  # Live words are what the program keeps, within six standard deviations.
  status_of 1 '(.live_words - 300000) / (300000 * 64 | sqrt) | fabs < 6' | grep -qx true
  order target drop
  order target major
  order target major
  status_of 1 '.live_words < 64 * 200' | grep -qx true
  "$HEAPSONDE" stop 1
  "$HEAPSONDE" status 1 | grep -Eq '^state +stopped \(interrupted\)'
  is_stopped() { "$HEAPSONDE" status | grep -Eq "^ *1 +$target_pid +root +stopped"; }
  wait_until "the table to say so" is_stopped
  "$HEAPSONDE" discard 1
  [[ $("$HEAPSONDE" status --json | jq -c .profile) == 2 ]]
}

@test "the program ends: the profile is finished, with exact counters, and can be discarded" {
  start_daemon
  start_target target busy --domains 3
  start_profile run -p "$target_pid" -r 2^-14
  wait_until "some records" grep -q '^{"type":"alloc_' run.jsonl
  tell target stop
  ended_with 0 "$target_pid" target.err
  wait_until "the profile to finish" has_state "$run_id" finished
  [[ $(status_of "$run_id" .reason) == "target exited" ]]
  # The output has its summary without a discard.
  in_order run
  "$LIB/counters" run.tsv target.out
  statistically "$LIB/stats" -v counters=2 run.tsv /dev/null
  refused "has (ended|finished)" rate "$run_id" 2^-9
  end_profile run
  [[ $("$HEAPSONDE" status) == 'no profiles' ]]
}

@test "a raw output, exported, has the same form and the same counts" {
  raw() {
    n=$((${n:-0} + 1))
    start_orders "target$n" 2 || return
    local pid=target${n}_pid
    [[ $("$HEAPSONDE" start -p "${!pid}" -r 2^-4 --ring-size 16M --format raw -o "run$n.hsd" 3>&-) == "$n" ]] || return
    order "target$n" "alloc 1 300000" && order "target$n" "thread 0 30000" && order "target$n" major || return
    "$HEAPSONDE" stop "$n"
    "$HEAPSONDE" discard "$n" || return
    "$HEAPSONDE" export "run$n.hsd" >"run$n.jsonl" 2>"run$n.err" && in_order "run$n" || return
    [[ $(domains_in "run$n") == "0 1" ]] || return
    "$LIB/stats" -v counters=2 "run$n.tsv" /dev/null
  }
  start_daemon
  statistically raw
}

@test "check_order refuses what no profile may do" {
  start_daemon
  start_orders target 2
  start_profile run -p "$target_pid" -r 2^-3
  order target "alloc 1 3000"
  order target "minor 1"
  "$HEAPSONDE" rate 1 2^-4
  order target "alloc 1 30000"
  order target "minor 0"
  "$HEAPSONDE" stop 1
  end_profile run
  local n
  # refuses SED: as in checkers.bats.
  refuses() {
    sed -E "$1" run.jsonl >changed.jsonl
    not cmp -s run.jsonl changed.jsonl || fail "$1 changes nothing" || return
    if "$LIB/flatten" changed.jsonl >changed.tsv 2>&1 && "$LIB/check_order" changed.tsv >verdict; then
      fail "accepted after $1"
    fi
  }
  at() { grep -n "$1" run.jsonl | "$2" -n 1 | cut -d: -f1; }
  n=$(at '^{"type":"thread"' head)
  refuses "${n}d"
  refuses "${n}p"
  refuses "${n}s/\"domain\":[0-9]+/\"domain\":9/"
  n=$(at '^{"type":"rate"' head)
  refuses "${n}s/\"rate\":0.0625/\"rate\":0.5/"
  refuses "${n}s/\"minor_words\":[0-9]+/\"minor_words\":1/"
  refuses '/^\{"type":"rate".*"domain":1/d'
  n=$(at '"state":"stopped"' head)
  refuses "${n}s/\"reason\":\"interrupted\"/\"reason\":\"domains gone\"/"
  refuses "${n}s/,\"reason\":\"interrupted\"//"
  refuses "${n}p"
  # The stop before the last allocation.
  sed -n "${n}p" run.jsonl >stop
  awk -v at="$(at '^{"type":"alloc_' tail)" 'FILENAME == "stop" { stop = $0; next }
    FNR == at { print stop } $0 != stop' stop run.jsonl >changed.jsonl
  "$LIB/flatten" changed.jsonl >changed.tsv
  not "$LIB/check_order" changed.tsv
  # shellcheck disable=SC2016  # sed's $
  refuses '$s/"end_minor_words":[0-9]+/"end_minor_words":1/'
  # shellcheck disable=SC2016
  refuses '$s/"end_minor_words":[0-9]+,//'
  n=$(at '^{"type":"alloc_' head)
  refuses "${n}s/\"profile\":1/\"profile\":2/"
}
