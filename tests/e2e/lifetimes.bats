#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# What becomes of sampled blocks: promoted, dead, or still held. The programs know the
# fate of each block they allocate (tests/programs/lifetimes.ml, handoff.ml).
# Needs root and BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

# bats file_tags=ocaml

load helpers

# lives PROGRAM BLOCKS OPTION…: record it, and hold each life against the program's word.
lives() {
  local program=$1 blocks=$2
  shift 2
  record_run run "$@" -- "$program" "$blocks"
  "$LIB/fates" run.tsv run.out
}

@test "at rate 1 every block of one domain has the life that the program knows" {
  lives lifetimes 1000 -r 1
  # Otherwise the part about compaction has shown nothing.
  awk '$1 == "moved" && $2 > 100 { ok = 1 } END { exit !ok }' run.out
}

@test "sampled sparsely, each block has the life that the program knows" {
  lives lifetimes 8000 -r 2^-5
}

@test "thinned, each block has the life that the program knows" {
  lives lifetimes 12000 -r 0.01
}

@test "blocks that other domains keep alive are promoted, not dead" {
  lives handoff 3000 -r 1
}

@test "blocks of domains that have gone are followed by others" {
  lives handoff 10000 -r 2^-4
  # The producers have gone before their blocks die: others own these records.
  awk -F '\t' 'NR == FNR { if ($1 == "producer") gone[$2] = 1; next }
    $1 == "dealloc_major" { n++; if ($4 in gone) bad++ }
    END { print n, "died old,", bad + 0, "of them in a domain that had gone"; exit !n || bad }' \
    run.out run.tsv
}

@test "lives are right when heapsonde attaches to a running program" {
  start_target target lifetimes 2000 --wait
  # shellcheck disable=SC2154  # set by start_target
  start_record run -p "$target_pid" -r 2^-2
  tell target go
  said target '^done'
  tell target end
  ended_with 0 "$target_pid" target.err
  end_record run
  "$LIB/fates" run.tsv target.out
}

# untold OPTION…: lists with a minor heap of 32 MiWords, so that no minor collection
# empties the list of young blocks; prints how many blocks were not followed, and how
# many are said to be lost.
untold() {
  OCAMLRUNPARAM=s=32M "$HEAPSONDE" record -r 2^-3 "$@" --force -o run.jsonl -- \
    "$TESTS_BUILD/lists" 300000 >run.out 2>run.err || return
  in_order run -v allow_loss=1 || return
  awk -F '\t' '
    /^alloc_/ && $11 == "false" { untracked++ }
    $1 == "summary" { print untracked + 0, $3 }' run.tsv
}

@test "a huge minor heap full of samples is followed whole" {
  [[ $(untold) == "0 0" ]]
}

@test "blocks beyond what can be followed are told and counted, and known not to be tracked" {
  local untracked lost
  read -r untracked lost < <(untold --max-blocks 20000)
  echo "$untracked blocks not tracked, $lost lost"
  ((untracked > 0 && lost >= untracked))
  # The allocations themselves are all there.
  "$LIB/flatten" run.jsonl >run.tsv
  statistically "$LIB/stats" run.tsv run.out
}
