#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# Allocations: each program of tests/programs says what it has allocated at each site;
# the samples must agree with that, and with the runtime's own counters, at any rate.
# Needs root and BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers

# Rate and words at each site: where every word is sampled, a few; from there on enough
# for some hundreds to thousands of samples at each site. 0.00037 is no power of two: it
# is thinned out of 2^-11.
RATES=(
  1 3000
  2^-4 40000
  2^-7 300000
  2^-10 2400000
  0.00037 6000000
  2^-13 12000000
  2^-16 60000000
  2^-20 200000000
)

# sampled PROGRAM RATE WORDS ARG…: one run. Its status is that of tests/lib/stats.
sampled() {
  local program=$1 rate=$2 words=$3 number
  shift 3
  number=$(awk -v rate="$rate" 'BEGIN { n = split(rate, a, "^"); print n > 1 ? a[1] ^ a[2] : rate }' \
    OFMT=%.17g)
  echo "# $program, rate $rate, $words words a site"
  record_run run -r "$rate" -- "$program" "$words" "$@" || return
  "$LIB/counters" run.tsv run.out || return
  "$LIB/stats" -v rate="$number" -v counters=1 run.tsv run.out
}

# at_all_rates PERCENT PROGRAM ARG…: PERCENT of the words above, for slow programs.
at_all_rates() {
  local percent=$1 program=$2 i
  shift 2
  for ((i = 0; i < ${#RATES[@]}; i += 2)); do
    statistically sampled "$program" "${RATES[i]}" $((RATES[i + 1] * percent / 100)) "$@" || return
  done
}

@test "lists, tuples, records and closures are sampled at every rate" {
  at_all_rates 100 lists
}

# bats test_tags=ocaml
@test "each block of a combined allocation is sampled by itself, on its own line" {
  at_all_rates 100 combined
}

@test "arrays straight in the major heap are sampled at every rate" {
  at_all_rates 100 arrays
}

@test "strings and blocks made by C primitives are sampled at every rate" {
  at_all_rates 25 cstrings
}

@test "Bigarrays: the block, and the memory outside the heap as source custom" {
  at_all_rates 100 bigarrays
}

@test "Marshal.from_string: each block of the value, in both heaps, as source marshal" {
  at_all_rates 30 marshals
}

@test "values built in domains are sampled, each for its domain and thread" {
  at_all_rates 8 domains
}

# bats test_tags=ocaml
@test "values built in systhreads are sampled, each for its thread" {
  at_all_rates 15 threads
}

@test "values built in effect handlers, three fibers deep" {
  at_all_rates 100 effects
}

@test "values built in callbacks from C to OCaml" {
  at_all_rates 50 callbacks
}

@test "domains that come and go are sampled independently of each other" {
  # Equal random numbers in each domain would show here, and only here.
  local rate words
  for rate in "2^-4 100000" "2^-7 1000000" "2^-10 8000000"; do
    words=${rate#* }
    statistically sampled spawner "${rate% *}" "$words" --domains 100
  done
}

# attached: a run that heapsonde attaches to when the program is already running; under
# names of its own, as there may have to be two.
attached() {
  local n
  n=$(find . -maxdepth 1 -name 'target*.in' | wc -l)
  start_target "target$n" lists 3000000 --wait || return
  local pid=target${n}_pid
  start_record "run$n" -p "${!pid}" -r 2^-10 || return
  tell "target$n" go
  said "target$n" '^done' || return
  tell "target$n" end
  ended_with 0 "${!pid}" "target$n.err" || return
  end_record "run$n" || return
  [[ $(reason "run$n") == *exit* ]] || fail "the reason is $(reason "run$n")" || return
  "$LIB/stats" -v counters=1 "run$n.tsv" "target$n.out"
}

@test "minor heaps of all sizes, resized while domains allocate" {
  resized() {
    record_run run -r "$1" -- resize "$2" --domains 2 || return
    "$LIB/counters" run.tsv run.out || return
    "$LIB/stats" -v counters=1 run.tsv run.out
  }
  statistically resized 2^-6 300000
  statistically resized 0.001 3000000
}

# bats test_tags=ocaml
@test "the smallest minor heap that OCaml allows" {
  tiny() {
    OCAMLRUNPARAM=s=512 record_run run -r 2^-5 --track alloc -- lists 600000 || return
    "$LIB/stats" -v counters=1 run.tsv run.out
  }
  statistically tiny
}

@test "attached to a running program, the counters start at the attaching" {
  statistically attached
}

# bats test_tags=ocaml
@test "at rate 1 each allocation is exactly as Gc.Memprof tells it, in the same order" {
  local program
  for program in lists combined arrays cstrings bigarrays marshals effects callbacks; do
    "$TESTS_BUILD/$program" 600 --oracle oracle.jsonl --rate 1 >oracle.out
    record_run run -r 1 --stack-depth 1024 -- "$program" 600
    jq -n -r --arg unit "${program^}" -f "$LIB/canonical.jq" oracle.jsonl >oracle.txt
    jq -n -r --arg unit "${program^}" -f "$LIB/canonical.jq" run.jsonl >run.txt
    [[ -s oracle.txt ]]
    diff -u oracle.txt run.txt | head -n 40
    cmp oracle.txt run.txt
  done
}

# bats test_tags=ocaml
@test "at rate 1 the samples are the runtime's counters, to the word" {
  record_run run -r 1 -- lists 20000
  "$LIB/stats" -v counters=2 run.tsv run.out
}

@test "a program without debug information has names from its symbol table" {
  record_run run -r 2^-4 -- nodebug 100000
  "$LIB/stats" -v counters=1 -v symbols=1 run.tsv run.out
}

@test "a stripped program has its names from the frame tables" {
  record_run run -r 2^-4 -- stripped 100000
  "$LIB/stats" -v counters=1 run.tsv run.out
}

@test "the default rate is one sample in 2^20 words" {
  record_run run -- lists 1000
  jq -e -n 'first(inputs) | .rate == pow(2; -20)' run.jsonl
}

@test "--interval BYTES is a rate of one sample in as many bytes" {
  record_run run --interval 8192 -- lists 1000000
  jq -e -n 'first(inputs) | .rate == 1 / 1024' run.jsonl
  statistically "$LIB/stats" -v rate=0.0009765625 run.tsv run.out
}
