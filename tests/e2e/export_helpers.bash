# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What the tests of the formats of other tools share.
#
# in:   helpers.bash
# out:  functions

# shellcheck disable=SC2154  # set by helpers.bash

# capture NAME OPTION… -- PROGRAM ARG…: a raw capture of a program, NAME.hsd, its JSON
# lines, NAME.jsonl, and what these add up to, NAME.sums (tests/lib/sums).
capture() {
  record_around "$1" "$1.hsd" --format raw "${@:2}" || return
  export_to "$1" jsonl "$1.jsonl" && "$LIB/sums" "$1.jsonl" >"$1.sums" || return
  [[ -s $1.sums ]] || fail "no block was sampled in $1"
}

# export_to NAME FORMAT FILE [OPTION…]: FILE, of a format, from NAME.hsd.
export_to() {
  local name=$1 format=$2 file=$3
  shift 3
  "$HEAPSONDE" export --to "$format" "$@" -o "$file" "$name.hsd" </dev/null 3>&-
}

# total NAME COLUMN: the sum of a column of NAME.sums.
total() {
  awk -F '\t' -v c="$2" '{ sum += $c } END { printf "%.0f\n", sum }' "$1.sums"
}

# npm_modules FOLDER…: NODE_PATH for what the package-lock.json of each folder of tests pins.
npm_modules() {
  local folder path=
  for folder; do
    path+=:$("$LIB/../../scripts/npm-modules" "$LIB/../$folder") || return
  done
  export NODE_PATH=${path#:}
}
