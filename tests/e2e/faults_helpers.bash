# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What the tests of faults share, besides helpers.bash and daemon_helpers.bash: profiles
# by their number, and whether whoever was not hit goes on.
#
# in:   HEAPSONDE, TESTS_BUILD; helpers.bash, daemon_helpers.bash (whose end_profile is
#       replaced)
# out:  functions

# Tests use what the functions set, and the other way round, each in its own subshell.
# shellcheck disable=SC2034,SC2154

# start NAME OPTION…: a profile with its output in NAME.jsonl. Sets NAME_id. The ring
# buffer is large, so that on a busy machine, too, what is lost is lost elsewhere.
start() {
  local name=$1 id
  shift
  id=$("$HEAPSONDE" start --force -o "$name.jsonl" --ring-size 16M "$@" 3>&-) || return
  printf -v "${name}_id" %d "$id"
}

# is PROFILE FILTER: it is true of the profile's status.
is() {
  [[ $(status_of "$1" "$2") == true ]]
}

# follow NAME PROFILE: in the background, into NAME.jsonl. Sets NAME_pid. Returns when
# the daemon knows of it.
follow() {
  local name=$1
  anew "$name.jsonl"
  "$HEAPSONDE" follow "$2" >"$name.jsonl" 2>"$name.err" </dev/null 3>&- &
  printf -v "${name}_pid" %d $!
  children+=($!)
  wait_until "$name to follow" grep -qs '^{"type":"profile"' "$name.jsonl"
}

# more_records NAME…: each of these files still grows, by records of blocks.
more_records() {
  local name lines
  for name; do
    lines=$(wc -l <"$name.jsonl")
    # shellcheck disable=SC2317  # by wait_until
    grows() { sed "1,${lines}d" "$name.jsonl" | grep -q '^{"type":"alloc_'; }
    wait_until "more records in $name.jsonl" grows || return
  done
}

# end_profile ID: stop and discard.
end_profile() {
  "$HEAPSONDE" stop "$1" && "$HEAPSONDE" discard "$1"
}

# whole NAME: each line of NAME.jsonl is JSON, and the last one is whole.
whole() {
  [[ -z $(tail -c 1 "$1.jsonl") ]] || fail "the last line of $1.jsonl is cut off" || return
  jq -e -n 'reduce inputs as $r (0; . + 1) | . > 0' "$1.jsonl" >/dev/null
}

# lost NAME: the summary's `lost`.
lost() {
  tail -n 1 "$1.jsonl" | jq -c 'select(.type == "summary").lost'
}

# left FILE: those of the BPF objects in FILE (bpf_objects) that the kernel still knows.
left() {
  local kind
  for kind in prog map link; do
    bpftool -j "$kind" show | jq -r --arg kind "$kind" '.[] | "\($kind) \(.id)"'
  done | grep -Fx -f "$1"
}

# all_gone FILE: none is left. (As helpers.bash's gone, which asks for each by itself.)
all_gone() {
  [[ -s $1 ]] || fail "no BPF objects were seen" || return
  wait_until "BPF objects to go" not left "$1"
}

no_workers() {
  [[ -z $(workers) ]]
}

# target_is_well NAME: a target of busy ends when it is told to, with the right sums.
target_is_well() {
  tell "$1" stop
  local pid=${1}_pid
  ended_with 0 "${!pid}" "$1.err" || return
  grep -q '^ok' "$1.out" || fail "$1 computed something wrong: $(cat "$1.out")"
}
