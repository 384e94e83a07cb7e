#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# Domains: which are sampled, what is told of their coming and going, and whose each
# record is. Needs root and BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

# bats file_tags=ocaml

load helpers

@test "each domain's spawn and end are told, once, with its exact counters" {
  record_run run -r 2^-7 -- spawner 1000000 --domains 100
  awk -F '\t' '
    NR == FNR { if ($1 == "domain") { want[$2] = 1; n++ } next }
    $1 == "domain_spawn" { spawn[$2]++; if ($3 != 0) bad = bad " " $2 " is not of domain 0;" }
    $1 == "domain_terminate" { end[$2]++; if (!spawn[$2]) bad = bad " " $2 " ends first;" }
    END {
      for (d in want)
        if (spawn[d] != 1 || end[d] != 1)
          bad = bad " " d ": " spawn[d] + 0 " spawned, " end[d] + 0 " ended;"
      if (n != 100 || bad) { print n " domains;" bad; exit 1 }
    }' run.out run.tsv
  # 1,000,000 words in all, 10,000 each, and what spawning itself takes.
  local ids
  ids=$(awk '$1 == "domain" { print $2 }' run.out | jq -s .)
  jq -e -n --argjson ids "$ids" '[inputs | select(.type == "domain_terminate" and ([.domain] | inside($ids)))]
    | length == 100 and all(.[]; .minor_words >= 9990 and .minor_words < 12000)' run.jsonl
}

@test "the summary's counters of all domains are those of Gc.quick_stat" {
  record_run run -r 2^-10 -- domains 300000 --domains 3
  "$LIB/counters" run.tsv run.out
}

@test "domains that are there when heapsonde attaches are all sampled" {
  start_target target busy --domains 4
  start_record run -p "$target_pid" -r 2^-14
  all_four() {
    local n
    n=$(grep '^{"type":"alloc_' run.jsonl | grep -o '"domain":[0-9]*' | sort -u | wc -l)
    ((n == 4))
  }
  wait_until "records of all four domains" all_four
  tell target stop
  ended_with 0 "$target_pid" target.err
  grep -q '^ok' target.out
  end_record run
}

@test "a domain that an attached program spawns is sampled from its first word" {
  start_target target busy
  start_record run -p "$target_pid" -r 2^-14
  tell target spawn
  said target '^spawned'
  local id
  id=$(awk '$1 == "spawned" { print $2 }' target.out)
  wait_until "records of domain $id" grep -Eq '^\{"type":"alloc_.*"domain":'"$id"'\b' run.jsonl
  tell target stop
  ended_with 0 "$target_pid" target.err
  end_record run
  jq -e -n --argjson id "$id" '[inputs | select(.type == "domain_spawn" and .domain == $id)]
    | length == 1 and .[0].parent == 0' run.jsonl
  # Its base is where it began, so that its samples stand for all of its words.
  statistically "$LIB/stats" -v counters=2 run.tsv /dev/null
}

@test "--domain samples that domain and no other" {
  start_target target busy --domains 3
  local id
  id=$(awk '$1 == "ready" { print $4; exit }' target.out)
  start_record run -p "$target_pid" -r 2^-14 --domain "$id"
  wait_until "some records" grep -q '^{"type":"alloc_' run.jsonl
  tell target stop
  ended_with 0 "$target_pid" target.err
  end_record run
  awk -F '\t' -v id="$id" '/^alloc_/ { n++; if ($4 != id) bad++ }
    END { print n + 0, "allocs,", bad + 0, "of other domains"; exit !n || bad }' run.tsv
}

@test "--domain twice samples both, and what they spawn, but not the third" {
  start_target target busy --domains 3
  local ids
  read -r -a ids < <(awk '$1 == "ready" { print $3, $4, $5; exit }' target.out)
  start_record run -p "$target_pid" -r 2^-14 --domain "${ids[0]}" --domain "${ids[1]}"
  # Spawned by a thread of domain 0, which samples: it joins.
  tell target spawn
  said target '^spawned'
  local new
  new=$(awk '$1 == "spawned" { print $2 }' target.out)
  local id
  for id in "${ids[0]}" "${ids[1]}" "$new"; do
    wait_until "records of domain $id" grep -Eq '^\{"type":"alloc_.*"domain":'"$id"'\b' run.jsonl
  done
  tell target stop
  ended_with 0 "$target_pid" target.err
  end_record run
  awk -F '\t' -v other="${ids[2]}" '/^alloc_/ && $4 == other { bad++ } END { exit bad > 0 }' run.tsv
}

@test "a record names the thread that allocated" {
  record_run run -r 2^-6 -- threads 50000
  # Each expectation is for one thread of one domain.
  statistically "$LIB/stats" run.tsv run.out
  jq -e -n '[inputs | select(.type | startswith("alloc_")) | .thread] | unique | length >= 5' run.jsonl
}

@test "domains that are too many to be listed are summed up, and what was not sampled is not in the span" {
  # Domain 0 spawns 2,200; domain 1 and those that it spawns are sampled.
  start_target target soak --wait --domains 2200 --pause 500
  start_record run -p "$target_pid" -r 2^-7 --domain 1
  tell target go
  said target '^primed'
  tell target stop
  said target '^done'
  tell target end
  ended_with 0 "$target_pid" target.err
  end_record run
  "$LIB/counters" run.tsv target.out
  jq -e -n 'first(inputs | select(.type == "summary")).folded | .count >= 1000
    and .end_minor_collections < .minor_collections and .end_minor_words < .minor_words' run.jsonl
  statistically "$LIB/stats" -v counters=1 run.tsv /dev/null
}
