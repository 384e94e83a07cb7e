# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What the parts of the bench share that watch a program of tests/bench: the program, which obeys
# commands on stdin, and a heapsonde that comes and goes.
#
# in:   HEAPSONDE, BENCH_BUILD, BENCH_TMP (scripts/bench)
# out:  functions. What they start ends with the part, however it ends.
set -euo pipefail

declare -A pid_of to from
recorder=
recordings=0
end_all() {
  local name
  [[ -z $recorder ]] || kill -INT "$recorder" 2>/dev/null || true
  for name in "${!pid_of[@]}"; do
    kill "${pid_of[$name]}" 2>/dev/null || true
  done
  wait
}
trap end_all EXIT

# give_up WORD...: why this part has failed; the end.
give_up() {
  echo "  ${0##*/}: error: $*" >&2
  exit 1
}

# start_target NAME PROGRAM ARG...: of $BENCH_BUILD, and wait until it is ready. Its PID is pid_of[NAME].
start_target() {
  local name=$1 ready='' in out
  mkfifo "$BENCH_TMP/$name.in" "$BENCH_TMP/$name.out"
  "$BENCH_BUILD/$2" "${@:3}" <"$BENCH_TMP/$name.in" >"$BENCH_TMP/$name.out" &
  pid_of[$name]=$!
  exec {in}>"$BENCH_TMP/$name.in" {out}<"$BENCH_TMP/$name.out"
  to[$name]=$in
  from[$name]=$out
  read -r ready <&"$out" || true
  [[ $ready == "ready $!" ]] || give_up "$2 did not begin: $ready"
}

# stop_target NAME: it must end well.
stop_target() {
  local in=${to[$1]} out=${from[$1]}
  echo stop >&"$in"
  exec {in}>&- {out}<&-
  wait "${pid_of[$1]}" || give_up "the program ended with status $?"
  unset "pid_of[$1]"
  rm "$BENCH_TMP/$1.in" "$BENCH_TMP/$1.out"
}

# ask NAME WORD...: a command to a target; its answer is in `answer`.
# shellcheck disable=SC2034  # read by the parts
ask() {
  echo "${*:2}" >&"${to[$1]}"
  read -r answer <&"${from[$1]}" || give_up "no answer to: ${*:2}"
}

# attach NAME OPTION...: heapsonde record on a target, into the capture $capture; returns when it is attached.
attach() {
  local end=$((SECONDS + 60))
  recordings=$((recordings + 1))
  capture=$BENCH_TMP/$recordings.hsd
  "$HEAPSONDE" record -v -p "${pid_of[$1]}" -o "$capture" "${@:2}" 2>"$BENCH_TMP/record.err" &
  recorder=$!
  until grep -q 'attached in' "$BENCH_TMP/record.err"; do
    if ! kill -0 "$recorder" 2>/dev/null || ((SECONDS >= end)); then
      give_up "$(tail -n 1 "$BENCH_TMP/record.err")"
    fi
    sleep 0.01
  done
}

# detach: and see that nothing was lost, because what is lost costs less. `summary` is the capture's summary.
# shellcheck disable=SC2034  # read by the parts
detach() {
  kill -INT "$recorder"
  wait "$recorder" || give_up "$(tail -n 1 "$BENCH_TMP/record.err")"
  recorder=
  summary=$("$HEAPSONDE" export "$capture" --to jsonl -o - 2>/dev/null | tail -n 1)
  [[ $(jq -c .lost <<<"$summary") == '{}' ]] || give_up "lost: $(jq -c .lost <<<"$summary")"
}

# in_turns N "ARG..." ...: the part's function `turn` for each string's words; backwards if N is odd, because
# who comes first, or after whom, makes a difference of some percent.
in_turns() {
  local n=$1 i at arguments
  shift
  for ((i = 1; i <= $#; i++)); do
    at=$((n % 2 ? $# + 1 - i : i))
    read -ra arguments <<<"${!at}"
    turn "${arguments[@]}"
  done
}

# An awk function, median(list, n) of list[1..n], which it sorts.
# shellcheck disable=SC2034
MEDIAN='
  function median(list, n,   i, j, x) {
    for (i = 2; i <= n; i++) {
      x = list[i]
      for (j = i - 1; j >= 1 && list[j] > x; j--) list[j + 1] = list[j]
      list[j + 1] = x
    }
    return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
  }'

# runs PROGRAM: "NS RUNS" of a BPF program of the recorder so far, by `start_target stats bpf_stats $recorder`.
runs() {
  local word
  ask stats read
  for word in $answer; do
    if [[ $word == "$1="* ]]; then
      word=${word#*=}
      echo "${word%/*} ${word#*/}"
      return
    fi
  done
  echo "0 0"
}
