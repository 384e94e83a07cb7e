# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
#
# lib.sh: what the scripts of this folder share. Sourced, never run.
#
# in:   PROG, the name that messages begin with; the environment
# out:  ROOT, the root of the clone, made the current folder; CACHE, where things live that are
#       slow to build and do not belong in the tree; say, die and the functions below

set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT"

# sudo, cron and containers may leave HOME unset, and the sbin folders (bpftool) out of PATH.
: "${HOME:=$(getent passwd "$(id -u)" | cut -d: -f6)}"
: "${HOME:=/tmp}"
export HOME PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"

# shellcheck disable=SC2034  # read by the scripts that source this
CACHE=$(realpath -ms "${HEAPSONDE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/heapsonde}")

# say WORD...: a line of progress. On stderr, because stdout carries results.
say() {
  echo "$PROG: $*" >&2
}

# die WORD...: the one line that says why, then the end.
die() {
  echo "$PROG: error: $*" >&2
  exit 1
}

# closing_line PASSED FAILED [SKIPPED]: the line that ends every run of tests. CI reads it, so it is
# alone on its line and nothing may be printed after it.
closing_line() {
  if [ "${3:-0}" -gt 0 ]; then
    echo "$1 passed, $2 failed, $3 skipped"
  else
    echo "$1 passed, $2 failed"
  fi
}
