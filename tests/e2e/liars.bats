#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# Targets that lie: tests/programs/liar fires the probes with whatever it likes, and one domain
# of it tells the truth in between. What is a lie is counted, what is true is all there, nobody
# crashes or waits, memory is bounded, and the liar's own memory is as it left it. Then what
# honest programs may do all the same: a million frames, binaries that change. Needs root and BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

# bats file_tags=untrusted

load helpers
load daemon_helpers

# Bytes of its own that no heapsonde may take here: it would fail for want of memory. The bound
# that holds always is in docs/DESIGN.md, 4.10.
MEMORY_MAX=$((512 << 20))
# The shadow of a build with sanitizers counts as data.
[[ -z ${HEAPSONDE_REPORTS-} ]] || MEMORY_MAX=$((1 << 50))

start_liar() {
  n_answers=0
  start_target liar liar
}

# lie COMMAND…: the liar does it (tests/programs/liar.c), and is waited for.
lie() {
  n_answers=$((n_answers + 1))
  tell liar "$*"
  wait_until "the liar to have done $*" answered
}

answered() {
  has_ended "$liar_pid" && fail "the liar has ended"
  (($(grep -c '^done ' liar.out) >= n_answers))
}

# record_liar NAME OPTION…: a recording whose memory is bounded.
record_liar() {
  local pid=${1}_pid
  start_record "$1" -p "$liar_pid" --ring-size 32M "${@:2}" &&
    prlimit --pid "${!pid}" --data=$MEMORY_MAX
}

# end_liar: it ends as if nobody had ever looked at it.
end_liar() {
  [[ $("$HEAPSONDE" residue -p "$liar_pid") == *"nothing left"* ]] || fail "residue" || return
  tell liar stop
  ended_with 0 "$liar_pid" liar.err && grep -qx intact liar.out
}

# end_lies NAME [OPTION…]: the recording is interrupted and ends well; its records are in order.
end_lies() {
  local pid=${1}_pid
  kill -INT "${!pid}"
  ended_with 0 "${!pid}" "$1.err" && in_order "$1" -v allow_loss=1 "${@:2}"
}

# honest_in NAME: all that the honest domain has told since this was last asked is there.
honest_in() {
  lie told 0
  awk -F '\t' -v told="$(grep '^honest' liar.out | tail -n 1)" '
    $1 ~ /^alloc/ && $4 == 1 || $1 ~ /^(promote|dealloc|unknown)/ && $4 == 1 { n[$1]++ }
    END {
      is = "honest " n["alloc_minor"] + 0 " " n["promote"] + 0 " " n["dealloc_minor"] + 0 " " \
        n["dealloc_major"] + 0
      if (is == told && !n["unknown"] && !n["alloc_major"])
        exit 0
      print "recorded: " is ", told: " told
      exit 1
    }' "$1.tsv"
}

# lost NAME CAUSE: so many, by the summary.
lost() {
  tail -n 1 "$1.jsonl" | jq --arg cause "$2" '.lost[$cause] // 0'
}

# causes NAME: of all losses.
causes() {
  tail -n 1 "$1.jsonl" | jq -r '.lost | keys | join(" ")'
}

# lies_told: that are seen through: samples, GC events; as of the last `told`.
lies_told() {
  grep '^lies' liar.out | tail -n 1
}

@test "what can be nothing but a lie is counted, each, whatever the tier" {
  local tier name
  start_liar
  for tier in 0 9 24; do
    name=tier$tier
    record_liar "$name" -r "2^-$tier"
    lie honest 4000
    lie plain 1
    lie honest 4000
    end_lies "$name"
    honest_in "$name"
    [[ $(causes "$name") == "gc_read_failed read_failed" ]] || fail "lost: $(causes "$name")"
    [[ $(lies_told) == "lies $(lost "$name" read_failed) $(lost "$name" gc_read_failed)" ]] ||
      fail "told $(lies_told), seen $(lost "$name" read_failed) and $(lost "$name" gc_read_failed)"
    # The liar's other domain is there, with what is true of it: nothing.
    [[ $(awk -F '\t' '$4 == 2 && /^alloc/' "$name.tsv") == "" ]]
  done
  end_liar
}

@test "100,000 random firings: what is true among them is all there" {
  start_liar
  record_liar all -r 1
  lie honest 4000
  lie random 100000
  lie honest 4000
  end_lies all
  honest_in all
  (($(lost all malformed) == 0 && $(lost all read_failed) > 10000))
  end_liar
}

@test "random firings, while several look on in all ways that there are" {
  start_liar
  # A rate at which samples are thinned, and stacks of the greatest depth.
  record_liar some -r 0.7 --stack-depth 1024
  "$HEAPSONDE" record -p "$liar_pid" -r 1 --ring-size 32M -o raw.hsd 2>raw.err &
  local raw=$! stat top
  "$HEAPSONDE" stat -p "$liar_pid" 0.1 1000000 >stat.out 2>stat.err &
  stat=$!
  "$HEAPSONDE" top -p "$liar_pid" -r 1 --plain -n 100000 --delay 0.2 >top.out 2>top.err &
  top=$!
  children+=("$raw" "$stat" "$top")
  prlimit --pid "$raw" --data=$MEMORY_MAX
  prlimit --pid "$top" --data=$MEMORY_MAX
  wait_until "stat" grep -q alive stat.out
  wait_until "the capture" test -s raw.hsd
  wait_until "top" test -s top.out
  lie random 10000
  end_lies some
  (($(lost some malformed) == 0))
  kill -INT "$raw" "$stat" "$top"
  ended_with 0 "$raw" raw.err
  ended_with 0 "$stat" stat.err
  ended_with 0 "$top" top.err
  # Words since the line before are never less than none.
  awk '$1 ~ /^[0-9]+$/ { for (i = 3; i <= NF; i++) if ($i !~ /^[0-9]+$/ || $i > 2^63) { print; exit 1 } }' stat.out
  # What can be made of it is made of it.
  "$HEAPSONDE" report raw.hsd --json | jq -e '.total.allocated.words > 0' >/dev/null
  "$HEAPSONDE" leaks raw.hsd >/dev/null
  "$HEAPSONDE" timeline raw.hsd >/dev/null
  local format
  for format in ctf pprof folded speedscope html jsonl; do
    "$HEAPSONDE" export raw.hsd --to "$format" -o "raw.$format"
  done
  end_liar
}

@test "stacks that are others by the same name, the same by other names, and deeper than memory" {
  start_liar
  # Room for all 4,700 stacks, 8 KiB each: who is honest must find some too, however slow the reader is.
  record_liar all -r 1 --stack-depth 1024 --max-stacks 1000 --ring-size 128M
  lie honest 1000
  # Those first, while the ring buffer has room: what finds none sends no stack.
  lie stacks 300 depth
  lie stacks 300 same-hash
  lie stacks 4000 same-stack
  lie stacks 100 fresh
  lie honest 1000
  end_lies all
  honest_in all
  # Only those that end behind the end of memory are missing, and each is counted.
  (($(lost all stack_read_failed) == 300)) || fail "seen $(lost all stack_read_failed)"
  (($(awk -F '\t' '/^alloc/ && $4 == 2' all.tsv | wc -l) + $(lost all ring_full) == 4700))
  end_liar
}

@test "frame tables that lead nowhere, to themselves, to gigabytes of text" {
  start_liar
  record_liar all -r 1 --stack-depth 1024
  "$HEAPSONDE" record -p "$liar_pid" -r 1 --stack-depth 1024 --top 10 -o raw.hsd 2>raw.err &
  local raw=$!
  children+=("$raw")
  prlimit --pid "$raw" --data=$MEMORY_MAX
  wait_until "the capture" test -s raw.hsd
  lie honest 1000
  lie tables 50
  lie honest 1000
  end_lies all
  honest_in all
  kill -INT "$raw"
  ended_with 0 "$raw" raw.err
  # No name is longer than 1023 bytes, of which each may have become a replacement character.
  jq -es 'map(select(.type == "stack").frames[] | .function // "", .file // "" | length) | max <= 1024' all.jsonl
  "$HEAPSONDE" export raw.hsd --to jsonl -o raw.jsonl
  (($(grep -c '"alloc_m' raw.jsonl) == $(grep -c '"alloc_m' all.jsonl)))
  "$HEAPSONDE" report raw.hsd >/dev/null
  end_liar
}

@test "headers that change while they are read, and places that are all one" {
  start_liar
  record_liar all -r 1 --max-blocks 20000
  lie honest 4000
  lie headers 5000
  lie places 500
  lie honest 4000
  end_lies all
  honest_in all
  (($(lost all malformed) == 0 && $(lost all fate_unknown) > 0))
  end_liar
}

@test "threads that all run for the same domain: each sample is told or counted, lists stay lists" {
  local fired=$((4 * 2000 * 32)) told
  start_liar
  record_liar all -r 1 --max-blocks 50000
  lie honest 1000
  lie threads 2000
  lie honest 1000
  end_lies all
  honest_in all
  told=$(($(awk -F '\t' '/^alloc/ && $4 >= 1000' all.tsv | wc -l) + $(lost all ring_full)))
  # Those that were turned away are counted too.
  ((told + $(lost all read_failed) == fired)) ||
    fail "$fired fired, $told told, $(lost all read_failed) turned away"
  end_liar
}

@test "a million domains: what finds no room is counted, one that comes back is another one" {
  start_liar
  record_liar few -r 1
  lie domains 2000 few
  kill -INT "$few_pid"
  ended_with 0 "$few_pid" few.err
  # In no order that can be checked, but each record is well-formed, and no loss is below none.
  "$LIB/flatten" few.jsonl >few.tsv
  not grep -q ^bad few.tsv
  record_liar all -r 1
  lie honest 1000
  lie domains 5000 many
  lie domains 5000 descending
  lie honest 1000
  lie domains 1000000 spawned
  lie honest 1000
  kill -INT "$all_pid"
  ended_with 0 "$all_pid" all.err
  "$LIB/flatten" all.jsonl >all.tsv
  not grep -q ^bad all.tsv
  honest_in all
  # One sample each.
  (($(awk -F '\t' '/^alloc/ && $4 > 1' all.tsv | wc -l) + $(lost all domains_full_samples) + $(lost all ring_full) == 10000)) ||
    fail "$(lost all domains_full_samples) of $(causes all)"
  # Each of these fires once, and so many at least have found no room.
  (($(lost all domains_full) > 1000000 - 8192))
  tail -n 1 all.jsonl | jq -e '.domains | length > 1000 and length < 16384'
  end_liar
}

@test "a registry that says anything: an answer or one line, and soon" {
  local kind command status
  start_liar
  for kind in count self same many kernel version text nobody counts honest; do
    lie registry 0 "$kind"
    for command in "list -q" "record -q --duration 0.1 -o /dev/null -p $liar_pid" \
      "record -q --domain 1 --duration 0.1 -o /dev/null -p $liar_pid" "stat -q -p $liar_pid 0.1 1" \
      "residue -q -p $liar_pid"; do
      status=0
      # shellcheck disable=SC2086  # words
      timeout "$DEADLINE" prlimit --data=$MEMORY_MAX "$HEAPSONDE" $command >out 2>err || status=$?
      ((status == 0 || status == 1)) || fail "$kind: $command: exit $status: $(<err)"
      ((status == (($(wc -l <err)) ? 1 : 0))) || fail "$kind: $command: exit $status: $(<err)"
      (($(wc -l <err) <= 1)) || fail "$kind: $command: $(<err)"
      not grep -q '[[:cntrl:]]' err
    done
  done
  # While it changes.
  for kind in self honest count honest many honest kernel honest; do
    tell liar "registry 0 $kind"
    "$HEAPSONDE" list >out || fail "list, $kind"
    n_answers=$((n_answers + 1))
  done
  wait_until "the liar" answered
  end_liar
}

@test "semaphores that the target writes: detaching ends, and residue says what is left" {
  local value pid
  # With 0, and with what is below it to the kernel, it takes no count back, and leaves its
  # breakpoints where they are. Only the target can bring that about, and it harms nobody else.
  for value in 7 0 65535; do
    start_liar
    record_liar "up$value" -r 1
    pid=up${value}_pid
    bpf_objects "${!pid}" >objects
    lie semaphores "$value"
    lie honest 1000
    kill -INT "${!pid}"
    ended_with 0 "${!pid}" "up$value.err"
    gone objects
    local status=0
    "$HEAPSONDE" residue --wait 1 -p "$liar_pid" >residue.out 2>residue.err || status=$?
    ((status == 1)) || fail "residue: exit $status"
    grep -q 'nothing of a heapsonde: .* if there is none, restart the process' residue.err || fail "$(cat residue.err)"
    lie honest 1000
    if ((value == 7)); then
      grep -q 'probe alloc_0: its semaphore is 6$' residue.out || fail "$(cat residue.out)"
      # What it has counted itself it can take back.
      lie semaphores 0
      record_liar again -r 1
      lie honest 1000
      end_lies again
      end_liar
    else
      grep -q "probe alloc_0: its semaphore is $value, its code has " residue.out || fail "$(cat residue.out)"
      tell liar stop
      ended_with 0 "$liar_pid" liar.err
      grep -qx intact liar.out
    fi
    rm liar.in
  done
}

@test "a map of 65,000 lines" {
  start_liar
  lie mappings 65000
  (($(wc -l <"/proc/$liar_pid/maps") > 60000))
  record_liar all -r 1
  lie honest 1000
  # Frames in the last of them, and in none.
  lie stacks 100 fresh
  lie honest 1000
  end_lies all
  honest_in all
  [[ $(causes all) == "" ]] || fail "lost: $(causes all)"
  end_liar
}

@test "the daemon: a liar beside an honest program, of which nothing is lost" {
  start_daemon
  start_liar
  # So few that no queue runs over, however slow the disk.
  start_target honest lists 5000 --wait
  start_profile liar_profile -p "$liar_pid" -r 1 --stack-depth 1024
  start_profile honest_profile -p "$honest_pid" -r 1
  local worker
  for worker in $(workers); do
    prlimit --pid "$worker" --data=$((2 * MEMORY_MAX))
  done
  lie honest 1000
  tell honest go
  lie random 10000
  lie stacks 100 fresh
  lie tables 20
  lie headers 1000
  lie domains 1000 many
  "$HEAPSONDE" status >status.out
  "$HEAPSONDE" status --json "$liar_profile_id" | jq -e '.records > 1000'
  said honest ^done
  tell honest go
  ended_with 0 "$honest_pid" honest.err
  wait_until "the profile to end" has_state "$honest_profile_id" finished
  "$HEAPSONDE" discard "$honest_profile_id"
  in_order honest_profile
  "$HEAPSONDE" stop "$liar_profile_id"
  "$HEAPSONDE" discard "$liar_profile_id"
  "$LIB/flatten" liar_profile.jsonl >liar_profile.tsv
  not grep -q ^bad liar_profile.tsv
  end_liar
  stop_daemon
}

@test "a million frames, on the main stack, in a fiber, in a domain" {
  local depth
  for depth in 1024 64; do
    record_run deep -r 1 --stack-depth "$depth" -- deep 9000 --frames 1000000
    (($(awk -F '\t' '$1 == "stack" && $3 ~ /:Deep\.bottom$/ { bottom[$2] = 1 }
      /^alloc/ && $10 in bottom { n++ }
      END { print n }' deep.tsv) == $(awk -F '\t' '$1 == "expect" { print $10 }' deep.out)))
    jq -es --argjson depth "$depth" '[.[] | select(.type == "stack" and .frames[0].function == "Deep.bottom")]
      | length >= 1 and all(.[].frames; length == $depth and all(.[1:][]; .function == "Deep.deep"))' deep.jsonl
  done
}

@test "executables and libraries that are replaced, emptied and taken away while they are read" {
  local how
  # What the liar is does not change; what its path leads to does.
  for how in renamed unlinked; do
    cp "$TESTS_BUILD/liar" program
    n_answers=0
    start_target liar "$PWD/program"
    record_liar "$how" -r 1
    if [[ $how == renamed ]]; then
      cp "$TESTS_BUILD/stock/plain.native" other
      mv other program
    else
      rm program
    fi
    lie honest 1000
    end_lies "$how"
    honest_in "$how"
    record_liar "again_$how" -r 1
    lie honest 1000
    end_lies "again_$how"
    honest_in "again_$how"
    end_liar
    rm -f liar.in program
  done
  # A library that is emptied while its names are looked up, by a program that never comes back
  # to it (and which that would kill, heapsonde or not).
  cp "$TESTS_BUILD/loader" "$TESTS_BUILD/plugged.cmxs" .
  start_target loader "$PWD/loader" 4000 --wait
  start_record emptied -p "$loader_pid" -r 1
  tell loader go
  said loader ^done
  : >plugged.cmxs
  kill -INT "$emptied_pid"
  ended_with 0 "$emptied_pid" emptied.err
  in_order emptied
  (($(count emptied alloc_minor) > 900))
  start_record after -p "$loader_pid" -r 1
  kill -INT "$after_pid"
  ended_with 0 "$after_pid" after.err
}
