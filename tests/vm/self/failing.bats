#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# A test that passes and one that fails, for tests/vm/check.

@test "this one passes" {
  [[ $(id -u) == 0 ]]
}

@test "this one fails" {
  echo "the reason is told"
  false
}
