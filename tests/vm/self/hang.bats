#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# Never ends; for tests/vm/check.

@test "nothing happens any more" {
  sleep infinity
}
