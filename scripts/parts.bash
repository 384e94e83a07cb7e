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
behind=$(mktemp) # what a part says that runs in the background
behind_pid=
trap 'rm -f "$output" "$behind"; [ -z "$behind_pid" ] || kill -- "-$behind_pid" 2>/dev/null || true' EXIT

# part NAME COMMAND...: run it and show it as it goes, but for its closing line, which goes into the
# totals: whoever reads the log must find one such line. Its absence means that the part broke down.
part() {
  local name=$1 status=0
  shift
  echo
  echo "== $name"
  "$@" 2>&1 | tee "$output" | { grep --line-buffered -vE "$CLOSING" || true; } || status=$?
  count_part "$name" $status "$output"
}

# part_behind NAME COMMAND...: run it in the background of the parts that follow; one at a time. It must
# neither disturb them nor be disturbed by them.
part_behind() {
  behind_name=$1
  shift
  # A group of its own, so that nothing of it is left if this ends early.
  setsid "$@" >"$behind" 2>&1 </dev/null &
  behind_pid=$!
}

# part_awaited: wait for it, and show it and count it as part does.
part_awaited() {
  local status=0
  echo
  echo "== $behind_name"
  wait "$behind_pid" || status=$?
  behind_pid=
  grep -vE "$CLOSING" "$behind" || true
  count_part "$behind_name" $status "$behind"
}

# count_part NAME STATUS OUTPUT: into the totals.
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
    # Each part that ends badly shows in the totals, also where it could count no failed test.
    if [ "$bad" = 0 ] && [ "${skip:-0}" = 0 ]; then
      bad=1
    fi
  fi
  passed=$((passed + ok))
  failed=$((failed + bad))
  skipped=$((skipped + ${skip:-0}))
  summary+=$(printf '%-28s %4d passed %4d failed %4d skipped' "$name" "$ok" "$bad" "${skip:-0}")$'\n'
}

# end_parts: the totals; exits with 1 if any part ended badly.
end_parts() {
  echo
  echo "== totals"
  echo "$summary"
  closing_line $passed $failed $skipped
  exit $rc
}
