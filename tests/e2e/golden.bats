#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# Captures of known programs, recorded once (tests/golden/record), in every report and
# format: what comes out is what is in the tree. Needs neither root nor the programs.

load helpers

golden=$BATS_TEST_DIRNAME/../golden

@test "old captures look as they always have, in every report and format" {
  "$golden/expect" expected
  local capture n=0
  for capture in "$golden"/*.expected; do
    diff -r "$capture" "expected/${capture##*/}" >difference || {
      head -n 40 difference
      fail "${capture##*/}: if that is meant, tests/golden/expect tests/golden" || return
    }
    n=$((n + 1))
  done
  ((n == $(find "$golden" -name '*.hsd' -o -name '*.raw' | wc -l) && n >= 5))
}

@test "the same bytes come out whatever the locale, the terminal and the time zone" {
  LC_ALL=C.UTF-8 TZ=Asia/Kathmandu COLUMNS=40 TERM=dumb NO_COLOR=1 "$golden/expect" other
  "$golden/expect" expected
  diff -r expected other
}

@test "a capture through a pipe gives what the file gives" {
  local format
  for format in jsonl folded speedscope; do
    "$HEAPSONDE" export "$golden/lives.hsd" --to "$format" >of_file
    "$HEAPSONDE" export - --to "$format" <"$golden/lives.hsd" >of_pipe
    sed -i 's/lives.hsd/-/' of_file
    cmp of_file of_pipe
  done
}

@test "what is compressed with zstd is the plain stream" {
  zstd -dcq "$golden/lives.hsd" >plain.raw
  "$HEAPSONDE" export plain.raw >of_plain
  "$HEAPSONDE" export "$golden/lives.hsd" >of_capture
  cmp of_plain of_capture
}
