#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# The kernel panics; for tests/vm/check.

@test "the kernel crashes" {
  echo c >/proc/sysrq-trigger
  sleep infinity
}
