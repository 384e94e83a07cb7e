#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# Reports from captures: what `report`, `leaks`, `diff` and `timeline` say of programs that
# say themselves what they allocated and what they hold. Needs root and BPF to record.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers

# capture NAME RATE PROGRAM ARG…: NAME.raw, a recording of the program's whole life, and
# NAME.out, its stdout. More options of record in OPTIONS.
capture() {
  # shellcheck disable=SC2086  # several options
  record_around "$1" "$1.raw" -r "$2" --format raw ${OPTIONS-} -- "${@:3}"
}

# told JQ COMMAND…: a report as JSON; the filter is true of it. On stderr there is nothing.
told() {
  local filter=$1
  shift
  "$HEAPSONDE" "$@" --json >told.json 2>told.err || { cat told.err; return 1; }
  [[ ! -s told.err ]] || { cat told.err; return 1; }
  jq -e "$filter" told.json >/dev/null && return
  jq -c 'del(.rows[20:])' told.json | head -c 4000
  fail "heapsonde $*: not so: $filter"
}

# words_of FUNCTION AMOUNT: in told.json, summed over the rows of a function; -1: no row.
words_of() {
  jq --arg f "$1" "[.rows[] | select(.function == \$f) | .$2.words] | if . == [] then -1 else add end" told.json
}

# expected KIND FILE: "FUNCTION WORDS" for each line of a kind that a program printed and that
# is about an innermost function; the words of a function are added up.
expected() {
  awk -F '\t' -v kind="$1" '$1 == kind && (kind != "expect" || $4 == "top") { n[kind == "expect" ? $5 : $2] += kind == "expect" ? $9 : $3 }
    END { for (f in n) print f, n[f] }' "$2"
}

# exactly KIND FILE AMOUNT: told.json has the words of each function, exactly.
exactly() {
  local function words n=0
  while read -r function words; do
    [[ $(words_of "$function" "$3") == "$words" ]] ||
      fail "$function: $3 $(words_of "$function" "$3"), not $words" || return
    n=$((n + 1))
  done < <(expected "$1" "$2")
  ((n > 0)) || fail "$2 expects nothing"
}

# within KIND FILE AMOUNT RATE: the same for a recording at a rate: the samples of each
# function are in the bounds of tests/lib/stats. As there, 3 means in doubt.
within() {
  local function words
  while read -r function words; do
    echo "$function $words $(words_of "$function" "$3")"
  done < <(expected "$1" "$2") >within.txt
  [[ -s within.txt ]] || fail "$2 expects nothing" || return
  awk -v rate="$4" '
    # ln Γ(x) by Stirling, for x >= 10 after shifting.
    function lgamma(x,  shift) {
      while (x < 10) shift += log(x++)
      return (x - 0.5) * log(x) - x + 0.918938533204672742 + 1 / (12 * x) - 1 / (360 * x ^ 3) - shift
    }
    # The exact tail of Binomial(n, p) at x and beyond, on the side of x.
    function tail(x, n, p,  term, sum, up) {
      if (x < 0 || x > n) return 0
      up = x > n * p
      sum = term = exp(lgamma(n + 1) - lgamma(x + 1) - lgamma(n - x + 1) + x * log(p) + (n - x) * log(1 - p))
      while (term > sum * 1e-12 && (up ? x < n : x > 0)) {
        term *= up ? (n - x) / (x + 1) * p / (1 - p) : x / (n - x + 1) * (1 - p) / p
        x += up ? 1 : -1
        sum += term
      }
      return sum
    }
    {
      t = tail($3 * rate, $2, rate)
      printf "%s: %d words, estimated %d: tail %.2g\n", $1, $2, $3, t
      if (t < 1e-10) bad = 1
      else if (t < 2.87e-7) doubt = 1
    }
    END { exit bad ? 1 : doubt ? 3 : 0 }' within.txt
}

# ---- report -----------------------------------------------------------------------

@test "at rate 1 the words by site are what the program says it allocated" {
  local program
  for program in lists domains; do
    capture "$program" 1 "$program" 3000
    told '.type == "report" and .version == 1' report "$program.raw"
    exactly expect "$program.out" allocated
    # By function it is the same, whether the rows are sites or not.
    told '.by == "function"' report --by function "$program.raw"
    exactly expect "$program.out" allocated
  done
}

@test "at rate 1 all views have the same sums: the counters of the runtime" {
  capture run 1 lifetimes 500
  local by sum
  local sums='.total | [.allocated, .live, .promoted, .dead_young, .dead_old, .survivors | .words]'
  sum=$("$HEAPSONDE" report --json run.raw | jq -c "$sums")
  for by in site stack function domain source size; do
    told '([.rows[].allocated.words] | add) == .total.allocated.words' report --by "$by" run.raw
    [[ $(jq -c "$sums" told.json) == "$sum" ]]
  done
  # The runtime's counters do not have memory outside of the heap.
  told '.recording.words == ([.rows[] | select(.source != "custom") | .allocated.words] | add)' \
    report --by source run.raw
  told '.total | .allocated.words == .live.words + .dead_young.words + .dead_old.words' report run.raw
  # Bigarrays by source.
  told '[.rows[].source] | sort == ["custom", "marshal", "normal"]' report --by source run.raw
}

@test "at rate 1 promoted words are those of Gc.quick_stat" {
  capture run 1 lists 20000
  told ".total.promoted.words == $(awk '$1 == "quick_stat" { print $3 }' run.out)" report run.raw
}

@test "at rate 1 what lives is what the program holds, and what died is what it let go" {
  capture run 1 leak 8000
  told true report run.raw
  exactly expect run.out allocated
  exactly held run.out live
  told true report run.raw --metric live
  exactly held run.out live
  exactly held run.out survivors_live
}

@test "sampled, estimates are within the bounds of the binomial law" {
  sampled() {
    rm -f run.raw
    capture run 2^-4 leak 80000 || return
    told true report run.raw || return
    within expect run.out allocated 0.0625 || return
    within held run.out live 0.0625
  }
  statistically sampled
}

@test "intervals hold their estimates, and at rate 1 have no width" {
  capture exact 1 leak 4000
  told 'all(.rows[].allocated, .rows[].live, .total.promoted; .low == .words and .words == .high)' report exact.raw
  capture run 2^-6 leak 40000
  told 'all(.rows[].allocated, .rows[].live; .low <= .words and .words < .high)' report run.raw
}

@test "--at in the middle: all that had leaked lives, and at the end nothing of it" {
  capture run 1 leak 40000 --shrink
  local begin at
  begin=$("$HEAPSONDE" report --json run.raw | jq .recording.begin_ns)
  at=$(awk -v begin="$begin" '$1 == "shrinks" { printf "%.9f", ($2 - begin) / 1e9 }' run.out)
  told '.metric == "live"' report --at "$at" run.raw
  exactly held run.out live
  told true report --metric live run.raw
  (($(words_of Leak.leak live) <= 0))
  # What was allocated after that is nothing of it.
  told true report --since "$at" run.raw
  (($(words_of Leak.leak allocated) == -1))
  told true report --until "$at" run.raw
  (($(words_of Leak.leak allocated) == 40000))
  # The timeline goes up and down; its steps are coarser than that moment.
  told '([.steps[].live.value] | max) >= 20000 + .steps[-1].live.value' timeline run.raw
}

@test "filters: function, domain, source" {
  capture run 1 domains 3000
  told '.rows | length > 1' report --by domain run.raw
  local domain words
  domain=$(jq '.rows[-1].domain' told.json)
  words=$(jq '.rows[-1].allocated.words' told.json)
  told ".total.allocated.words == $words" report --domain "$domain" run.raw
  told '.total.allocated.words == 0 and .rows == []' report --filter no-such-function run.raw
  capture lists 1 lists 3000
  told '.rows | length == 1 and .[0].function == "Lists.conses"' report --filter LISTS.CONSES lists.raw
  told '.rows == []' report --source marshal lists.raw
}

@test "a function is counted with its callees, once for each stack even if it calls itself" {
  capture run 1 lists 3000
  told true report --by function run.raw
  jq -e '(.rows[] | select(.function == "Harness.run") | .inclusive.words) as $all
    | [.rows[] | select(.function | tostring | startswith("Lists.")) | .allocated.words] | add <= $all' told.json
  # Nothing is in more words than there are.
  jq -e '.total.allocated.words as $all | all(.rows[]; .inclusive.words <= $all and .inclusive.words >= .allocated.words)' told.json
}

# ---- leaks ------------------------------------------------------------------------

@test "leaks finds the one site that leaks among ten that churn" {
  capture run 1 leak 8000 --pace 100
  # Caches seem to grow a little when the middle falls between their old blocks and their
  # new ones; they are younger, and come later.
  told '.recording.major_cycles >= 40 and .rows[0].growing and .rows[0].live.words == 8000
    and .rows[0].frames[0].function == "Leak.leak"' leaks run.raw
  # What was made once and is as old does not grow.
  jq -e '.rows[] | select(.frames[0].function == "Leak.table") | .growing == false and .live.words == 200' told.json
}

@test "leaks finds it in samples too, among sites that churn much more" {
  capture run 2^-5 leak 160000 --pace 100
  told '.rows[0].frames[0].function == "Leak.leak" and .rows[0].growing' leaks run.raw
  # A person sees the stack below it.
  "$HEAPSONDE" leaks run.raw >people.txt
  grep -A 2 'Leak.leak  leak.ml' people.txt | grep -q '^      Leak.round'
}

@test "leaks of blocks that must have survived more cycles than there were: none" {
  capture run 1 lists 3000
  told '.rows == [] and .survivors_live.words == 0' leaks --survived 1000 run.raw
}

# ---- diff -------------------------------------------------------------------------

@test "at rate 1 two runs of a program do not differ" {
  capture a 1 leak 4000
  capture b 1 leak 4000
  told '.per == "run" and all(.rows[]; .difference == 0 and .p_adjusted == 1 and (.significant | not))' diff a.raw b.raw
  told 'all(.rows[]; .difference == 0)' diff a.raw b.raw --by stack --metric promoted
}

@test "sampled, two runs do not differ significantly; a site that has doubled does, and only that" {
  # The chance of a false mark is 1e-8 for each comparison.
  capture a 2^-4 leak 40000
  capture b 2^-4 leak 40000
  capture c 2^-5 leak 40000 --double
  local metric
  for metric in alloc live promoted survivors; do
    told '[.rows[] | select(.significant)] == []' diff a.raw b.raw --metric "$metric" --significance 1e-8
  done
  # Its ring is twice as long as well, in the major heap: by function the site is alone.
  told '.rows[0].function == "Leak.churn3" and .rows[0].significant
    and (.rows[0].ratio > 1.5 and .rows[0].ratio < 2.6)
    and ([.rows[] | select(.significant) | .function] - ["Leak.churn3", "Leak.rings.(fun)"] == [])' \
    diff a.raw c.raw --significance 1e-8
  "$HEAPSONDE" diff a.raw c.raw --significance 1e-8 >people.txt
  grep -E ' \* Leak.churn3  leak.ml:[0-9]+$' people.txt
}

@test "diff per second and per word" {
  capture a 1 leak 3200
  capture b 1 leak 6400
  # Twice the words at each site is the same share of all words, but for what does not grow.
  told '.per == "word" and (.rows[] | select(.function == "Leak.churn1") | .ratio > 0.8 and .ratio < 1.25)' \
    diff a.raw b.raw --per-word
  told '.per == "second" and .exposure_a == .a.seconds and .exposure_b == .b.seconds' diff a.raw b.raw --per second
  told '.rows[] | select(.function == "Leak.churn1") | .ratio == 2' diff a.raw b.raw --per run
}

# ---- timeline ---------------------------------------------------------------------

@test "the timeline ends with what lives, and its steps add up to what was allocated" {
  capture run 1 leak 8000
  told true report run.raw
  local live allocated
  live=$(jq .total.live.words told.json)
  allocated=$(jq .total.allocated.words told.json)
  told ".steps[-1].live.value == $live and ([.steps[].allocated_words] | add) == $allocated" timeline run.raw
  told ".steps | length <= 5 and .[-1].live.value == $live and ([.[].allocated_words] | add) == $allocated" \
    timeline --steps 5 run.raw
  "$HEAPSONDE" timeline run.raw >people.txt
  grep -q '^ *[0-9.]*m\{0,1\}s .*####*$' people.txt
}

# ---- what cannot be told ------------------------------------------------------------

@test "what a capture does not have is an error, not zeros" {
  local -a command
  OPTIONS='--track alloc' capture run 1 lists 3000
  told '.total.live == null and .total.allocated.words > 0' report run.raw
  for command in "report --metric live" "report --metric survivors" leaks timeline; do
    # shellcheck disable=SC2086
    not "$HEAPSONDE" $command run.raw >out.txt 2>err.txt
    [[ ! -s out.txt && $(wc -l <err.txt) == 1 ]]
    grep -q 'track alloc' err.txt
  done
  not "$HEAPSONDE" diff run.raw run.raw --metric live 2>err.txt
  grep -q 'track alloc' err.txt
}

@test "a capture that was cut is reported up to there, with a note" {
  local size n
  capture run 1 lists 3000
  size=$(stat -c %s run.raw)
  for n in $((size / 2)) $((size - 100)) 2000; do
    head -c "$n" run.raw >cut.raw
    "$HEAPSONDE" report cut.raw >out.txt 2>err.txt
    grep -q 'was cut off' err.txt
    [[ $(wc -l <err.txt) == 1 ]]
    grep -q '(cut off)' out.txt
    "$HEAPSONDE" report -q cut.raw >out.txt 2>err.txt
    [[ ! -s err.txt ]]
    jq -e '.recording.cut' <("$HEAPSONDE" report -q --json cut.raw)
  done
  # Before the header there is nothing to report; without a summary no words to divide by.
  head -c 40 run.raw >cut.raw
  not "$HEAPSONDE" report cut.raw >out.txt 2>err.txt
  grep -q 'before its header' err.txt
  head -c $((size / 2)) run.raw >cut.raw
  not "$HEAPSONDE" diff -q run.raw cut.raw --per-word 2>err.txt
  grep -q 'no summary' err.txt
}

@test "losses are told, and -q keeps them to the head" {
  OPTIONS='--max-blocks 1000' capture run 1 lists 30000 || return
  "$HEAPSONDE" report run.raw >out.txt 2>err.txt
  grep -q 'blocks_full' err.txt
  grep -q 'lost: .*blocks_full' out.txt
  grep -q 'were not followed' out.txt
  "$HEAPSONDE" report -q run.raw 2>err.txt >out.txt
  [[ ! -s err.txt ]]
  jq -e '.recording.lost.blocks_full > 0' <("$HEAPSONDE" report -q --json run.raw)
}

@test "usage errors end in status 2, a disk that is full in status 1" {
  capture run 1 lists 1000
  local options
  for options in "report" "report run.raw x" "report --by x run.raw" "report --metric x run.raw" \
    "report --at x run.raw" "report --at 2 --until 3 run.raw" "report --since 2 --until 1 run.raw" \
    "report --domain x run.raw" "report --source x run.raw" "report -n x run.raw" "leaks" \
    "leaks --survived 0 run.raw" "diff run.raw" "diff --per x run.raw run.raw" \
    "diff --significance 2 run.raw run.raw" "timeline --steps x run.raw" "diff - -" \
    "timeline --html --json run.raw" "timeline -o x run.raw"; do
    local status=0
    # shellcheck disable=SC2086
    "$HEAPSONDE" $options >out.txt 2>err.txt || status=$?
    ((status == 2)) || fail "heapsonde $options: status $status"
    [[ ! -s out.txt && $(wc -l <err.txt) == 1 ]] || fail "heapsonde $options: $(cat err.txt)"
  done
  not "$HEAPSONDE" report run.raw >/dev/full 2>err.txt
  grep -q 'cannot write' err.txt
  not "$HEAPSONDE" report --json run.raw >/dev/full 2>err.txt
  grep -q 'cannot write' err.txt
  not "$HEAPSONDE" report /no/such/file 2>err.txt
  grep -q 'cannot open' err.txt
}

@test "a capture comes through a pipe too, to others than root" {
  capture run 1 lists 3000
  "$HEAPSONDE" report - <run.raw >piped.txt
  "$HEAPSONDE" report run.raw >direct.txt
  diff piped.txt direct.txt
  setpriv --reuid 65534 --regid 65534 --clear-groups "$HEAPSONDE" report - <run.raw >nobody.txt
  diff nobody.txt direct.txt
}

@test "a compressed capture gives the same as one that is not" {
  # The counters in the summary, and what is allocated, do not depend on the format.
  capture run 1 leak 3200
  "$HEAPSONDE" record -r 1 -o run.hsd -- "$TESTS_BUILD/leak" 3200 >hsd.out </dev/null 3>&-
  told '[.rows[] | .difference] | length > 10 and all(. == 0)' diff run.raw run.hsd
  told true report run.hsd
  exactly held hsd.out live
}

@test "timeline --html writes a page, and replaces none without --force" {
  capture run 1 lists 3000
  "$HEAPSONDE" timeline run.raw --html -o page.html
  grep -qi '^<!doctype html>' page.html
  not "$HEAPSONDE" timeline run.raw --html -o page.html 2>err.txt
  [[ $(wc -l <err.txt) == 1 ]]
  "$HEAPSONDE" timeline run.raw --html -o page.html --force
  not "$HEAPSONDE" timeline run.raw --html >/dev/full 2>err.txt
  grep -q 'cannot write' err.txt
}

@test "names with control characters do not reach the terminal" {
  local name=$'./li\e[31msts'
  cp "$TESTS_BUILD/lists" "$name"
  "$HEAPSONDE" record -r 1 --format raw -o run.raw -- "$name" 600 >/dev/null </dev/null 3>&-
  "$HEAPSONDE" report run.raw >out.txt
  not grep -q $'\e' out.txt
  grep -q '^# ./li.*31msts' out.txt
}
