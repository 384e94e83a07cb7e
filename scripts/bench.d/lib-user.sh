# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What the parts that measure heapsonde itself share. Sourced, never run: its name has no number.
#
# in:   what scripts/bench sets
# out:  the functions below

# What a part has started ends with the part, also where that fails half-way.
end_all() {
  # shellcheck disable=SC2046  # several processes
  kill $(jobs -p) 2>/dev/null || true
}
trap end_all EXIT

# row ROW FIGURE VALUE UNIT [GOAL [PEER RATIO]]
row() {
  printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" "${5:--}" "${6:--}" "${7:--}"
}

# calc FORMAT EXPRESSION: a number, made by awk.
calc() {
  awk "BEGIN { printf \"$1\", $2 }"
}

# median: of the numbers on stdin, one a line.
median() {
  sort -g | awk '{ n[NR] = $1 } END { print NR % 2 ? n[(NR + 1) / 2] : (n[NR / 2] + n[NR / 2 + 1]) / 2 }'
}

progress() {
  echo "  $*" >&2
}

# start_target COMMAND ARG…: in the background, its stdin and stdout as TARGET_IN and TARGET_OUT, its process
# as TARGET; when its first line has come.
start_target() {
  local in out first=
  coproc TARGET_PIPES { exec "$@"; }
  # shellcheck disable=SC2034,SC2153  # for who sources this; set by coproc
  TARGET=$TARGET_PIPES_PID
  # Copies, because the shell drops the array when the process ends; and then only the copies.
  out=${TARGET_PIPES[0]} in=${TARGET_PIPES[1]}
  exec {TARGET_OUT}<&"$out" {TARGET_IN}>&"$in"
  exec {out}<&- {in}>&-
  read -r -t 60 -u "$TARGET_OUT" first || true
  if [ "$first" != ready ]; then
    progress "$1 did not begin"
    return 1
  fi
}

# end_target: end of its stdin, then wait for it.
end_target() {
  exec {TARGET_IN}>&- {TARGET_OUT}<&-
  wait "$TARGET"
}
