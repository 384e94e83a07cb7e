#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# export --to ctf: traces of real recordings, read by a reader that shares nothing with the
# writer (tests/lib/read-ctf.c), say of each block what the JSON lines of the same capture
# say. Needs root and BPF.

# Helpers set variables by name; bats runs each test in a subshell; the $ in quotes are awk's.
# shellcheck disable=SC2016,SC2030,SC2031,SC2154

load helpers
load daemon_helpers

# capture NAME OPTION… -- PROGRAM ARG…: record into NAME.hsd.
capture() {
  record_around "$1" "$1.hsd" "${@:2}"
}

# convert NAME: NAME.jsonl, and the traces NAME.ctf2 and NAME.ctf3 as text.
convert() {
  local name=$1 version
  "$HEAPSONDE" export --to jsonl -o "$name.jsonl" "$name.hsd" || return
  for version in 2 3; do
    "$HEAPSONDE" export --to ctf --ctf-version $version -o "$name.$version" "$name.hsd" || return
    "$TESTS_BUILD/read-ctf" "$name.$version" >"$name.ctf$version" || return
  done
}

# rate_of NAME: of its traces.
rate_of() {
  awk -F '\t' '$1 == "trace" { print $3 }' "$1.ctf2"
}

# same_lives NAME MIN: the traces have the blocks of the JSON lines, at least MIN of them,
# with their times, sizes, samples, stacks and fates; that of version 2 in one domain.
same_lives() {
  local name=$1 min=$2
  "$LIB/lives" "$name.jsonl" "$(rate_of "$name")" | sort >"$name.lives3" || return
  awk -F '\t' -v OFS='\t' '{ $3 = 0; print }' "$name.lives3" | sort >"$name.lives2"
  (($(wc -l <"$name.lives3") >= min)) || fail "only $(wc -l <"$name.lives3") blocks" || return
  local version
  for version in 2 3; do
    grep ^block "$name.ctf$version" | sort | diff "$name.lives$version" - >"$name.diff" && continue
    head -n 4 "$name.diff"
    fail "version $version tells $(grep -c '^[<>]' "$name.diff") lives otherwise" || return
  done
}

# n_blocks NAME AWK-CONDITION: blocks of the trace with domains; $4 size, $5 samples,
# $6 source, $7 promoted, $8 collected, $9 frames.
n_blocks() {
  awk -F '\t' "\$1 == \"block\" && ($2) { n++ } END { print n + 0 }" "$1.ctf3"
}

@test "small blocks: what the trace says of itself, and each block" {
  capture run -r 2^-3 -- lists 30000
  convert run
  same_lives run 1000
  # The trace's own line is as the header has it; start and pid are those of the recording.
  jq -r 'select(.type == "header") | ["trace", 2, .rate, .pid, .exe, .command] | @tsv' run.jsonl >want
  grep ^trace run.ctf2 | cut -f 1-4,6- | diff want -
  # Version 2 is what is written unless told otherwise.
  "$HEAPSONDE" export --to ctf -o default run.hsd
  cmp default run.2
}

@test "every block that is allocated, and what becomes of it" {
  capture run -r 1 -- lifetimes 200
  convert run
  same_lives run 1000
  # There is something of everything.
  (($(n_blocks run '$6 == "minor" && $7 != "-" && $8 != "-"') > 0))
  (($(n_blocks run '$6 == "minor" && $7 == "-" && $8 != "-"') > 0))
  (($(n_blocks run '$6 == "major" && $8 != "-"') > 0))
  (($(n_blocks run '$6 == "external" && $8 != "-"') > 0))
  (($(n_blocks run '$8 == "-"') > 0))
}

@test "domains: streams of their own in version 3, one for all in version 2" {
  capture run -r 2^-6 -- domains 300000 --domains 3
  convert run
  same_lives run 1000
  local d
  for d in 0 1 2 3; do
    (($(n_blocks run "\$3 == $d") > 100)) || fail "domain $d has $(n_blocks run "\$3 == $d") blocks"
  done
}

@test "domains by the hundred, and blocks that outlive theirs" {
  capture run -r 2^-6 -- spawner 1000000 --domains 300
  convert run
  same_lives run 1000
}

@test "unmarshalled blocks and memory outside of the heap" {
  capture marshals -r 1 -- marshals 3000
  convert marshals
  same_lives marshals 100
  capture bigarrays -r 1 -- bigarrays 3000
  convert bigarrays
  same_lives bigarrays 10
  (($(n_blocks bigarrays '$6 == "external"') > 0))
}

@test "no stacks: each block still has a frame" {
  capture run -r 2^-3 --stack-depth 0 -- lists 3000
  convert run
  same_lives run 100
  (($(n_blocks run '$9 != "[empty stack]@<unknown>:0;"') == 0))
}

@test "stacks of a thousand frames" {
  capture run -r 1 --stack-depth 1024 -- stack --deep 2000
  convert run
  same_lives run 100
  # The runtime does not count inlined frames: there may be more.
  local deepest
  deepest=$(awk -F '\t' '{ n = gsub(/;/, ";", $9); if (n > max) max = n } END { print max }' run.ctf3)
  ((deepest >= 1024)) || fail "the deepest stack has $deepest frames"
}

@test "a capture that was cut: the trace goes up to there" {
  capture whole -r 1 -- lifetimes 200
  local size n
  size=$(stat -c %s whole.hsd)
  for n in 1 2 3; do
    head -c $((size * n / 4 + n)) whole.hsd >"run$n.hsd"
    convert "run$n" 2>"run$n.err"
    grep -q "was cut off" "run$n.err"
    same_lives "run$n" 0
  done
  (($(n_blocks run3 1) > $(n_blocks run1 1)))
}

# changing RATE RATE: a profile of the daemon that changes its rate, into run.hsd.
changing() {
  start_daemon
  start_orders target 2
  local id
  id=$("$HEAPSONDE" start -p "$target_pid" -r "$1" -o run.hsd --ring-size 16M 3>&-)
  order target "alloc 0 100000"
  order target "alloc 1 100000"
  order target "large 1 50000"
  "$HEAPSONDE" rate "$id" "$2"
  # A domain goes over at the end of a minor collection.
  order target major
  order target "minor 1"
  order target "alloc 0 100000"
  order target "alloc 1 100000"
  order target "large 1 50000"
  order target drop
  order target major
  "$HEAPSONDE" stop "$id"
  "$HEAPSONDE" discard "$id"
  convert run
  jq -e -n '[inputs | select(.type == "rate")] | length >= 2' run.jsonl
}

# In both, the trace's rate is the higher one, and a sample at the lower one counts for as
# many as there would have been.
@test "a rate that falls: later samples count more" {
  changing 2^-4 2^-7
  [[ $(rate_of run) == 0.0625 ]]
  same_lives run 1000
  (($(n_blocks run '$5 % 8 == 0') > 100))
}

@test "a rate that rises: earlier samples count more" {
  changing 2^-7 2^-4
  [[ $(rate_of run) == 0.0625 ]]
  same_lives run 1000
  (($(n_blocks run '$5 % 8 == 0') > 100))
}

# From a pipe the rates to come are not known: the trace's is the first one, and a block is
# left out with the probability that it would not have been sampled.
@test "a rate that rises, read from a pipe: the first rate holds, without bias" {
  changing 2^-7 2^-4
  "$HEAPSONDE" export --to ctf -o piped - <run.hsd
  "$TESTS_BUILD/read-ctf" piped >piped.txt
  awk -F '\t' '$1 == "trace" { exit $3 != 0.0078125 }' piped.txt
  # Σ n/λ of both, which differ by the rounding alone: each block of n samples at the
  # higher rate gives n/8 on average, with a variance of at most 1/4. Six of its standard
  # deviations are exceeded once in 500 million.
  awk -F '\t' '
    $1 == "trace" { rate[FILENAME] = $3 }
    $1 == "block" { words[FILENAME] += $5 / rate[FILENAME]; if (FILENAME == "run.ctf2" && $5 % 8) drawn++ }
    END {
      off = words["piped.txt"] - words["run.ctf2"]
      sd = sqrt(drawn / 4) / rate["piped.txt"]
      printf "%.0f and %.0f words, %.2f standard deviations\n", words["piped.txt"], words["run.ctf2"], off / sd
      exit !(drawn > 1000 && off < 6 * sd && -off < 6 * sd)
    }' piped.txt run.ctf2
}

# More records than are held back at once, of domains that allocate in turn.
@test "a large capture" {
  "$TESTS_BUILD/make-capture" -n 70000 -s 3000 -d 20 -k 9 >run.hsd
  convert run
  same_lives run 70000
}

@test "an output that cannot be written ends with an error" {
  "$TESTS_BUILD/make-capture" -n 20000 >run.hsd
  local status=0
  "$HEAPSONDE" export --to ctf run.hsd >/dev/full 2>err || status=$?
  ((status == 1))
  grep -q "No space left" err
}
