#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# The build with sanitizers is heard: whatever they report, of whichever process, fails the test in which
# it was reported. (`SANITIZE=1 scripts/run-e2e`; a release build has no tests of this kind.)

# bats file_tags=untrusted

load ../e2e/helpers

# with_errs COMMAND…: run a test of one COMMAND, as a test file of its own, with run-e2e; its output in out.
# ERRS is the program that errs.
with_errs() {
  mkdir -p e2e
  [[ -e lib ]] || ln -s "$LIB" lib # where helpers.bash looks for it
  # bats would take a line that begins with @test here for a test of this file.
  printf '%s\n' "load $BATS_TEST_DIRNAME/../e2e/helpers" '@test "one" {' "$*" '}' >e2e/one.bats
  run_status=0
  # Neither bats' own variables nor this test's folder, nor its tags, are for the one within.
  env -u HEAPSONDE_TEST_TAGS -u BATS_TEST_TMPDIR -u BATS_RUN_TMPDIR -u BATS_FILE_TMPDIR -u BATS_SUITE_TMPDIR \
    SANITIZE=1 HEAPSONDE_TESTS_BUILT=1 ERRS="${HEAPSONDE%/*}/errs" \
    "$BATS_TEST_DIRNAME/../../scripts/run-e2e" "$PWD/e2e/one.bats" >out 2>&1 </dev/null 3>&- || run_status=$?
  cat out
}

# heard PATTERN HOW WHERE: the test fails because of the report, and shows it.
heard() {
  with_errs "\"\$ERRS\" $2 $3 2>/dev/null || true"
  ((run_status == 1)) && grep -q '^not ok 1' out && grep -Eq "$1" out && grep -q '^0 passed, 1 failed$' out
}

@test "a report fails the test, though the status and stderr are thrown away" {
  heard 'heap-buffer-overflow' heap here
  heard 'heap-use-after-free' freed here
  heard 'signed integer overflow' overflow here
  heard 'detected memory leaks' leak here
}

@test "a report of a forked process does, and of the daemon and its workers in their sandbox" {
  heard 'heap-buffer-overflow' heap child
  heard 'detected memory leaks' leak child
  heard 'heap-buffer-overflow' heap supervisor
  heard 'signed integer overflow' overflow supervisor
  heard 'heap-use-after-free' freed worker
  heard 'signed integer overflow' overflow worker
}

@test "a process without a fault fails nothing, in the sandbox neither" {
  local where
  for where in here child supervisor worker; do
    with_errs "\"\$ERRS\" nothing $where"
    ((run_status == 0))
    grep -q '^1 passed, 0 failed$' out
  done
}

@test "heapsonde is the one with sanitizers, and its files are checked" {
  nm "$HEAPSONDE" | grep -q ' __asan_init$'
  nm "$HEAPSONDE" | grep -q ' __ubsan_handle_type_mismatch_v1_abort$'
  # Each of its processes opens its file of reports at the start.
  "$HEAPSONDE" version >/dev/null
  [[ -n $(find "$HEAPSONDE_REPORTS" -name '[0-9]*') ]]
}
