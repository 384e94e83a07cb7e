#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# Blocks that another domain keeps alive than the one that allocated them, most of them from its stack
# alone (tests/programs/parallel.ml), at rate 1: heapsonde tells their deaths when they happen, all of
# them, and none that does not. An in-process Gc.Memprof is asked the same at the same time: what it
# says is printed, and docs/DESIGN.md (4.9) says why it differs. Needs root and BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

# bats file_tags=ocaml

load helpers

# right DOMAINS: each life is the one that the program knows; every word of these blocks is a sample.
# With DOMAINS - 1 producers in each round.
right() {
  record_run run -r 1 --track size=101-106 -- parallel 4 --domains "$(($1 - 1))" "${@:2}" &&
    "$LIB/fates" run.tsv run.out
}

# Of which version is this OCaml?
ocaml_version() {
  ocamlopt -version
}

@test "blocks reachable from another domain's stack alone: no death that did not happen, and all that did" {
  local domains
  for domains in 2 3 4; do
    right "$domains" --rounds 12
  done
}

@test "the same with a Gc.Memprof in the program, whose deaths are counted" {
  local domains said false=0 blocks=0
  for domains in 2 3 4; do
    right "$domains" --rounds 12 --own
    "$LIB/memprof_deaths" run.tsv run.out >deaths
    cat deaths
    read -r _ said _ n < <(tail -n 1 deaths)
    false=$((false + said)) blocks=$((blocks + n))
  done
  echo "# Gc.Memprof of OCaml $(ocaml_version): $false of $blocks blocks were said to be dead while they were held" >&3
  # 5.4 looks after the barrier that ends a minor collection.
  [[ $(ocaml_version) == 5.3.* ]] || ((false == 0))
}

@test "sampled, each life is the one that the program knows" {
  # These sizes: where a finaliser is called while a fiber allocates, the runtime makes a continuation of two
  # words, which dies young (alloc_and_clear_stack_parent in runtime/callback.c).
  record_run run -r 2^-6 --track size=101-106 -- parallel 6 --rounds 12
  "$LIB/fates" run.tsv run.out
}
