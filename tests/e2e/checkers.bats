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

@test "check_order lets cycles be left out from the time of the stop on, and not before" {
  oracle lifetimes 100 1
  in_order run
  local order_options=()
  # after_stop TIME: cycles 1 and 3, both at time 1, then the record of a stop at that time.
  after_stop() {
    cycles 1 3 || true
    sed -i '/^{"type":"major_cycle".*"major_collections":3/a {"type":"profile","profile":1,"rate":1,"time":'"$1"',"state":"stopped","reason":"target exited"}' changed.jsonl
    "$LIB/flatten" changed.jsonl >changed.tsv
    "$LIB/check_order" changed.tsv >verdict
  }
  after_stop 1
  not after_stop 2
  grep -q 'domain 0 ends cycle 3 after 1' verdict
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

# forgetting SED…: check_order's verdict on run.jsonl after this change, where what has ended is forgotten.
forgetting() {
  sed -E "$1" run.jsonl >changed.jsonl
  "$LIB/flatten" changed.jsonl >changed.tsv
  "$LIB/check_order" -v forget=1 changed.tsv >verdict
}

@test "check_order with forget=1 refuses what comes after an end that it has forgotten" {
  oracle lifetimes 100 1
  in_order run -v forget=1
  local n id
  n=$(grep -n '^{"type":"dealloc_major"' run.jsonl | tail -n 1 | cut -d: -f1)
  id=$(sed -n "${n}s/.*\("'"id":[0-9]*,'"\).*/\1/p" run.jsonl)
  not forgetting "${n}p"
  grep -q 'after its end' verdict
  not forgetting "${n}{p;s/dealloc_major/promote/}"
  grep -q 'after its end' verdict
  # Its allocation once more, at the end.
  {
    grep -v '^{"type":"\(counters\|summary\)"' run.jsonl
    grep '^{"type":"alloc_' run.jsonl | grep -F "$id"
    grep '^{"type":"\(counters\|summary\)"' run.jsonl
  } >again.jsonl
  "$LIB/flatten" again.jsonl >changed.tsv
  not "$LIB/check_order" -v forget=1 changed.tsv >verdict
  grep -q 'allocated after its end' verdict
  # As without: an event of a block that was never there, a time that goes back.
  not forgetting "${n}s/$id/\"id\":999999,/"
  not forgetting "${n}s/\"time\":[0-9]+/\"time\":1/"
  n=$(promote_of_the_dead)
  not forgetting "${n}p"
  not forgetting "${n}d"
}

@test "check_order adds up what the summary does not list" {
  oracle lifetimes 100 1
  in_order run
  # Domain 0 as the sum over those that are not listed, with $1 records, terminated or not.
  folded() {
    jq -c --argjson more "$1" 'if .type == "summary" then
        .folded = (.domains[0] + {count: 1} | .records += $more) | .domains = []
      else . end' run.jsonl | grep -v '^{"type":"counters"' >changed.jsonl
    if [[ $2 == terminated ]]; then
      sed -i '$i {"type":"domain_terminate","domain":0,"thread":'"$thread"',"time":9,"minor_words":1,"promoted_words":1,"major_words":1,"minor_collections":1,"major_collections":1}' changed.jsonl
    fi
    "$LIB/flatten" changed.jsonl >changed.tsv && "$LIB/check_order" changed.tsv >verdict
  }
  local thread
  thread=$(sed -n 's/^{"type":"thread","thread":\([0-9]*\),"domain":0,.*/\1/p' run.jsonl | head -n 1)
  folded 0 terminated
  not folded 0 alive
  not folded 1 terminated
  not folded -1 terminated
}

@test "ended refuses counters that differ, blocks that live too long or die too early, and nothing to check" {
  verdict() {
    local status=0
    "$LIB/ended" ended.tsv "$1" >said || status=$?
    echo "$1: $status"
    ((status == $2))
  }
  {
    printf 'stack\t1\t5:Stdlib.Bytes.make\t3:Soak.texts\t7:Soak.work\nstack\t2\t9:Soak.held\n'
    printf 'alloc_minor\t1\t1\t5\t7\t10\t1\t2\tnormal\t1\ttrue\n'
    printf 'alloc_minor\t2\t1\t5\t7\t10\t1\t2\tnormal\t2\ttrue\n'
    printf 'dealloc_minor\t1\t1\t5\t7\t20\n'
    printf 'domain_terminate\t5\t20\t7\t1500\t40\t41\n'
  } >ended.tsv
  local ended='ended\t5\t1500\t40\t41\n' sites='at_end\tSoak.texts\tdead\nat_end\tSoak.held\talive\n'
  # shellcheck disable=SC2059  # the formats are above
  {
    printf "$ended$sites" >right
    printf "ended\t5\t1400\t30\t41\n$sites" >later
    printf "ended\t5\t1501\t40\t41\n$sites" >less
    printf "ended\t5\t1500\t40\t42\n$sites" >less_major
    printf "ended\t5\t400\t40\t41\n$sites" >much_more
    printf "ended\t6\t1500\t40\t41\n$sites" >untold
    printf "${ended}at_end\tSoak.texts\talive\n" >early
    printf "${ended}at_end\tSoak.held\tdead\n" >late
    printf "${ended}at_end\tSoak.pairs\tdead\n" >unseen
    printf "$ended" >no_sites
    printf "$sites" >no_domains
  }
  verdict right 0
  verdict later 0
  local name
  for name in less less_major much_more untold early late unseen no_sites no_domains; do
    verdict "$name" 1
  done
}

# rounds N EXPRESSION…: N lines for growth, fields NAME=EXPRESSION in awk, of i and of noise, in KiB.
rounds() {
  local n=$1 fields='' part
  shift
  for part; do
    fields+=" printf \" ${part%%=*}=%d\", ${part#*=};"
  done
  awk -v n="$n" "BEGIN { for (i = 1; i <= n; i++) { noise = int(i * 7919 % 97); printf \"round=%d\", i; $fields print \"\" } }" >rounds.tsv
}

@test "growth finds a leak of some hundred bytes a round, and is not misled by noise, steps and peaks" {
  # Half an hour.
  rounds 2000 a_kib=8000+noise threads=2
  "$LIB/growth" rounds.tsv
  rounds 2000 a_kib=8000+noise+i*0.4 threads=2
  not "$LIB/growth" rounds.tsv >verdict
  grep -q '^WRONG *a_kib' verdict
  # Three minutes.
  rounds 150 a_kib=8000+noise
  "$LIB/growth" rounds.tsv
  rounds 150 a_kib=8000+noise+i*4
  not "$LIB/growth" rounds.tsv >verdict
  # What happens once; and while it warms up.
  rounds 150 'a_kib=8000+noise+100*(i>90)'
  "$LIB/growth" rounds.tsv
  rounds 150 'a_kib=8000+noise+(i%10==0)*5000'
  "$LIB/growth" rounds.tsv
  rounds 150 'a_kib=i<50?100*i:8000+noise'
  "$LIB/growth" rounds.tsv
  # Pages, with holes.
  rounds 150 'a_pages_kib=8000+noise+800*(i>90)'
  "$LIB/growth" rounds.tsv
  rounds 150 'a_pages_kib=8000+noise+i*30'
  not "$LIB/growth" rounds.tsv
}

@test "growth finds one more thread or descriptor, and refuses too few rounds" {
  rounds 150 a_kib=8000 descriptors=40
  "$LIB/growth" rounds.tsv
  rounds 150 a_kib=8000 'a_kib_shown=i*1000' 'b_shown=i'
  "$LIB/growth" rounds.tsv
  rounds 150 a_kib=8000 'descriptors=40+(i>90)'
  not "$LIB/growth" rounds.tsv >verdict
  grep -q '^WRONG *descriptors' verdict
  rounds 29 a_kib=8000 descriptors=40
  not "$LIB/growth" rounds.tsv >verdict
  rounds 150
  not "$LIB/growth" rounds.tsv >verdict
  : >rounds.tsv
  not "$LIB/growth" rounds.tsv >verdict
}

@test "memprof_deaths refuses deaths that were not told or did not happen, and counts Gc.Memprof's" {
  verdict() {
    local status=0
    "$LIB/memprof_deaths" deaths.tsv out >said || status=$?
    echo "$1: $status"
    ((status == $1))
  }
  {
    printf 'stack\t1\t5:Parallel.raced\n'
    printf 'alloc_minor\t1\t1\t5\t7\t10\t1\t2\tnormal\t1\ttrue\n'
    printf 'alloc_minor\t2\t1\t5\t7\t10\t1\t2\tnormal\t1\ttrue\n'
    printf 'dealloc_minor\t1\t1\t5\t7\t20\n'
  } >deaths.tsv
  printf 'real\tParallel.raced\t1\nmemprof\tParallel.raced\t2\t1\t1\n' >out
  verdict 0
  [[ $(tail -n 1 said) == "false 1 of 2" ]]
  printf 'real\tParallel.raced\t2\nmemprof\tParallel.raced\t2\t0\t1\n' >out
  verdict 1
  printf 'real\tParallel.raced\t1\nmemprof\tParallel.raced\t2\t1\t2\n' >out
  verdict 1
  printf 'real\tParallel.raced\t1\nmemprof\tParallel.raced\t3\t0\t1\n' >out
  verdict 1
  printf 'real\tParallel.raced\t1\n' >out
  verdict 1
}
