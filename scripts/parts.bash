# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Runs of tests in several parts, and the totals over them.
#
# in:   scripts/lib.sh
# out:  functions. Each part is a command that prints `N passed, N failed` as its closing line, or that counts
#       as one test

CLOSING='^[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$'

passed=0
failed=0
skipped=0
rc=0
summary=
output=$(mktemp)
failures=$(mktemp) # what end_parts repeats of the parts that ended badly
behind=$(mktemp -d) # what the parts say that run in the background
behind_pids=()
behind_names=()
behind_begins=()
clean_parts() {
  local pid
  rm -rf "$output" "$failures" "$behind"
  for pid in "${behind_pids[@]}"; do
    [ -z "$pid" ] || kill -- "-$pid" 2>/dev/null || true
  done
}
trap clean_parts EXIT

# part NAME COMMAND...: run it and show it as it goes, but for its closing line, which goes into the
# totals: whoever reads the log must find one such line. Its absence means that the part broke down.
part() {
  local name=$1 status=0 begin=$SECONDS
  shift
  echo
  echo "== $name"
  "$@" 2>&1 | tee "$output" | { grep --line-buffered -vE "$CLOSING" || true; } || status=$?
  count_part "$name" $status "$output" $((SECONDS - begin))
}

# part_behind NAME COMMAND...: run it in the background of the parts that follow. It must neither disturb
# them nor be disturbed by them.
part_behind() {
  local name=$1
  shift
  # A group of its own, so that nothing of it is left if this ends early.
  setsid "$@" >"$behind/${#behind_pids[@]}" 2>&1 </dev/null &
  behind_pids+=($!)
  behind_names+=("$name")
  behind_begins+=($SECONDS)
}

# parts_awaited: wait for all of those, and show them and count them as part does.
parts_awaited() {
  local i status
  for i in "${!behind_pids[@]}"; do
    status=0
    echo
    echo "== ${behind_names[i]}"
    wait "${behind_pids[i]}" || status=$?
    behind_pids[i]=
    grep -vE "$CLOSING" "$behind/$i" || true
    count_part "${behind_names[i]}" $status "$behind/$i" $((SECONDS - behind_begins[i]))
  done
  behind_pids=() behind_names=() behind_begins=()
}

# count_part NAME STATUS OUTPUT SECONDS: into the totals.
count_part() {
  local name=$1 status=$2 ok=0 bad=0 skip=0 line
  line=$(grep -E "$CLOSING" "$3" | tail -n 1 || true)
  if [ -n "$line" ]; then
    read -r ok _ bad _ skip _ <<<"$line"
  elif [ "$status" = 0 ]; then
    ok=1
  fi
  if [ "$status" != 0 ]; then
    rc=1
    what_failed "$1" "$3" >>"$failures"
    # Each part that ends badly shows in the totals, also where it could count no failed test.
    if [ "$bad" = 0 ] && [ "${skip:-0}" = 0 ]; then
      bad=1
    fi
  fi
  passed=$((passed + ok))
  failed=$((failed + bad))
  skipped=$((skipped + ${skip:-0}))
  summary+=$(printf '%-40s %4d passed %4d failed %4d skipped %5d s' "$name" "$ok" "$bad" "${skip:-0}" "$4")$'\n'
}

# what_failed NAME OUTPUT: each test of a part that failed with what it said, and how the part ended.
# Indented, so that nobody who counts results counts these again.
what_failed() {
  echo "$1:"
  {
    awk '/^not ok/ { lines = 30 } /^ok |^==/ { lines = 0 } lines > 0 { lines--; print }' "$2"
    # What is no result of a test: why it broke down, the end of a console.
    echo ...
    grep -avE "^(not )?ok |^#|$CLOSING" "$2" | tail -n 30 || true
  } | sed 's/^/  /'
}

# end_parts: what failed, once more, since it stands somewhere in a long log, and the totals; exits with 1
# if any part ended badly.
end_parts() {
  echo
  if [ -s "$failures" ]; then
    echo "== what failed"
    cat "$failures"
    echo
  fi
  echo "== totals"
  echo "$summary"
  closing_line $passed $failed $skipped
  exit $rc
}
