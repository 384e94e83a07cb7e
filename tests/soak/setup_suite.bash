# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Before the test: the same as for those of tests/e2e.

# shellcheck source=tests/e2e/setup_suite.bash
. "${BASH_SOURCE[0]%/*}/../e2e/setup_suite.bash"
