#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# Passes, but the kernel has warned meanwhile; for tests/vm/check.

@test "the kernel says what it says when it warns" {
  echo '<4>WARNING: CPU: 0 PID: 1 at made/by/a/test.c:1 made_by_a_test+0x0/0x10' >/dev/kmsg
}
