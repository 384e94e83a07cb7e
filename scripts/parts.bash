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
trap 'rm -f "$output"' EXIT

# part NAME COMMAND...: run it and show it as it goes, but for its closing line, which goes into the
# totals: whoever reads the log must find one such line. Its absence means that the part broke down.
part() {
  local name=$1 status=0 ok=0 bad=0 skip=0 line
  shift
  echo
  echo "== $name"
  "$@" 2>&1 | tee "$output" | { grep --line-buffered -vE "$CLOSING" || true; } || status=$?
  line=$(grep -E "$CLOSING" "$output" | tail -n 1 || true)
  if [ -n "$line" ]; then
    read -r ok _ bad _ skip _ <<<"$line"
  elif [ $status = 0 ]; then
    ok=1
  fi
  if [ $status != 0 ]; then
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
