#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# The commands themselves: list, version, stat, export, and how record deals with the
# program it starts. Needs root and BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers

@test "--help of heapsonde and of each command is on stdout, exit 0" {
  "$HEAPSONDE" --help >help.out 2>help.err
  local command
  for command in list record stat version export start stop discard rate status follow; do
    grep -qw "$command" help.out
    "$HEAPSONDE" "$command" --help >"$command.out" 2>"$command.err"
    grep -qi usage "$command.out"
    [[ ! -s $command.err ]]
  done
  [[ ! -s help.err ]]
}

@test "without arguments: how it is used, on stderr, exit 2" {
  local status=0
  "$HEAPSONDE" >none.out 2>none.err || status=$?
  ((status == 2))
  [[ ! -s none.out ]]
  grep -q record none.err
}

@test "version names heapsonde's, libbpf's and what the kernel offers" {
  "$HEAPSONDE" version >version.out
  grep -Eq 'heapsonde +[0-9]+\.[0-9]+' version.out
  grep -Eq 'libbpf +v?[0-9]+\.[0-9]+' version.out
  grep -qF "$(uname -r)" version.out
  grep -Eqi 'ring' version.out
  grep -Eqi 'btf' version.out
  grep -Eqi 'uprobe' version.out
}

@test "list: attachable processes with domains and version, others with what they lack" {
  start_target probed busy --domains 3
  start_target stock "$TESTS_BUILD/stock/busy"
  start_target byte "$TESTS_BUILD/stock/plain.byte"
  sleep 1000 3>&- &
  local other=$!
  children+=("$other")
  "$HEAPSONDE" list >list.out
  cat list.out
  grep -Eq "^ *$probed_pid +root +3 +5\.[0-9]+\.[0-9]+.* .*busy" list.out
  grep -E "^ *$stock_pid .*busy" list.out | grep -qi probes
  grep -E "^ *$byte_pid .*plain.byte" list.out | grep -qi native
  not grep -Eq "^ *$other " list.out
  # The ones that can be attached to come before those that lack something.
  (($(grep -nE "^ *$probed_pid " list.out | cut -d: -f1) < $(grep -nE "^ *$stock_pid " list.out | cut -d: -f1)))
}

@test "list shows no process that has ended" {
  start_target target busy
  tell target stop
  ended_with 0 "$target_pid" target.err
  "$HEAPSONDE" list >list.out
  not grep -Eq "^ *$target_pid " list.out
}

@test "stat prints each domain's counters, COUNT times" {
  start_target target busy --domains 2
  "$HEAPSONDE" stat -p "$target_pid" 1 3 >stat.out
  cat stat.out
  grep -Eqi 'domain' stat.out
  grep -Eqi 'minor' stat.out
  grep -Eqi 'promoted' stat.out
  grep -Eqi 'major' stat.out
  # Three times two domains, and each of them has allocated.
  (($(grep -Ec '^[^a-zA-Z]*[0-9]' stat.out) >= 6))
  wait_until "the target to be left alone" untouched "$target_pid"
  tell target stop
  ended_with 0 "$target_pid" target.err
  grep -q '^ok' target.out
}

# How many words stat.out says were allocated in the minor heap.
words_shown() {
  awk '!column { for (i = 1; i <= NF; i++) if (toupper($i) ~ /^MINOR.WORDS$/) column = i; next }
    $column ~ /^[0-9]+$/ { words += $column } END { printf "%.0f\n", words }' stat.out
}

@test "stat's intervals add up to what the program allocated" {
  start_target target lists 3000000 --wait
  "$HEAPSONDE" stat -p "$target_pid" 0.5 >stat.out 2>stat.err 3>&- &
  local pid=$! allocated
  children+=("$pid")
  is_attached() { probes_up "$target_pid" | grep -qx minor_end; }
  wait_until "stat to attach" is_attached
  tell target go
  said target '^done'
  allocated=$(awk -F '\t' '$1 == "expect" { n += $9 } END { print n }' target.out)
  # The counters are as of the last minor collection, so one minor heap may be missing.
  enough_shown() { (($(words_shown) >= allocated - 262144)); }
  wait_until "$allocated words to be shown" enough_shown
  (($(words_shown) <= allocated + 10000))
  tell target end
  ended_with 0 "$target_pid" target.err
  ended_with 0 "$pid" stat.err
}

@test "stat without an interval prints once" {
  start_target target busy
  timeout "$DEADLINE" "$HEAPSONDE" stat -p "$target_pid" >stat.out
  cat stat.out
  (($(grep -Ec '^[^a-zA-Z]*[0-9]' stat.out) == 1))
}

@test "stat ends with its target, and with Ctrl-C" {
  start_target target busy
  "$HEAPSONDE" stat -p "$target_pid" 1 >stat.out 2>stat.err 3>&- &
  local first=$!
  "$HEAPSONDE" stat -p "$target_pid" 1 >stat2.out 2>stat2.err 3>&- &
  local second=$!
  children+=("$first" "$second")
  wait_until "stat to print" grep -Eq '[0-9]' stat.out
  wait_until "stat to print" grep -Eq '[0-9]' stat2.out
  kill -INT "$first"
  ended_with 0 "$first" stat.err
  tell target stop
  ended_with 0 "$second" stat2.err
  ended_with 0 "$target_pid" target.err
}

@test "record -- CMD passes on the exit code" {
  local code status
  for code in 0 1 7 255; do
    status=0
    "$HEAPSONDE" record -r 2^-10 --force -o run.jsonl -- "$TESTS_BUILD/lists" 1000 --exit "$code" \
      >run.out 2>run.err || status=$?
    ((status == code))
    in_order run
  done
}

@test "record -- CMD of a program that dies of a signal ends with 128 + its number" {
  local status=0
  "$HEAPSONDE" record -r 2^-10 -o run.jsonl -- "$TESTS_BUILD/lists" 100000 --crash \
    >run.out 2>run.err || status=$?
  ((status == 139))
  in_order run
}

@test "record -- CMD finds the program on PATH, and gives it its arguments and stdin" {
  PATH="$TESTS_BUILD:$PATH" "$HEAPSONDE" record -o run.jsonl -- plain 10 <<<go >run.out
  grep -qx 'sum 1000' run.out
  in_order run
}

@test "without -o the records are on stdout, and nothing else is" {
  start_target target busy
  "$HEAPSONDE" record -p "$target_pid" -r 2^-15 --duration 0.5 >run.jsonl 2>run.err
  in_order run
  tell target stop
  ended_with 0 "$target_pid" target.err
}

@test "record -o - is stdout, too" {
  start_target target busy
  "$HEAPSONDE" record -p "$target_pid" -r 2^-15 --duration 0.5 -o - >run.jsonl 2>run.err
  in_order run
}

@test "the header says what is recorded, and how" {
  start_target target busy
  start_record run -p "$target_pid" -r 0.00037 --stack-depth 32
  end_record run INT
  jq -e -n --argjson pid "$target_pid" --arg kernel "$(uname -r)" --arg exe "$(realpath "$TESTS_BUILD/busy")" '
    first(inputs) | .type == "header" and .pid == $pid and .kernel == $kernel and .exe == $exe
      and (.command | endswith("busy")) and (.ocaml | startswith("5."))
      and ((.rate / 0.00037 - 1) | fabs < 1e-6) and .tier == 11 and .stack_depth == 32
      and .clock == "CLOCK_MONOTONIC"' run.jsonl
  # The two clocks together are the time of day: within a day, as clocks may be set.
  jq -e -n --argjson now "$(date +%s)" 'first(inputs)
    | ((.time + .wall_offset) / 1e9 - $now) | fabs < 86400' run.jsonl
}

# kinds NAME: which kinds of allocations and sources there are.
kinds() {
  awk -F '\t' '/^alloc_/ { print $1, $9 }' "$1.tsv" | sort -u
}

@test "--track alloc gives allocations only, and says that blocks are not tracked" {
  record_run run -r 2^-2 --track alloc -- lifetimes 300
  awk -F '\t' '
    /^(promote|dealloc_|unknown)/ { bad++ }
    /^alloc_/ { n++; if ($11 != "false") bad++ }
    END { exit !n || bad }' run.tsv
}

@test "--track restricts the heaps" {
  record_run minor -r 2^-2 --track minor -- lifetimes 300
  [[ $(kinds minor | cut -d ' ' -f 1 | sort -u) == alloc_minor ]]
  (($(count minor promote) > 0))
  record_run major -r 2^-2 --track major -- lifetimes 300
  [[ $(kinds major | cut -d ' ' -f 1 | sort -u) == alloc_major ]]
  (($(count major dealloc_major) > 0))
}

@test "--track restricts the sources" {
  local source
  for source in normal marshal custom; do
    record_run "$source" -r 2^-2 --track "$source" -- lifetimes 300
    [[ $(kinds "$source" | cut -d ' ' -f 2 | sort -u) == "$source" ]]
  done
  record_run both -r 2^-2 --track marshal,custom,minor -- lifetimes 300
  [[ $(kinds both) == "alloc_minor custom"$'\n'"alloc_minor marshal" ]]
}

@test "--track all is everything" {
  record_run run -r 2^-2 --track all -- lifetimes 300
  "$LIB/fates" run.tsv run.out
}

@test "what is tracked does not change how much is sampled" {
  restricted() {
    record_run run -r 2^-4 --track minor,normal -- lists 100000 || return
    "$LIB/stats" run.tsv run.out
  }
  statistically restricted
}

@test "a raw capture gives the same lines when exported" {
  record_run direct -r 1 -- stack
  "$HEAPSONDE" record -r 1 --format raw -o run.hsd -- "$TESTS_BUILD/stack" >run.out
  "$HEAPSONDE" export run.hsd >run.jsonl
  : >run.err
  in_order run
  # One deterministic program, twice: the same allocations with the same stacks, but for
  # the order between threads and the addresses.
  local name
  for name in direct run; do
    jq -n -r --arg unit Stack -f "$LIB/canonical.jq" "$name.jsonl" >"$name.txt"
  done
  [[ -s direct.txt ]]
  diff -u direct.txt run.txt | head -n 20
  cmp direct.txt run.txt
}

@test "a raw capture is exported without root, and without the target" {
  cp "$TESTS_BUILD/lists" gone
  "$HEAPSONDE" record -r 2^-3 --format raw -o run.hsd -- ./gone 3000 >run.out
  rm gone
  anywhere=$(mktemp -d /tmp/heapsonde-test.XXXXXX)
  chmod 755 "$anywhere"
  install -m 755 "$HEAPSONDE" "$anywhere"
  install -m 644 run.hsd "$anywhere"
  setpriv --reuid 65534 --regid 65534 --clear-groups \
    "$anywhere/heapsonde" export "$anywhere/run.hsd" --to jsonl >run.jsonl
  : >run.err
  in_order run
  statistically "$LIB/stats" -v counters=1 run.tsv run.out
}

@test "a raw capture that is cut short is exported up to there" {
  "$HEAPSONDE" record -r 2^-3 --format raw -o run.hsd -- "$TESTS_BUILD/lists" 30000 >run.out
  head -c $(($(wc -c <run.hsd) / 2 + 3)) run.hsd >cut.hsd
  "$HEAPSONDE" export cut.hsd >cut.jsonl 2>cut.err || true
  jq -e -n 'reduce inputs as $r (0; . + 1) | . > 100' cut.jsonl
  # Never without a word.
  grep -q . cut.err
}
