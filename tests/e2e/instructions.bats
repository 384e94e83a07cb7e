#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# What a program pays that is linked with the variant while nothing is attached: instructions, counted
# by callgrind. With one domain they are the same in every run; nothing here is measured in time.

# bats file_tags=other-build

load helpers

setup_file() {
  export BENCH=$BATS_TEST_DIRNAME/../bench BENCH_BUILD=$TESTS_BUILD/bench
  "$BENCH/build"
}

# costs_nothing WORK N: at most 1.001 times the instructions of the same program with the stock runtime.
costs_nothing() {
  local sonde stock
  # The programs are not the same file: one has the probes.
  readelf -nW "$BENCH_BUILD/work" | grep -q 'Provider: ocaml'
  not grep -q sonde_fire_alloc "$BENCH_BUILD/work.stock"
  sonde=$("$BENCH/count-instructions" "$BENCH_BUILD/work" "$@")
  stock=$("$BENCH/count-instructions" "$BENCH_BUILD/work.stock" "$@")
  echo "$sonde with the variant, $stock with the stock runtime"
  # Less would be nothing but the start of a program.
  ((stock > 20000000))
  ((sonde * 1000 <= stock * 1001))
}

@test "nothing attached: short-lived blocks cost at most 1.001 times the instructions" {
  costs_nothing alloc 500
}

@test "nothing attached: blocks of the major heap cost at most 1.001 times the instructions" {
  costs_nothing major 2000
}

@test "nothing attached: unmarshalling costs at most 1.001 times the instructions" {
  costs_nothing marshal 1000
}
