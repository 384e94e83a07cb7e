# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Before the first test: build the programs. scripts/run-e2e sets HEAPSONDE,
# HEAPSONDE_VARIANT and TESTS_BUILD, and puts the project's OCaml on PATH, unless
# HEAPSONDE_TESTS_BUILT=1 says that they are built.

setup_suite() {
  local tests
  tests=$(cd "$BATS_TEST_DIRNAME/.." && pwd)
  : "${HEAPSONDE:?is not set: run the tests with scripts/run-e2e}"
  [[ ${HEAPSONDE_TESTS_BUILT-} == 1 ]] || "$tests/programs/build"
}
