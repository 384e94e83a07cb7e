#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# The checkers of tests/lib themselves: they accept what Gc.Memprof says of a program,
# and refuse the same with one thing wrong. Needs neither root nor BPF.

# sed's $ is the last line, not a variable.
# shellcheck disable=SC2016

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers

# The records of an in-process Gc.Memprof: run.jsonl and run.out.
oracle() {
  "$TESTS_BUILD/stock/$1" "$2" --oracle run.jsonl --rate "$3" >run.out
  : >run.err
}

# refuses SED…: check_order (and flatten) refuse run.jsonl after this change.
refuses() {
  sed -E "$1" run.jsonl >changed.jsonl
  not cmp -s run.jsonl changed.jsonl || fail "$1 changes nothing" || return
  if "$LIB/flatten" changed.jsonl >changed.tsv 2>&1 && "$LIB/check_order" changed.tsv >verdict; then
    fail "accepted after $1"
  fi
}

@test "what Gc.Memprof says is in order, and agrees with the program" {
  local rate
  for rate in 1 0.0625 0.00037; do
    oracle lists 20000 "$rate"
    in_order run
    "$LIB/stats" run.tsv run.out || (($? == 3))
    oracle lifetimes 500 "$rate"
    in_order run
    # At the last rate some sites have no sample at all.
    [[ $rate == 0.00037 ]] || "$LIB/fates" run.tsv run.out
  done
}

# The line of a promote whose block has a dealloc_major.
promote_of_the_dead() {
  awk -F '\t' '$1 == "promote" { at[$2] = NR } $1 == "dealloc_major" && $2 in at { print at[$2]; exit }' run.tsv
}

# The id of a block of Lifetimes.die_old.
one_that_died_old() {
  awk -F '\t' '/^stack.*:Lifetimes.die_old/ { at = $2 } /^alloc_minor/ && at && $10 == at { print $2; exit }' run.tsv
}

@test "check_order refuses each kind of disorder" {
  oracle lifetimes 100 1
  in_order run
  local n
  refuses '1d'
  refuses '$d'
  refuses '2d'
  refuses '/^\{"type":"stack"/d'
  n=$(grep -n '^{"type":"alloc_minor"' run.jsonl | head -n 1 | cut -d: -f1)
  refuses "${n}d"
  refuses "${n}{p}"
  refuses "${n}s/alloc_minor/alloc_major/"
  refuses "${n}s/\"n_samples\":[0-9]+/\"n_samples\":0/"
  refuses "${n}s/\"n_samples\":[0-9]+/\"n_samples\":1000/"
  refuses "${n}s/\"size\":[0-9]+,//"
  refuses "${n}s/\"size\":/\"size\":-/"
  refuses "${n}s/\"time\":[0-9]+/\"time\":\"now\"/"
  refuses "${n}s/\"source\":\"normal\"/\"source\":\"nowhere\"/"
  refuses "${n}s/\"stack\":[0-9]+/\"stack\":99999/"
  refuses "${n}s/\"tracked\":true/\"tracked\":false/"
  refuses "${n}s/\"domain\":0/\"domain\":5/"
  refuses "${n}s/\}$/,/"
  # The promote of a block that dies later, so that it is missed.
  n=$(promote_of_the_dead)
  refuses "${n}p"
  refuses "${n}d"
  refuses "${n}s/promote/dealloc_minor/"
  refuses "${n}s/\"time\":[0-9]+/\"time\":1/"
  refuses "${n}s/\"id\":[0-9]+/\"id\":999999/"
  n=$(grep -n '^{"type":"dealloc_major"' run.jsonl | tail -n 1 | cut -d: -f1)
  refuses "${n}p"
  refuses "${n}s/dealloc_major/dealloc_minor/"
  refuses "${n}s/dealloc_major/unheard_of/"
  refuses '/^\{"type":"counters"/d'
  refuses '/^\{"type":"counters"/p'
  refuses '/^\{"type":"counters"/s/"samples_kept":[0-9]+/"samples_kept":3/'
  refuses '/^\{"type":"counters"/s/"promoted_words":[0-9]+/"promoted_words":0/'
  refuses '/^\{"type":"counters"/s/"tracked":0/"tracked":-1/'
  refuses '/^\{"type":"counters"/s/"major_collections":[0-9]+,//'
  refuses '$s/"records":[0-9]+/"records":3/'
  refuses '$s/"lost":\{\}/"lost":{"ring_full":3}/'
  refuses '$s/"reason":"[^"]*",//'
}

# cycles N…: major_cycle records of domain 0 with these numbers, before the counters of run.jsonl,
# and check_order's verdict.
cycles() {
  local n thread
  thread=$(sed -n 's/^{"type":"thread","thread":\([0-9]*\),"domain":0,.*/\1/p' run.jsonl | head -n 1)
  {
    grep -v '^{"type":"\(counters\|summary\)"' run.jsonl
    for n; do
      echo '{"type":"major_cycle","domain":0,"thread":'"$thread"',"time":1,"minor_words":1,"promoted_words":1,"major_words":1,"minor_collections":1,"major_collections":'"$n"'}'
    done
    grep '^{"type":"\(counters\|summary\)"' run.jsonl
  } >changed.jsonl
  "$LIB/flatten" changed.jsonl >changed.tsv
  "$LIB/check_order" "${order_options[@]}" changed.tsv >verdict
}

@test "check_order wants every major cycle of a domain, in turn" {
  oracle lifetimes 100 1
  in_order run
  local order_options=()
  cycles 1 2 3
  cycles 2
  not cycles 1 3
  not cycles 2 2
  not cycles 3 2
  # More than the summary has.
  not cycles 1000000
  order_options=(-v allow_loss=1)
  cycles 1 3
  not cycles 3 2
}

@test "check_order wants what was fired to be what was left out, kept and lost" {
  oracle lifetimes 100 1
  in_order run
  # accounts HIT LEFT_OUT LOST [SED]: domain 0 says so, after this change.
  accounts() {
    lossy "${4-};\$s/\"samples_hit\":[0-9]+,/\"samples_hit\":$1,\"samples_left_out\":$2,\"samples_lost\":$3,/"
  }
  local kept loss
  kept=$(jq 'select(.type == "summary").domains[0].samples_kept' run.jsonl)
  loss='{"type":"loss","domain":0,"cause":"ring_full","count":3,"since":1,"time":2}'
  accounts "$kept" 0 0
  accounts $((kept + 5)) 5 0
  accounts $((kept + 8)) 5 3 "\$s/^/$loss\n/"
  not accounts "$kept" 1 0
  not accounts "$kept" 0 1
  not accounts $((kept + 3)) 0 3
  not accounts $((kept + 3)) 0 3 "\$s/^/${loss/:3,/:2,}\n/"
  not accounts $((kept + 3)) 0 3 "\$s/^/${loss/\"domain\":0/\"domain\":1}\n/"
  not accounts "$kept" 0 0 "\$s/^/$loss\n/"
}

# lossy SED…: check_order's verdict on run.jsonl after this change, where records may be missing.
lossy() {
  sed -E "$1" run.jsonl >changed.jsonl
  "$LIB/flatten" changed.jsonl >changed.tsv
  "$LIB/check_order" -v allow_loss=1 changed.tsv >verdict
}

@test "check_order lets records be missing only where as many are said to be lost" {
  oracle lifetimes 100 1
  in_order run
  local alloc promote said
  promote=$(promote_of_the_dead)
  alloc=$(grep -n "$(sed -n "${promote}s/.*\(\"id\":[0-9]*,\).*/\1/p" run.jsonl)" run.jsonl |
    head -n 1 | cut -d: -f1)
  said='{"type":"loss","domain":null,"cause":"output_full","count":1,"time":1}'
  not lossy "${promote}d"
  lossy "${promote}s/.*/$said/"
  not lossy "${promote}s/.*/${said/output_full/ring_full}/"
  # Of an allocation the samples must be said as well, neither more nor less.
  local n with_samples
  n=$(sed -n "${alloc}s/.*\"n_samples\":\([0-9]*\).*/\1/p" run.jsonl)
  with_samples=${said/\"time/\"samples\":$n,\"lives\":0,\"since\":1,\"time}
  lossy "${alloc}s/.*/$with_samples/"
  not lossy "${alloc}s/.*/$said/"
  not lossy "${alloc}s/.*/${with_samples/:$n,/:$((n + 1)),}/"
  not lossy "${alloc}d"
  lossy "${alloc}d;${promote}d;\$s/^/$with_samples\n/"
  # Nothing excuses what cannot be, however much is lost.
  not lossy "${promote}p;\$s/^/${said/:1,/:9,}\n/"
}

@test "stats refuses a bias, and one missing block at rate 1" {
  oracle lists 200000 0.0625
  in_order run
  # Each hundredth record is not noticed, each tenth is.
  awk -F '\t' '!/^alloc_/ || ++n % 10' run.tsv >biased.tsv
  local status=0
  "$LIB/stats" biased.tsv run.out || status=$?
  ((status == 1))
  oracle lists 3000 1
  in_order run
  "$LIB/stats" run.tsv run.out
  awk -F '\t' '!/^alloc_minor/ || ++n != 900' run.tsv >short.tsv
  status=0
  "$LIB/stats" short.tsv run.out || status=$?
  ((status == 1))
  # No expectations at all is no success.
  status=0
  "$LIB/stats" run.tsv /dev/null || status=$?
  ((status == 1))
}

@test "the tails of stats are those of the binomial law" {
  # 100 words at 0.5: P(X >= 78) = 7.9e-9 and P(X >= 75) = 2.8e-7 (just within 5 sd).
  one() {
    printf 'profile\t1\t0.5\tsampling\nstack\t1\t3:M.f\n' >law.tsv
    printf 'alloc_minor\t1\t1\t0\t5\t10\t%d\t2\tnormal\t1\ttrue\n' "$1" >>law.tsv
    printf 'expect\talloc_minor\tnormal\ttop\tM.f\t-\t-\t-\t100\t1\t2\n' >law.out
    local status=0
    "$LIB/stats" law.tsv law.out || status=$?
    echo "$1: $status"
    ((status == $2))
  }
  one 50 0
  one 74 0
  one 75 3
  one 81 3
  one 85 1
  one 26 0
  one 25 3
  one 15 1
}

@test "fates refuses a wrong life, a dead block that is held, and one found too late" {
  oracle lifetimes 300 1
  in_order run
  "$LIB/fates" run.tsv run.out
  local id
  id=$(one_that_died_old)
  awk -F '\t' -v id="$id" '!($1 == "dealloc_major" && $2 == id)' run.tsv >changed.tsv
  not "$LIB/fates" changed.tsv run.out >verdict
  awk -F '\t' -v OFS='\t' -v id="$id" '$1 == "dealloc_major" && $2 == id { $6 = 1 } 1' run.tsv >changed.tsv
  not "$LIB/fates" changed.tsv run.out >verdict
  awk -F '\t' -v OFS='\t' -v id="$id" '$1 == "dealloc_major" && $2 == id { $6 *= 2 } 1' run.tsv >changed.tsv
  not "$LIB/fates" changed.tsv run.out >verdict
  not "$LIB/fates" run.tsv /dev/null >verdict
}

@test "places accepts Gc.Memprof's stacks and refuses another line or frame" {
  "$TESTS_BUILD/stack" --oracle run.jsonl >run.out
  "$LIB/places" run.jsonl run.out
  sed 's/"line":12\([0-9]\)/"line":22\1/' run.jsonl >changed.jsonl
  not "$LIB/places" changed.jsonl run.out >verdict
  sed 's/"function":"Stack.second"/"function":"Stack.other"/' run.jsonl >changed.jsonl
  not "$LIB/places" changed.jsonl run.out >verdict
}
