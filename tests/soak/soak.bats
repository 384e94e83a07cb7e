#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# Soak: a program that spawns and joins domains without end, one long profile of it, and others that come
# and go at random. The daemon does not grow, and at the end the whole stream of the long profile is in
# order and agrees with the program. scripts/soak runs it. Needs root and BPF.
#
# in: SOAK_SECONDS, how long it goes on (1800), the checks at the end not counted; SOAK_SEED, from which
#     all that is random comes; SOAK_KEEP, a folder for the records and the measurements, to look at;
#     SOAK_LEAK=1, a daemon that leaks: then it must fail

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load ../e2e/helpers
load ../e2e/daemon_helpers
load soak_helpers

# A machine that is busy with other things takes long to spawn so many domains at the beginning.
# shellcheck disable=SC2034  # read by helpers.bash
DEADLINE=600

# A sample in 1,024 words: some thousand records a second, whatever else is done.
RATE=2^-10

# The bytes that the daemon has in use are counted. What is free goes back to the kernel at once, as far
# as the C library can, and all threads share one heap, so that no profile that has gone hides behind it
# what grows but is not of the C library.
begin() {
  LD_PRELOAD=$TESTS_BUILD/heap_in_use.so HEAP_IN_USE=$PWD/in_use HEAP_LEAK=${SOAK_LEAK-} MALLOC_ARENA_MAX=1 \
    MALLOC_TRIM_THRESHOLD_=65536 MALLOC_MMAP_THRESHOLD_=65536 start_daemon || return
  start_target target soak --wait || return
  start_profile long -p "$target_pid" --domain 0 -r "$RATE" --ring-size 64M --max-blocks 262144 || return
  tell target go
  said target '^primed'
}

# minute: what there is to say each minute.
minute() {
  local last
  last=$(tail -n 1 rounds.tsv)
  echo "# minute $((SECONDS / 60)): $n rounds, $(grep -c '^ended' target.out) domains," \
    "$(stat -c %s long.jsonl) bytes of records; $last" >&3
}

# all_rounds: until the time is over, and there are rounds enough to say whether anything grows. Each
# is a line of rounds.tsv; what it was goes to visits.
all_rounds() {
  local next=$((SECONDS / 60 * 60 + 60))
  n=0
  while ((SECONDS < SOAK_SECONDS || n < 90)); do
    n=$((n + 1))
    visit "$n"
    echo "$n $visited" >>visits
    measure "$n" >>rounds.tsv || return
    if ((SECONDS >= next)); then
      minute
      next=$((next + 60))
    fi
  done
}

# checks COMMAND…: all of them are made, and $failures says which have failed.
checks() {
  local status=0
  "$@" || status=$?
  # stats: far less likely than anything that happens once in a million runs, or so.
  [[ $1 == "$LIB/stats" && $status == 3 ]] && status=0
  ((status == 0)) || failures+=" ${1##*/}"
}

the_end() {
  local pid
  local -a held
  "$LIB/growth" rounds.tsv || failures+=" growth"
  mapfile -t held < <(workers)
  for pid in "${held[@]}"; do bpf_objects "$pid"; done >objects
  tell target stop
  said target '^done'
  tell target end
  ended_with 0 "$target_pid" target.err || return
  wait_until "the profile to finish" has_state "$long_id" finished || return
  "$HEAPSONDE" discard "$long_id" || return
  for pid in "${held[@]}"; do
    wait_until "the worker to end" has_ended "$pid" || return
  done
  gone objects || return
  "$LIB/flatten" long.jsonl >long.tsv || return
  checks "$LIB/check_order" -v forget=1 long.tsv
  checks "$LIB/counters" long.tsv target.out
  checks "$LIB/stats" -v counters=1 long.tsv /dev/null
  checks "$LIB/ended" long.tsv target.out
  stop_daemon
}

@test "soak: domains, effects, compactions, profiles that come and go" {
  : "${SOAK_SECONDS:=1800}" "${SOAK_SEED:=$((RANDOM * 32768 + RANDOM))}"
  echo "# SOAK_SEED=$SOAK_SEED" >&3
  RANDOM=$SOAK_SEED
  SECONDS=0
  failures=
  begin
  all_rounds
  the_end
  echo "# $n rounds, $(wc -l <long.tsv) records, $(awk '$1 == "rounds" { print $2 }' target.out) domains" >&3
  if [[ -n ${SOAK_KEEP-} ]]; then
    mkdir -p "$SOAK_KEEP"
    cp rounds.tsv visits target.out long.jsonl "$SOAK_KEEP"
  fi
  [[ -z $failures ]] || fail "failed:$failures"
}
