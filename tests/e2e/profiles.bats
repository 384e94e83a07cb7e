#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# The daemon's profiles, with Gc.Memprof's meanings: who joins, what stop and discard
# do, what each profile has of its own. Needs root and BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers
load daemon_helpers

# Has every block that NAME has a record of, and that was allocated in Orders.cells, died?
cells_dead() {
  awk -F '\t' -v min="$2" '
    $1 == "stack" && /Orders\.cells/ { cells[$2] = 1 }
    /^alloc_/ && $10 in cells { life[$2] = $1; n++ }
    /^(promote|dealloc_|unknown)/ && $2 in life { life[$2] = life[$2] "," $1 }
    END {
      for (id in life)
        if (life[id] != "alloc_minor,promote,dealloc_major") { bad++; example = life[id] " (" id ")" }
      print n + 0, "cells,", bad + 0, "without the end that they had", example
      exit n < min || bad > 0
    }' "$1.tsv"
}

# ---- start -------------------------------------------------------------------------------

@test "start: one profile for each domain; a second one is refused as Gc.Memprof.start is" {
  start_daemon
  start_orders target 3
  start_profile first -p "$target_pid" --domain 0 --domain 1 -r 2^-4
  [[ $first_id == 1 ]]
  echo precious >other.jsonl
  refused "domain 1 of process $target_pid samples for profile 1 already" \
    start -p "$target_pid" --domain 1 --force -o other.jsonl
  refused "domain 0 of process $target_pid samples for profile 1 already" \
    start -p "$target_pid" --domain 2 --domain 0 -r 2^-9
  refused "domain [01] of process $target_pid samples for profile 1 already" start -p "$target_pid"
  [[ $(<other.jsonl) == precious ]]
  request '{"op":"start","pid":'"$target_pid"',"domains":[1]}' | jq -e '.ok == false and .code == "EBUSY"'
  # Another domain is free; then none is.
  start_profile second -p "$target_pid" --domain 2 -r 2^-9
  ((second_id > first_id))
  refused "domain [012] of process $target_pid samples for profile ($first_id|$second_id) already" start -p "$target_pid"
  # A domain that is not there.
  refused "no domain 7" start -p "$target_pid" --domain 7
  request '{"op":"start","pid":'"$target_pid"',"domains":[7]}' | jq -e '.ok == false and .code == "ENOENT"'
  # Another process is another matter.
  start_orders other 1
  start_profile third -p "$other_pid"
  refused "the domains of process $other_pid sample for profile $third_id already" \
    start -p "$other_pid" --domain 0
  end_profile first
  end_profile second
  end_profile third
  nothing_attached "$target_pid"
}

@test "two profiles at once: each has its domains, its rate, its depth, its output" {
  both() {
    n=$((${n:-0} + 1))
    local t=target$n a=first$n b=second$n d
    start_orders "$t" 3
    local pid=${t}_pid
    start_profile "$a" -p "${!pid}" --domain 0 --domain 1 -r 2^-4 --stack-depth 2 || return
    start_profile "$b" -p "${!pid}" --domain 2 -r 0.01 --stack-depth 4 || return
    for d in 0 1 2; do
      order "$t" "alloc $d 150000" && order "$t" "large $d 150000" && order "$t" "thread $d 30000" || return
    done
    order "$t" major && order "$t" drop && order "$t" major && end_profile "$a" && end_profile "$b" || return
    [[ $(domains_in "$a") == "0 1" && $(domains_in "$b") == 2 ]] ||
      fail "domains $(domains_in "$a") in the first, $(domains_in "$b") in the second" || return
    depth_is "$a" 2 && depth_is "$b" 4 || return
    local status=0
    "$LIB/stats" -v counters=1 -v rate=0.0625 "$a.tsv" /dev/null || status=$?
    ((status == 0)) || return "$status"
    "$LIB/stats" -v counters=1 "$b.tsv" /dev/null || return
    jq -e -n 'first(inputs) | (.rate / 0.01 - 1 | fabs) < 1e-6' "$b.jsonl"
  }
  # The deepest stack that it has, inlined frames apart.
  depth_is() {
    jq -e -n --argjson depth "$2" '[inputs | select(.type == "stack").frames
      | map(select(.inlined | not)) | length] | max == $depth' "$1.jsonl"
  }
  start_daemon
  statistically both
}

@test "domains and threads join the profile of the domain that made them" {
  start_daemon
  start_orders target 3
  start_profile first -p "$target_pid" --domain 1 -r 2^-4
  start_profile second -p "$target_pid" --domain 2 -r 2^-6
  order target "spawn 1"
  local a=$answer
  order target "spawn 2"
  local b=$answer
  order target "spawn 0"
  local c=$answer
  order target "spawn $a"
  local g=$answer
  local d
  for d in 0 1 2 "$a" "$b" "$c" "$g"; do order target "alloc $d 100000"; done
  order target "thread 1 30000"
  local t1=$answer
  order target "thread 2 30000"
  local t2=$answer
  order target "thread $g 30000"
  local tg=$answer
  order target "minor 0"
  # Whoever has joined samples already.
  refused "domain $a of process $target_pid samples for profile $first_id already" \
    start -p "$target_pid" --domain "$a"
  refused "domain $g .*for profile $first_id already" start -p "$target_pid" --domain "$g"
  refused "domain $b .*for profile $second_id already" start -p "$target_pid" --domain "$b"
  start_profile third -p "$target_pid" --domain "$c" --domain 0 -r 2^-5
  order target "alloc $c 100000"
  end_profile first
  end_profile second
  end_profile third
  [[ $(domains_in first) == "1 $a $g" ]]
  [[ $(domains_in second) == "2 $b" ]]
  [[ $(domains_in third) == *"$c" ]]
  # The records of what a thread allocated are that thread's, and its domain's.
  of_thread() {
    awk -F '\t' -v thread="$2" -v domain="$3" '
      $1 == "stack" && /Orders\.cells/ { cells[$2] = 1 }
      /^alloc_/ && $10 in cells && $5 == thread && $4 == domain { n++ }
      END { print n + 0, "by thread", thread; exit !n }' "$1.tsv"
  }
  of_thread first "$t1" 1
  of_thread second "$t2" 2
  of_thread first "$tg" "$g"
  not of_thread first "$t2" 2
  # From their first word on.
  statistically "$LIB/stats" -v counters=1 second.tsv /dev/null
}

@test "domains that were there already do not join, even if they begin only now" {
  start_daemon
  # 1 and 2 are children of 0, and have not done anything yet.
  start_orders target 3
  start_profile first -p "$target_pid" --domain 0 -r 2^-4
  start_profile second -p "$target_pid" --domain 1 -r 2^-4
  local d
  for d in 0 1 2; do order target "alloc $d 100000"; done
  order target "minor 0"
  end_profile first
  end_profile second
  [[ $(domains_in first) == 0 ]]
  [[ $(domains_in second) == 1 ]]
}

@test "a domain that has joined and done nothing yet samples already" {
  start_daemon
  start_orders target 2
  start_profile first -p "$target_pid" --domain 1
  order target "spawn 1"
  local child=$answer
  order target "spawn 0"
  local other=$answer
  refused "domain $child of process $target_pid samples for profile 1 already" \
    start -p "$target_pid" --domain "$child"
  order target "spawn $child"
  refused "domain $answer .*samples for profile 1 already" start -p "$target_pid" --domain "$answer"
  start_profile second -p "$target_pid" --domain "$other"
  end_profile first
  end_profile second
}

@test "without --domain all domains join that there are, and come" {
  start_daemon
  start_orders target 3
  start_profile run -p "$target_pid" -r 2^-5
  order target "spawn 2"
  local child=$answer
  local d
  for d in 0 1 2 "$child"; do order target "alloc $d 100000"; done
  order target "minor 0"
  status_of "$run_id" .listed | grep -qx null
  end_profile run
  [[ $(domains_in run) == "0 1 2 $child" ]]
  statistically "$LIB/stats" -v counters=1 run.tsv /dev/null
}

@test "sampling begins with the first word after a collection, and no block has samples of another" {
  start_daemon
  start_orders target 3
  start_profile run -p "$target_pid" -r 1
  local d
  for d in 0 1 2; do order target "alloc $d 12000"; done
  order target "large 1 12000"
  tell target stop
  ended_with 0 "$target_pid" target.err
  wait_until "the profile to finish" has_state "$run_id" finished
  end_profile run
  # Every word is a sample, from the base of each domain to its end.
  "$LIB/stats" -v counters=1 run.tsv /dev/null
}

@test "ids are each profile's own, and its number is in each record" {
  start_daemon
  start_orders target 2
  start_profile first -p "$target_pid" --domain 0 -r 2^-3
  start_profile second -p "$target_pid" --domain 1 -r 2^-3
  order target "alloc 0 30000"
  order target "alloc 1 30000"
  order target major
  end_profile first
  end_profile second
  local name id
  for name in first second; do
    id=${name}_id
    jq -e -n --argjson id "${!id}" '[inputs | select(has("profile")).profile] | unique == [$id]' "$name.jsonl"
    # From 1 on, without a hole.
    awk -F '\t' '/^alloc_/ { n++; if ($2 > max) max = $2 } END { print n, max; exit n != max }' "$name.tsv"
  done
}

# ---- stop and discard --------------------------------------------------------------------

# Do these probes, and no other tiers and stacks, have their semaphores up?
sampling_probes() {
  local up
  up=$(probes_up "$1" | grep -E '^(alloc|stack)_' | sort | paste -sd ' ') || true
  [[ $up == "$2" ]] || fail "up are: $up, expected: $2"
}

@test "stop: nothing is allocated any more, lives go on, the tiers go when nobody samples" {
  stopped() {
    n=$((${n:-0} + 1))
    local t=target$n a=first$n b=second$n
    start_orders "$t" 2
    local pid=${t}_pid
    start_profile "$a" -p "${!pid}" --domain 0 -r 2^-3 || return
    start_profile "$b" -p "${!pid}" --domain 1 -r 2^-5 --stack-depth 20 || return
    local first=${a}_id second=${b}_id
    sampling_probes "${!pid}" "alloc_3 alloc_5 stack_32 stack_64" || return
    order "$t" "alloc 0 100000" && order "$t" "large 0 100000" && order "$t" "keep 0 30000" || return
    order "$t" major || return
    "$HEAPSONDE" stop "${!first}" || return
    sampling_probes "${!pid}" "alloc_5 stack_32" || return
    probes_up "${!pid}" | grep -qx minor_end || fail "minor_end is down" || return
    [[ $(status_of "${!first}" '.state + ", " + .reason') == "stopped, interrupted" ]] || return
    refused "profile ${!first} is stopped already" stop "${!first}" || return
    request '{"op":"stop","profile":'"${!first}"'}' | jq -e '.code == "EALREADY"' || return
    # What comes now is of the past only.
    order "$t" "alloc 0 100000" && order "$t" "alloc 1 100000" || return
    order "$t" drop && order "$t" major && order "$t" major || return
    "$HEAPSONDE" stop "${!second}" || return
    sampling_probes "${!pid}" "" || return
    order "$t" "alloc 0 30000" && order "$t" "alloc 1 30000" || return
    end_profile "$a" && end_profile "$b" || return
    cells_dead "$a" 1000 || return
    # Its counters ended where it did, and went on.
    jq -e -n 'last(inputs).domains[] | select(.domain == 0)
      | .minor_words - .end_minor_words >= 95000 and .end_minor_words - .base_minor_words >= 120000' "$a.jsonl" || return
    local status=0
    "$LIB/stats" -v counters=1 "$a.tsv" /dev/null || status=$?
    untouched "${!pid}" || return
    return "$status"
  }
  start_daemon
  statistically stopped
}

@test "after a stop the domains are free for another profile, each with its own lives" {
  start_daemon
  start_orders target 2
  start_profile first -p "$target_pid" -r 2^-3
  order target "keep 1 30000"
  order target major
  "$HEAPSONDE" stop "$first_id"
  start_profile second -p "$target_pid" -r 2^-3
  order target "spawn 1"
  local child=$answer
  order target "keep 1 30000"
  order target "keep $child 30000"
  order target major
  order target drop
  order target major
  order target major
  end_profile second
  end_profile first
  cells_dead first 1000
  cells_dead second 2000
  [[ $(domains_in second) == *"$child" ]]
}

@test "discard: not of a profile that samples, nor twice; then nothing is left" {
  start_daemon
  start_orders target 2
  start_profile run -p "$target_pid" -r 2^-4
  order target "alloc 1 30000"
  refused "profile 1 is still sampling" discard 1
  request '{"op":"discard","profile":1}' | jq -e '.code == "EINPROGRESS"'
  order target "alloc 1 30000"
  "$HEAPSONDE" stop 1
  [[ $(tail -n 1 run.jsonl | jq -r .type) != summary ]]
  bpf_objects "$(workers)" >objects
  "$HEAPSONDE" discard 1
  # All of it when the command returns.
  untouched "$target_pid"
  in_order run
  gone objects
  [[ $(reason run) == interrupted ]]
  local command
  for command in discard stop follow 'rate 1'; do
    # shellcheck disable=SC2086  # two words
    case $command in
      rate*) refused "discarded already" rate 1 2^-9 ;;
      *) refused "discarded already" "$command" 1 ;;
    esac
  done
  request '{"op":"discard","profile":1}' | jq -e '.code == "EALREADY"'
  refused "no profile 2" discard 2
  request '{"op":"discard","profile":2}' | jq -e '.code == "ENOENT"'
  [[ $("$HEAPSONDE" status) == 'no profiles' ]]
  # A number is not used again.
  start_profile again -p "$target_pid"
  [[ $again_id == 2 ]]
  end_profile again
}

@test "a profile whose domains have all gone stops by itself; their blocks are followed" {
  start_daemon
  start_orders target 3
  start_profile run -p "$target_pid" --domain 1 --domain 2 -r 2^-3
  order target "keep 1 30000"
  order target "spawn 2"
  local child=$answer
  order target "end 1"
  order target "keep 2 30000"
  order target "end 2"
  # A child is left.
  order target "keep $child 30000"
  [[ $(status_of "$run_id" .state) == sampling ]]
  order target "end $child"
  wait_until "the profile to stop" has_state "$run_id" stopped
  [[ $(status_of "$run_id" .reason) == "domains gone" ]]
  refused "stopped already \(domains gone\)" stop "$run_id"
  sampling_probes "$target_pid" ""
  # A domain that is born now is not its: nobody of it was there to make it.
  order target "spawn 0"
  local late=$answer
  order target "alloc $late 30000"
  # Now the blocks die, under domains that never were sampled.
  order target drop
  order target major
  order target major
  end_profile run
  [[ $(domains_in run) == "1 2 $child" ]]
  [[ $(reason run) == "domains gone" ]]
  cells_dead run 3000
  awk -F '\t' -v child="$child" '
    $1 == "stack" && /Orders\.cells/ { cells[$2] = 1 }
    /^alloc_/ && $10 in cells { kept[$2] = 1 }
    $1 == "dealloc_major" && $2 in kept { n++; if ($4 == 1 || $4 == 2 || $4 == child) bad++ }
    END { print n, "died old,", bad + 0, "in domains that had gone"; exit !n || bad }' run.tsv
  statistically "$LIB/stats" -v counters=1 run.tsv /dev/null
}

@test "the end of a profile whose domains have gone, when the process ends" {
  start_daemon
  start_orders target 2
  start_profile run -p "$target_pid" --domain 1 -r 2^-3
  order target "keep 1 3000"
  order target "end 1"
  wait_until "the profile to stop" has_state "$run_id" stopped
  tell target stop
  ended_with 0 "$target_pid" target.err
  wait_until "the profile to finish" has_state "$run_id" finished
  refused "has (ended|finished)" stop "$run_id"
  end_profile run
  [[ $(reason run) == "domains gone" ]]
}

@test "what a thread has allocated is followed when it has gone" {
  threads() {
    n=$((${n:-0} + 1))
    local t=target$n r=run$n i tids=()
    start_orders "$t" 2
    local pid=${t}_pid
    start_profile "$r" -p "${!pid}" -r 2^-3 || return
    for i in 1 2 3 4 5; do
      order "$t" "thread $((i % 2)) 30000" || return
      tids+=("$answer")
      # OCaml's thread has ended; the system's takes a moment more.
      wait_until "the thread to go" test ! -e "/proc/${!pid}/task/$answer" || return
    done
    order "$t" major && order "$t" drop && order "$t" major && order "$t" major && end_profile "$r" || return
    cells_dead "$r" 5000 || return
    for i in "${tids[@]}"; do
      awk -F '\t' -v tid="$i" '$1 == "thread" && $2 == tid { told = 1 } /^alloc_/ && $5 == tid { n++ }
        END { exit !told || n < 500 }' "$r.tsv" || fail "thread $i" || return
    done
    "$LIB/stats" -v counters=2 "$r.tsv" /dev/null
  }
  start_daemon
  statistically threads
}
