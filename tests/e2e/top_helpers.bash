# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
#
# heapsonde top in a real terminal, that of a tmux of the test's own, besides helpers.bash.
#
# in:   HEAPSONDE; helpers.bash
# out:  functions

# Tests use what the functions set, and the other way round, each in its own subshell.
# shellcheck disable=SC2034,SC2154

# tm ARG…: tmux, the test's own server. (Test numbers of a file are those of another as well.)
tm() {
  tmux -L "heapsonde-test-$BATS_ROOT_PID-$BATS_SUITE_TEST_NUMBER" -f /dev/null "$@"
}

# start_top NAME OPTION…: heapsonde top in a terminal of 80 × 24, or $size ("100 30"), in the
# environment $environment ("NO_COLOR=1"); top_pid is its PID. What was before it on the screen, the
# line "before NAME", and the terminal's settings are remembered for left_well.
start_top() {
  local name=$1 cols rows
  shift
  read -r cols rows <<<"${size:-80 24}"
  # shellcheck disable=SC2086  # words
  {
    echo "echo before $name"
    echo "stty -a >$name.stty"
    printf '%q ' env LC_ALL=C.UTF-8 ${environment-} "$HEAPSONDE" top "$@"
    echo "2>$name.err"
    echo "echo \$? >$name.status"
    echo "stty -a >$name.stty2"
    echo ": >$name.done"
  } >"$name.sh"
  tm new-session -d -s "$name" -x "$cols" -y "$rows" "exec bash --noprofile --norc" 3>&- || return
  children+=("$(tm display-message -p '#{pid}')")
  tm send-keys -t "$name" ". ./$name.sh" Enter
  screen=$name
  wait_until "$name to begin" in_full_screen_or_done "$name" || return
  top_pid=$(pgrep -P "$(pane "$name" pane_pid)" || true)
}

# pane NAME VARIABLE: of tmux.
pane() {
  tm display-message -p -t "$1" "#{$2}"
}

in_full_screen_or_done() {
  [[ -e $1.done || $(pane "$1" alternate_on) == 1 ]]
}

# shot: what is on the screen.
shot() {
  tm capture-pane -p -t "$screen"
}

screen_has() {
  shot | grep -Eq -- "$1"
}

screen_lacks() {
  ! screen_has "$1"
}

# shows PATTERN: the screen has a line like it, by and by.
shows() {
  wait_until "the screen to show $1" screen_has "$1" && return
  shot
  return 1
}

# hides PATTERN: it has none, by and by.
hides() {
  wait_until "the screen to show no $1" screen_lacks "$1" && return
  shot
  return 1
}

# press KEY…: as tmux names keys.
press() {
  tm send-keys -t "$screen" "$@"
}

# left_well NAME STATUS: top has ended with this status, and the terminal is as it was.
left_well() {
  local name=$1
  wait_until "$name to end" test -e "$name.done" || return
  if [[ $(<"$name.status") != "$2" ]]; then
    cat "$name.err"
    fail "$name ended with status $(<"$name.status"), not $2"
    return
  fi
  diff "$name.stty" "$name.stty2" || return
  # tmux reads what was written last by and by.
  wait_until "the terminal of $name to be as before" is_restored "$name" || return
  tm capture-pane -p -t "$name" | grep -qx "before $name" || fail "what was on the screen has gone"
}

# is_restored NAME: not in full screen, with its cursor, the keypad as usual.
is_restored() {
  [[ $(tm display-message -p -t "$1" \
    '#{alternate_on} #{cursor_flag} #{keypad_flag} #{keypad_cursor_flag}') == '0 1 0 0' ]]
}

# column TITLE ROW: what a table on stdin has in the column of this title, in the first row that
# contains ROW; columns are aligned to the right.
column() {
  # Awk may count bytes.
  sed 's/±/~/g' | awk -v title="$1" -v row="$2" '
    !end && (at = index($0, title)) && /SHARE/ { end = at + length(title) - 1; next }
    end && index($0, row) {
      text = substr($0, 1, end)
      sub(/.* /, "", text)
      print text
      exit
    }'
}

# top_exact NAME TARGET [SITES]: the last table of NAME.top has, to the word (as the table rounds
# it), what the target says it allocated at each of so many sites (4).
top_exact() {
  local function words total n=0
  awk '/^---/ { text = "" } { text = text $0 "\n" } END { printf "%s", text }' "$1.top" >"$1.last"
  grep -qx 'ended: target exited' "$1.last" || fail "$(cat "$1.last")" || return
  while IFS=$'\t' read -r function words; do
    total=$(column TOTAL "$function " <"$1.last")
    [[ $total == "$words" ]] ||
      fail "$function allocated $words words, and TOTAL is '$total': $(cat "$1.last")" || return
    n=$((n + 1))
  done < <(awk -F '\t' '$1 == "expect" && $9 > 0 {
    w = $9
    for (unit = ""; w >= 999.5; w /= 1000) unit = (unit == "" ? "k" : "M")
    printf("%s\t%.*f%s\n", $5, (unit == "" || w >= 99.95 ? 0 : 1), w, unit) }' "$2.out")
  ((n == ${3:-4})) || fail "$n sites"
}

# within VALUE LOW HIGH: a number, perhaps with %, is between the two.
within() {
  awk -v v="${1%\%}" -v low="$2" -v high="$3" 'BEGIN { exit !(v ~ /^[0-9.]+$/ && v + 0 >= low && v + 0 <= high) }' ||
    fail "$1 is not between $2 and $3"
}

# has_samples: 50,000 of them, which is enough for shares.
has_samples() {
  shot | grep -Eq 'samples ([5-9][0-9]\.[0-9]k|[0-9]{3}k|[0-9.]+M)'
}

# narrow_shot FILE: what is on the screen, if the window has some thousands of samples: the interval of
# Busy.churn is ±3% or less. (The target may have been held up.)
narrow_shot() {
  shot >"$1"
  grep -Eq '^ +[0-9.]+[kMG] +±[0-3]% .*Busy.churn' "$1"
}

# shares_are_right FILE: the shares of busy's two sites. A list has 3000 words, and every 40th brings an
# array of 501: 99.58 %. An interval of ±p% is that of (196 / p)² samples or more; from these the share
# is off by six of its standard deviations at most, and by what it is rounded to.
shares_are_right() {
  local p off low high
  p=$(sed -n 's/^ *[0-9.]*[kMG] *±\([0-3]\)% .*Busy.churn.*/\1/p' "$1")
  off=$(awk -v p="$p" 'BEGIN { print 0.05 + 600 * sqrt(0.9958 * 0.0042) / (196 / (p + 0.5)) }')
  read -r low high < <(awk -v d="$off" 'BEGIN { print 99.58 - d, 99.58 + d }')
  within "$(column SHARE Busy.churn <"$1")" "$low" "$high" || return
  read -r low high < <(awk -v d="$off" 'BEGIN { print 0.42 - d, 0.42 + d }')
  within "$(column SHARE Busy.chunks <"$1")" "$low" "$high"
}
