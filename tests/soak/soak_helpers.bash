# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Observers that come and go, for soak.bats: each is one round, ends by itself, and has its records
# checked where it has any.
#
# in:   helpers.bash, daemon_helpers.bash; target_pid; RANDOM, which has been given its seed
# out:  VISITS, the names of the functions; visit, one of them; $visited, which and how

# Tests use what the functions set, and the other way round, each in its own subshell.
# shellcheck disable=SC2034,SC2154

VISITS=(jsonl raw hsd follower top stat direct bound rates killed nothing)

# a_moment MS: up to so many milliseconds, at random.
a_moment() {
  sleep "$(printf '0.%03d' $((RANDOM % $1)))"
}

# one_of WORD…: into $picked. (In a subshell RANDOM would not go on.)
one_of() {
  local i=$((RANDOM % $# + 1))
  picked=${!i}
}

# Options of a profile: rate, depth, what to track.
options_at_random() {
  one_of 2^-9 2^-11 2^-13 0.0007 0.003
  profile_options=(-r "$picked" --domain 1)
  one_of 0 1 8 64 1024
  profile_options+=(--stack-depth "$picked")
  one_of all all all minor major size=4- normal alloc
  [[ $picked == all ]] || profile_options+=(--track "$picked")
}

# begin_visit [OPTION…]: a profile of domain 1 and of those that it spawns.
begin_visit() {
  options_at_random
  visited+=" ${profile_options[*]}"
  visit_id=$("$HEAPSONDE" start --force --ring-size 16M -p "$target_pid" "${profile_options[@]}" "$@")
}

# It stops, goes on for a while and is discarded; or is discarded at once.
end_visit() {
  a_moment 400
  if ((RANDOM % 4)); then
    "$HEAPSONDE" stop "$visit_id" && a_moment 200 || return
  else
    "$HEAPSONDE" stop "$visit_id" || return
  fi
  "$HEAPSONDE" discard "$visit_id"
}

visit_jsonl() {
  begin_visit -o visit.jsonl && end_visit && in_order visit
}

visit_raw() {
  begin_visit --format raw -o visit.hsd && end_visit &&
    "$HEAPSONDE" export --to jsonl visit.hsd >visit.jsonl && in_order visit
}

visit_hsd() {
  begin_visit -o visit.hsd && end_visit && "$HEAPSONDE" report visit.hsd >visit.report &&
    "$HEAPSONDE" export --to jsonl visit.hsd >visit.jsonl && in_order visit
}

visit_follower() {
  begin_visit && follow_profile visit "$visit_id" && end_visit &&
    ended_with 0 "$visit_pid" visit.err && in_order visit -v follow=1
}

visit_top() {
  "$HEAPSONDE" top --socket "$HEAPSONDE_SOCKET" --plain -p "$target_pid" --domain 1 -n 2 --delay 0.2 >visit.top
}

visit_stat() {
  "$HEAPSONDE" stat --socket "$HEAPSONDE_SOCKET" -p "$target_pid" 0.1 3 >visit.stat
}

# Another observer, which is not the daemon's: of all domains, at a rate of its own.
visit_direct() {
  "$HEAPSONDE" record -q -p "$target_pid" -r 2^-12 --duration 0.4 --force -o visit.jsonl && in_order visit
}

visit_bound() {
  options_at_random
  visited+=" ${profile_options[*]}"
  "$HEAPSONDE" record -q --socket "$HEAPSONDE_SOCKET" -p "$target_pid" "${profile_options[@]}" --duration 0.3 \
    --force -o visit.jsonl && in_order visit
}

visit_rates() {
  begin_visit -o visit.jsonl && a_moment 200 && "$HEAPSONDE" rate "$visit_id" 2^-10 && a_moment 200 &&
    "$HEAPSONDE" rate "$visit_id" 0.0004 && end_visit && in_order visit
}

# A client whose profile goes with it.
visit_killed() {
  local pid
  rm -f visit.jsonl
  "$HEAPSONDE" record -q --socket "$HEAPSONDE_SOCKET" -p "$target_pid" --domain 1 -r 2^-11 --force \
    -o visit.jsonl 3>&- &
  pid=$!
  children+=("$pid")
  # It is known to all from here on. (Clients that die earlier: tests/e2e/kills.bats.)
  wait_until "the profile to begin" samples_or_ended visit "$pid"
  a_moment 300
  kill -KILL "$pid"
  wait "$pid" 2>/dev/null || true
}

# Requests that are refused.
visit_nothing() {
  refused 'samples for profile' start -p "$target_pid" --domain 0 &&
    refused 'no domain' start -p "$target_pid" --domain 4000000000 &&
    refused . stop 999999
}

# visit ROUND: one at random; when it has returned nothing of it is left but the long profile.
visit() {
  one_of "${VISITS[@]}"
  visited=$picked
  local kind=$picked
  "visit_$kind" 3>&- >visit.log 2>&1 && wait_until "only one profile to be left" alone && return
  echo "round $1, $visited:"
  tail -n 20 visit.log
  failures+=" $kind"
}

alone() {
  [[ $("$HEAPSONDE" status --json | grep -c .) == 1 ]]
}

# ---- what the daemon has ------------------------------------------------------------------

# of_process ROLE PID: its memory and what it holds. What is resident but not its own (code that has run)
# comes in when it is first needed; a file that stays mapped is counted.
of_process() {
  local bytes
  bytes=$(od -An -v -t u8 -w16 in_use | awk -v pid="$2" 'NR > 1 && $1 == pid { bytes = $2 } END { print bytes }')
  [[ -n $bytes ]] || fail "what process $2 has in use is not known" || return
  printf ' %s_kib=%d' "$1" $(((bytes + 1023) / 1024))
  awk -v role="$1" '/^Rss:/ { printf " %s_rss_shown=%d", role, $2 } /^Anonymous:/ { printf " %s_pages_kib=%d", role, $2 }' \
    "/proc/$2/smaps_rollup"
  printf ' %s_mapped=%d %s_descriptors=%d %s_threads=%d' "$1" "$(awk '$5 != 0' "/proc/$2/maps" | wc -l)" \
    "$1" "$(find "/proc/$2/fd" -mindepth 1 | wc -l)" "$1" "$(find "/proc/$2/task" -mindepth 1 -maxdepth 1 | wc -l)"
}

# measure: a line for growth.
measure() {
  local worker
  worker=$(workers) || return
  printf 'round=%d' "$1"
  of_process supervisor "$daemon_pid" && of_process worker "$worker" || return
  printf ' kernel_objects=%d\n' "$(bpf_objects "$worker" | wc -l)"
}
