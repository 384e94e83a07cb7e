#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# --track: which blocks are reported, and what of them. Every word is sampled, so that
# what is left out is known exactly. Needs root and BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers

# sizes NAME: how many blocks of each size, in words, were reported.
sizes() {
  jq -r 'select(.type | startswith("alloc_")) | .size' "$1.jsonl" | sort -n | uniq -c
}

# The same of those between two sizes in all.jsonl.
sizes_between() {
  sizes all | awk -v min="$1" -v max="$2" '$2 >= min && $2 <= max'
}

@test "--track size=… reports blocks of those sizes, and all of them" {
  record_run all -r 1 -- lists 600
  local range min max
  while read -r range min max; do
    record_run some -r 1 --track "size=$range" -- lists 600
    diff <(sizes_between "$min" "$max") <(sizes some)
    [[ -n $(sizes some) ]]
  done <<-END
	3- 3 99999999
	-2 0 2
	3-4 3 4
	5 5 5
	END
}

@test "--track by size, heap and source at once reports what is all of these" {
  record_run all -r 1 -- marshals 20
  record_run some -r 1 --track normal,minor,size=2-3 -- marshals 20
  local wanted='select(.type == "alloc_minor" and .source == "normal" and .size >= 2 and .size <= 3)'
  [[ $(jq -c "$wanted" all.jsonl | wc -l) == $(jq -c "$wanted" some.jsonl | wc -l) ]]
  [[ $(jq -c "$wanted" some.jsonl | wc -l) == $(grep -c '^{"type":"alloc_' some.jsonl) ]]
  [[ -s some.jsonl ]]
}
