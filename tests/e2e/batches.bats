# SPDX-License-Identifier: BSD-2-Clause
#
# Samples are handed over in batches: when, whose they are, of what time, and what is
# missing when a program is killed.

# start_target and start_record set NAME_pid.
# shellcheck disable=SC2154

load helpers

# A batch less one: what a domain may have waiting.
WAITING_MAX=31

# blocks NAME SIZE [MEMBER]: of the records of blocks of that size so far, in their order.
# What a recording is writing may end in half a line.
blocks() {
  sed '/}$/!d' "$1.jsonl" |
    jq --argjson size "$2" --arg member "${3-id}" \
      'select(.type == "alloc_minor" and .size == $size)[$member]'
}

has_blocks() {
  (($(blocks "$1" "$2" | wc -l) == $3))
}

@test "what is allocated before a program waits is told at once, each block with its time" {
  start_target batches batches
  start_record run -r 1 -p "$batches_pid"
  tell batches 'some 20'
  said batches '^some 20$'
  # Nothing is collected, and nothing more allocated.
  wait_until "20 records" has_blocks run 7 20
  paste <(awk '$1 == "before" { print $2 }' batches.out) <(blocks run 7 time) |
    awk -v later="$(awk '$1 == "later" { print $2 }' batches.out)" '
      NF != 2 || $2 < $1 || $2 < last || $2 > later { print "block " NR ": " $0; bad = 1 }
      { last = $2 }
      END { exit bad || NR != 20 }'
  end_record run INT
}

@test "a program that is killed: what may be missing is said, and no more is" {
  local n
  start_target batches batches
  start_record run -r 1 -p "$batches_pid"
  tell batches 'spin 1000'
  said batches '^spinning 1000$'
  kill -KILL "$batches_pid"
  end_record run
  n=$(blocks run 7 | wc -l)
  echo "$n of 1000 blocks"
  ((n <= 1000 && n >= 1000 - WAITING_MAX))
  jq -e --argjson max $WAITING_MAX 'select(.type == "summary").domains | [.[].waiting_max] == [$max]' run.jsonl
  grep -qx "heapsonde: it ended in the middle of its work: up to $WAITING_MAX sampled blocks that it had not handed over yet are missing" run.err
}

@test "a program that is killed while it waits: nothing is missing" {
  start_target batches batches
  start_record run -r 1 -p "$batches_pid"
  tell batches 'some 1000'
  said batches '^some 1000$'
  kill -KILL "$batches_pid"
  end_record run
  (($(blocks run 7 | wc -l) == 1000))
}

@test "a program that exits: nothing is missing, and nothing is said" {
  start_target batches batches
  start_record run -r 1 -p "$batches_pid"
  tell batches 'some 10'
  tell batches stop
  end_record run
  (($(blocks run 7 | wc -l) == 10))
  jq -e 'select(.type == "summary").domains | [.[].waiting_max] == [0]' run.jsonl
  not grep -q 'are missing' run.err
}

@test "threads that take turns without waiting: each block has the thread that allocated it" {
  local seven nine
  start_target batches batches
  start_record run -r 1 -p "$batches_pid"
  tell batches 'turns 20000'
  said batches '^turns '
  tell batches stop
  end_record run
  read -r _ seven nine < <(grep '^turns ' batches.out)
  [[ $(blocks run 7 thread | sort | uniq -c | xargs) == "20000 $seven" ]]
  [[ $(blocks run 9 thread | sort | uniq -c | xargs) == "20000 $nine" ]]
}

@test "a program at work is trapped once for many samples" {
  local traps n
  start_target lists lists 200000 --wait
  start_record run -r 1 --ring-size 64M -p "$lists_pid"
  start_target stats bpf_stats "$run_pid"
  tell lists go
  said lists ^done
  tell stats read
  said stats hs_alloc=
  tell lists go
  end_record run
  traps=$(grep -o 'hs_alloc=[0-9/]*' stats.out | cut -d/ -f2)
  n=$(awk -F '\t' '/^alloc_/ { n++ } END { print n }' run.tsv)
  echo "$n records, $traps traps"
  # One for 32, but where the scheduler has interrupted it.
  ((traps >= n / 33 && traps < n / 8))
}
