#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# The stack of a sample is what Printexc.get_callstack prints at that place. Needs
# root and BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

# bats file_tags=ocaml

load helpers

@test "in every kind of place, the stack is that of Printexc.get_callstack" {
  record_run run -r 1 --stack-depth 1024 -- stack
  "$LIB/places" run.jsonl run.out
}

@test "attached to a running program, the stacks are the same" {
  start_target target stack --wait
  start_record run -p "$target_pid" -r 1 --stack-depth 1024
  tell target go
  said target '^done'
  tell target end
  ended_with 0 "$target_pid" target.err
  end_record run
  "$LIB/places" run.jsonl target.out
}

@test "a stripped program has the same stacks" {
  strip -o stripped "$TESTS_BUILD/stack"
  record_run run -r 1 --stack-depth 1024 -- ./stripped
  "$LIB/places" run.jsonl run.out
}

@test "a program whose file is deleted while it runs has the same stacks" {
  cp "$TESTS_BUILD/stack" copy
  start_target target ./copy --wait
  rm copy
  start_record run -p "$target_pid" -r 1 --stack-depth 1024
  tell target go
  said target '^done'
  tell target end
  ended_with 0 "$target_pid" target.err
  end_record run
  "$LIB/places" run.jsonl target.out
}

@test "a position-independent executable and a fixed one have the same stacks" {
  local flag
  for flag in -pie -no-pie; do
    (
      cd "$TESTS_BUILD/obj"
      ocamlopt -g -I +unix -I +threads -I "$TESTS_BUILD/variant" -runtime-variant _sonde \
        -ccopt "$flag" unix.cmxa threads.cmxa stubs.o oracle.cmx harness.cmx stack.cmx \
        -o "$BATS_TEST_TMPDIR/stack$flag"
    ) || fail "cannot link with $flag"
    record_run "run$flag" -r 1 --stack-depth 1024 -- "./stack$flag"
    "$LIB/places" "run$flag.jsonl" "run$flag.out"
  done
}

# deepest NAME: how many calls of Stack.deep the block of size 118 was in.
deepest() {
  jq -n 'foreach inputs as $r ({};
      .deep = null
      | if $r.type == "stack" then .stacks[$r.id | tostring] = $r.frames
        elif ($r.type | startswith("alloc_")) and $r.size == 118 then
          .deep = .stacks[$r.stack | tostring]
        else . end;
      .deep | select(.) | length)' "$1.jsonl"
}

@test "code that is loaded with Dynlink after the attaching has names" {
  start_target target loader 40000 --wait
  start_record run -p "$target_pid" -r 2^-4
  tell target go
  said target '^done'
  # Its names are looked up while it is there; nothing says so once it has gone.
  wait_until "names of the loaded code" grep -q '"function":"Plugged.site"' run.jsonl
  tell target end
  ended_with 0 "$target_pid" target.err
  end_record run
  "$LIB/stats" run.tsv target.out || (($? == 3))
}

@test "--stack-depth N keeps the N innermost frames" {
  local depth
  # 16 and 64 are classes of the probes; the others lie between.
  for depth in 1 16 17 100; do
    record_run "run$depth" -r 1 --stack-depth "$depth" -- stack --deep 200
    [[ $(deepest "run$depth") == "$depth" ]]
  done
}

@test "a recursion of a thousand frames" {
  record_run run -r 1 --stack-depth 1024 -- stack --deep 900
  "$LIB/places" run.jsonl run.out
  # Deeper than any class: cut, not lost.
  record_run deep -r 1 --stack-depth 1024 -- stack --deep 2000
  [[ $(deepest deep) == 1024 ]]
}

@test "--stack-depth 0 gives empty stacks" {
  record_run run -r 2^-3 --stack-depth 0 -- lists 3000
  jq -e -n '[inputs | select(.type == "stack")] | length == 0' run.jsonl
  awk -F '\t' '/^alloc_/ { n++; if ($10 != 0) bad++ } END { exit !n || bad }' run.tsv
}

@test "equal stacks are written once" {
  record_run run -r 2^-3 -- lists 30000
  # Names alone may be equal where stacks are not, but each of these is one place only.
  jq -e -n '[inputs | select(.type == "stack") | .frames[0].function] as $top
    | ["Lists.pairs", "Lists.records", "Lists.closures.add"]
    | all(.[]; . as $f | [$top[] | select(. == $f)] | length == 1)' run.jsonl
}

@test "the first allocations of a program, before any OCaml frame, have empty stacks" {
  record_run run -r 1 -- lists 30
  # argv, atoms, globals: there are such blocks, and they come first.
  awk -F '\t' '/^alloc_/ { first = $10; exit } END { exit first != 0 }' run.tsv
}
