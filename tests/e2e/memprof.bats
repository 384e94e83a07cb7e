#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# A program that runs Gc.Memprof itself while heapsonde is attached: each gets its own
# unbiased samples, and neither disturbs the other. Needs root and BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

# bats file_tags=ocaml

load helpers

# both OWN_RATE RATE WORDS: the program samples itself at OWN_RATE, heapsonde at RATE.
both() {
  echo "# Gc.Memprof at $1, heapsonde at $2"
  record_run run -r "$2" -- memprof "$3" --own-rate "$1" || return
  "$LIB/counters" run.tsv run.out || return
  "$LIB/stats" -v counters=1 run.tsv run.out
}

@test "both at the same rate" {
  statistically both 0.0078125 2^-7 1000000
}

@test "the program samples itself much more than heapsonde does" {
  statistically both 0.25 2^-9 1000000
}

@test "heapsonde samples much more than the program itself" {
  statistically both 0.001 2^-3 300000
}

@test "heapsonde samples every word of a program that samples itself" {
  statistically both 0.01 1 30000
}

@test "the program samples every word of its own while heapsonde thins" {
  statistically both 1 0.003 300000
}

@test "Gc.Memprof starts, stops and starts again under heapsonde" {
  restarts() {
    record_run run -r 2^-6 -- memprof 600000 --own-rate 0.02 --restarts 30 || return
    "$LIB/stats" -v counters=1 run.tsv run.out
  }
  statistically restarts
}

@test "callbacks of Gc.Memprof that raise: blocks that never were are not told" {
  raising() {
    record_run run -r "$1" -- memprof "$3" --own-rate "$2" --raising || return
    "$LIB/stats" -v counters=1 run.tsv run.out
  }
  statistically raising 2^-5 0.05 600000
  statistically raising 1 0.05 60000
}

@test "an in-process Gc.Memprof is told the same with nothing attached as with the stock runtime" {
  "$TESTS_BUILD/stock/memprof" 300000 >stock.out
  "$TESTS_BUILD/memprof" 300000 >sonde.out
  grep -E '^(told|lives)' stock.out >stock.told
  grep -E '^(told|lives)' sonde.out >sonde.told
  diff -u stock.told sonde.told
}
