#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# Changing a profile's rate while it samples: the records say from where on, each span
# has as many samples as its words and its rate give, and the estimates over all of
# them are unbiased. Needs root and BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers
load daemon_helpers

# all_over PROFILE: all its domains have gone over to the rate asked for last.
all_over() {
  wait_until "all domains to go over" has_one_rate "$1"
}

has_one_rate() {
  # shellcheck disable=SC2016  # jq's variable
  status_of "$1" '(.rates == 1) and (.rate as $rate | all(.domains[]; .state == "terminated" or .rate == null or .rate == $rate))' | grep -qx true
}

# steady NAME WORDS DOMAIN…: these domains allocate so many words each millisecond.
steady() {
  local name=$1 words=$2 d
  shift 2
  for d; do order "$name" "steady $d $words" || return; done
}

# n_spans NAME DOMAIN: how many rate records it has.
n_spans() {
  awk -F '\t' -v d="$2" '$1 == "rate" && $3 == d { n++ } END { print n + 0 }' "$1.tsv"
}

# changing NAME RATE…: three domains allocate at their ease, under the first rate and
# then under each of the others.
changing() {
  local name=$1 rate child
  shift
  start_orders "t$name" 3 || return
  local pid=t${name}_pid
  start_profile "$name" -p "${!pid}" -r "$1" || return
  local id=${name}_id n=$#
  # So few that what a reader who is held up for seconds misses fits into the ring buffer.
  steady "t$name" 200 0 1 2 || return
  shift
  sleep 0.2
  for rate; do
    "$HEAPSONDE" rate "${!id}" "$rate" || return
    all_over "${!id}" || return
    # A large allocation now and then, and a domain that begins under this rate.
    order "t$name" "large 1 400000" && order "t$name" "spawn 2" || return
    child=$answer
    order "t$name" "alloc $child 100000" && order "t$name" "end $child" || return
    sleep 0.2
  done
  steady "t$name" 0 0 1 2 || return
  tell "t$name" stop
  ended_with 0 "${!pid}" "t$name.err" || return
  wait_until "the profile to finish" has_state "${!id}" finished || return
  end_profile "$name" || return
  local d
  for d in 0 1 2; do
    (($(n_spans "$name" "$d") == n - 1)) || fail "domain $d has $(n_spans "$name" "$d") changes" || return
  done
  # What the program says it allocated in all is what the summary says, and what the
  # samples estimate.
  "$LIB/counters" "$name.tsv" "t$name.out" || return
  "$LIB/stats" -v spans=1 -v promoted=1 "$name.tsv"
}

@test "up and down, across tiers: each span is right, and so is the whole" {
  across() {
    n=$((${n:-0} + 1))
    changing "run$n" 2^-6 2^-10 0.00037 2^-4 2^-8
  }
  start_daemon
  statistically across
}

@test "within one tier: nothing is attached anew, and each span is right" {
  within() {
    n=$((${n:-0} + 1))
    changing "run$n" 0.013 0.0085 0.0155 0.008
  }
  start_daemon
  statistically within
}

@test "the lowest and the highest rates" {
  extremes() {
    n=$((${n:-0} + 1))
    start_orders "t$n" 2 || return
    local pid=t${n}_pid rate
    start_profile "run$n" -p "${!pid}" -r 2^-24 || return
    for rate in 1 2^-30 1 2^-3; do
      order "t$n" "alloc 1 6000" && order "t$n" "alloc 0 6000" || return
      "$HEAPSONDE" rate "$n" "$rate" && order "t$n" "minor 1" && all_over "$n" || return
    done
    order "t$n" "alloc 1 30000" && order "t$n" "minor 1" && end_profile "run$n" || return
    "$LIB/stats" -v spans=1 "run$n.tsv"
  }
  start_daemon
  statistically extremes
}

@test "the probes are those of the rates in force" {
  start_daemon
  start_orders target 2
  start_profile run -p "$target_pid" -r 2^-7
  tiers() { probes_up "$target_pid" | grep '^alloc' | sort | paste -sd ' '; }
  order target "minor 0"
  [[ $(tiers) == alloc_7 ]]
  "$HEAPSONDE" rate 1 2^-5
  # Both, as no domain has had a collection since.
  [[ $(tiers) == "alloc_5 alloc_7" ]]
  status_of 1 '.rate, .rates' | paste -sd ' ' | grep -qx '0.03125 2'
  "$HEAPSONDE" status 1 | grep -q '2 rates are in force'
  order target "minor 0"
  all_over 1
  is_alone() { [[ $(tiers) == "$1" ]]; }
  wait_until "the old tier to go" is_alone alloc_5
  # Within the tier.
  "$HEAPSONDE" rate 1 0.02
  [[ $(tiers) == alloc_5 ]]
  order target "minor 0"
  all_over 1
  [[ $(tiers) == alloc_5 ]]
  "$HEAPSONDE" status | grep -Eq "^ *1 .* sampling +0\.02 "
  end_profile run
  nothing_attached "$target_pid"
}

@test "a domain that is idle goes over at its next minor collection, and not before" {
  idle() {
    n=$((${n:-0} + 1))
    start_orders "t$n" 3 || return
    local pid=t${n}_pid
    start_profile "run$n" -p "${!pid}" --domain 1 --domain 2 -r 2^-4 || return
    order "t$n" "minor 0" || return
    order "t$n" "alloc 1 90000" && order "t$n" "alloc 2 90000" && order "t$n" "minor 0" || return
    "$HEAPSONDE" rate "$n" 2^-6 || return
    # Half a minor heap: no collection yet, so this is at the old rate.
    order "t$n" "alloc 1 3900" || return
    [[ $(status_of "$n" '.rates') == 2 ]] || return
    order "t$n" "minor 0" || return
    all_over "$n" || return
    order "t$n" "alloc 1 90000" && order "t$n" "alloc 2 90000" && order "t$n" "minor 0" || return
    end_profile "run$n" || return
    (($(n_spans "run$n" 1) == 1 && $(n_spans "run$n" 2) == 1)) || return
    # What was allocated under the new rate and before the collection is in the first span.
    awk -F '\t' '$1 == "rate" && $3 == 1 { at = $7 } $1 == "summary" {
        for (i = 4; i <= NF; i++) { split($i, d, ":"); if (d[1] == 1) base = d[6] }
      } END { print at - base; exit at - base < 93900 }' "run$n.tsv" || return
    "$LIB/stats" -v spans=1 "run$n.tsv"
  }
  start_daemon
  statistically idle
}

@test "many changes in quick succession: each is made or refused, and the spans are right" {
  quick() {
    n=$((${n:-0} + 1))
    start_orders "t$n" 3 || return
    local pid=t${n}_pid i made=0 refused=0 status
    start_profile "run$n" -p "${!pid}" -r 2^-6 || return
    # Domain 2 is idle, but for the collections of the others.
    steady "t$n" 200 0 1 || return
    # If the program stands still for a while more are refused: on until some are made again.
    for ((i = 0; i < 40 || i < 4000 && made < 16; i++)); do
      status=0
      "$HEAPSONDE" rate "$n" "2^-$((5 + i * 7 % 9))" 2>rate.err || status=$?
      if ((status == 0)); then
        made=$((made + 1))
      else
        grep -q 'too many changes of rate' rate.err || fail "$(cat rate.err)" || return
        refused=$((refused + 1))
      fi
    done
    echo "$made changes made, $refused refused"
    all_over "$n" || return
    steady "t$n" 0 0 1 && order "t$n" "alloc 2 90000" || return
    tell "t$n" stop
    ended_with 0 "${!pid}" "t$n.err" || return
    wait_until "the profile to finish" has_state "$n" finished || return
    end_profile "run$n" || return
    ((made >= 16)) || fail "only $made of $i changes were made" || return
    "$LIB/counters" "run$n.tsv" "t$n.out" || return
    "$LIB/stats" -v spans=1 -v promoted=1 "run$n.tsv"
  }
  start_daemon
  statistically quick
}

@test "more rates than can be in force are refused, until a collection" {
  start_daemon
  start_orders target 2
  start_profile run -p "$target_pid" -r 2^-1
  order target "alloc 1 9000"
  order target "minor 0"
  local i code=
  # Nobody collects: no domain goes over to any of them. Sixteen in all may be there.
  for ((i = 2; i <= 20; i++)); do
    if ! "$HEAPSONDE" rate 1 "2^-$i" 2>rate.err; then
      code=$(socat -t "$DEADLINE" STDIO "UNIX-CONNECT:$HEAPSONDE_SOCKET" <<<'{"op":"rate","profile":1,"rate":0.5}' | jq -r .code)
      break
    fi
  done
  echo "$((i - 2)) changes, then $code: $(cat rate.err)"
  if ((i <= 20)); then
    ((i >= 17))
    [[ $code == EBUSY ]]
    grep -q 'too many changes of rate' rate.err
    # The old rate stays, and what was asked for last is said.
    status_of 1 '.rate' | awk -v i="$i" '{ exit !($1 > 0.99 / 2 ^ (i - 1) && $1 < 1.01 / 2 ^ (i - 1)) }'
  fi
  order target "alloc 1 90"
  order target "minor 0"
  all_over 1
  "$HEAPSONDE" rate 1 2^-2
  order target "minor 0"
  all_over 1
  order target "alloc 1 30000"
  order target "minor 0"
  end_profile run
  statistically "$LIB/stats" -v spans=1 run.tsv
}

@test "live words are estimated across rates" {
  start_daemon
  start_orders target 2
  start_profile run -p "$target_pid" -r 2^-4
  order target "keep 1 300000"
  order target "minor 0"
  "$HEAPSONDE" rate 1 2^-8
  order target "minor 0"
  all_over 1
  order target "keep 0 900000"
  order target "minor 0"
  "$HEAPSONDE" rate 1 2^-5
  order target "minor 0"
  all_over 1
  order target "keep 1 300000"
  order target major
  order target major
  # 300,000 at 2^-4, 900,000 at 2^-8, 300,000 at 2^-5, within six standard deviations.
  status_of 1 '(.live_words - 1500000) / (300000 * 15 + 900000 * 255 + 300000 * 31 | sqrt)' | tee off
  awk '{ exit !($1 > -6 && $1 < 6) }' off
  order target drop
  order target major
  order target major
  status_of 1 .live_words | awk '{ print; exit !($1 < 20000) }'
  end_profile run
}

@test "rates of a profile that is stopped, and what is no rate" {
  start_daemon
  start_orders target 1
  start_profile run -p "$target_pid" -r 2^-4
  local rate status
  for rate in 0 1.1 -1 2^1 2^-60 nan x ''; do
    status=0
    "$HEAPSONDE" rate 1 "$rate" >rate.out 2>rate.err || status=$?
    ((status == 2))
    [[ $(status_of 1 .rate) == 0.0625 ]]
  done
  refused 'no profile 2' rate 2 2^-5
  "$HEAPSONDE" rate 1 2^-5
  order target "minor 0"
  all_over 1
  "$HEAPSONDE" stop 1
  refused 'does not sample any more|stopped' rate 1 2^-4
  [[ $(status_of 1 .rate) == 0.03125 ]]
  end_profile run
  refused 'discarded already' rate 1 2^-4
}

@test "a rate changes for its profile and no other" {
  others() {
    n=$((${n:-0} + 1))
    start_orders "t$n" 2 || return
    local pid=t${n}_pid a
    start_profile "a$n" -p "${!pid}" --domain 0 -r 2^-6 || return
    start_profile "b$n" -p "${!pid}" --domain 1 -r 2^-6 || return
    a=a${n}_id
    order "t$n" "alloc 0 300000" && order "t$n" "alloc 1 300000" && order "t$n" "minor 0" || return
    "$HEAPSONDE" rate "${!a}" 2^-3 && order "t$n" "minor 0" && all_over "${!a}" || return
    order "t$n" "alloc 0 300000" && order "t$n" "alloc 1 300000" && order "t$n" "minor 0" || return
    end_profile "a$n" && end_profile "b$n" || return
    (($(n_spans "a$n" 0) == 1)) || return
    local status=0
    "$LIB/stats" -v spans=1 "a$n.tsv" || status=$?
    ((status == 0)) || return "$status"
    "$LIB/stats" -v counters=1 -v rate=0.015625 "b$n.tsv" /dev/null
  }
  start_daemon
  statistically others
}

@test "followers and raw outputs see the changes too" {
  seen() {
    n=$((${n:-0} + 1))
    start_orders "t$n" 2 || return
    local pid=t${n}_pid
    [[ $("$HEAPSONDE" start -p "${!pid}" -r 2^-4 --ring-size 16M --format raw -o "run$n.hsd" 3>&-) == "$n" ]] || return
    order "t$n" "alloc 1 90000" && order "t$n" "alloc 0 90000" && order "t$n" "minor 0" || return
    "$HEAPSONDE" rate "$n" 2^-6 || return
    # In the middle of the change: domains are still at the old rate, and have no thread
    # that the follower knows of.
    "$HEAPSONDE" follow "$n" >"live$n.jsonl" 2>"live$n.err" </dev/null 3>&- &
    local follower=$!
    children+=("$follower")
    wait_until "the follower" grep -q '^{"type":"profile"' "live$n.jsonl" || return
    order "t$n" "alloc 1 3000" && order "t$n" "minor 0" && all_over "$n" || return
    order "t$n" "alloc 1 90000" && order "t$n" "minor 0" || return
    "$HEAPSONDE" rate "$n" 2^-3 && order "t$n" "minor 0" && all_over "$n" || return
    order "t$n" "alloc 0 90000" && order "t$n" "minor 0" || return
    "$HEAPSONDE" stop "$n" && "$HEAPSONDE" discard "$n" || return
    ended_with 0 "$follower" "live$n.err" && in_order "live$n" -v follow=1 || return
    "$HEAPSONDE" export "run$n.hsd" >"run$n.jsonl" 2>"run$n.err" && in_order "run$n" || return
    # The rates that the follower has seen are those of the output.
    diff <(rates "run$n" | tail -n 4) <(rates "live$n" | tail -n 4) || return
    # At first it was told where each domain is.
    rates "live$n" | head -n 2 | cut -f 2 | sort -u | grep -qx 0.0625 || fail "$(rates "live$n")" || return
    "$LIB/stats" -v spans=1 "run$n.tsv"
  }
  # Domain and rate of the rate records.
  rates() {
    awk -F '\t' -v OFS='\t' '$1 == "rate" { print $3, $6 }' "$1.tsv"
  }
  start_daemon
  statistically seen
}

@test "stats refuses a bias in one span, and samples of the wrong span" {
  start_daemon
  start_orders target 2
  start_profile run -p "$target_pid" -r 2^-4
  order target "alloc 1 300000"
  order target "minor 0"
  "$HEAPSONDE" rate 1 2^-5
  order target "minor 0"
  all_over 1
  order target "alloc 1 300000"
  order target "minor 0"
  end_profile run
  statistically "$LIB/stats" -v spans=1 run.tsv
  local status=0
  # A tenth of the last span is missing.
  awk -F '\t' '$1 == "rate" && $3 == 1 { seen = 1 } !(seen && /^alloc_/ && ++n % 10 == 0)' run.tsv >changed.tsv
  "$LIB/stats" -v spans=1 changed.tsv || status=$?
  ((status == 1))
  # The rate was in force later than it says.
  awk -F '\t' -v OFS='\t' '$1 == "rate" && $3 == 1 { $7 += 60000 } 1' run.tsv >changed.tsv
  status=0
  "$LIB/stats" -v spans=1 changed.tsv || status=$?
  ((status == 1))
  # It is no file for one rate.
  status=0
  "$LIB/stats" -v counters=1 run.tsv /dev/null || status=$?
  ((status == 1))
}
