# SPDX-License-Identifier: BSD-2-Clause
#
# The part of tests/lib/flatten that is jq: the records with something nested in
# them, one in, one line of tab-separated fields out. A record that lacks a field, or
# has one of the wrong kind, comes out as "bad" with the record itself.

def natural: type == "number" and . >= 0 and floor == .;
# What only recordings of before may lack.
def natural_if_there: . == null or natural;
def positive: natural and . > 0;
def text: type == "string" and length > 0;
def rate: type == "number" and . > 0 and . <= 1;
def one_of(l): . as $x | any(l[]; . == $x);

def frame: type == "object" and has("function") and (.function | . == null or type == "string")
  and ((.file // null) | . == null or type == "string")
  and (if .file != null then (.line | natural) and (.start | natural) and (.end | natural)
       else true end);

def counts(prefix): . as $x | all("minor_words", "promoted_words", "major_words", "minor_collections",
    "major_collections"; $x[prefix + .] | natural);

def domain_counts: (.domain | natural) and (.state | one_of(["alive", "terminated"]))
  and counts("") and counts("base_") and counts("end_")
  and all(.samples_hit, .samples_kept, .records, .tracked; natural)
  and all(.samples_left_out, .samples_lost; natural_if_there)
  and (.sampled | type == "boolean") and (if .sampled then (.rate | rate) else .rate == null end);

# The sums over domains that are not listed, in the place of one of them.
def folded_counts: .count >= 1 and counts("") and counts("base_") and counts("end_")
  and all(.samples_hit, .samples_kept, .records; natural);

def cause: one_of(["ring_full", "stack_ring_full", "blocks_full", "read_failed", "fate_unknown",
  "events_dropped", "domains_full", "domains_full_samples", "stack_read_failed", "gc_read_failed",
  "output_full"]);
def cause_of_summary: cause or one_of(["missed_hits", "malformed", "stack_unknown",
  "output_full_samples", "output_full_lives"]);


def reason: one_of(["interrupted", "duration", "domains gone", "target exited",
  "target executed another program", "error"]);

def other:
  if .type == "stack" then
    if (.id | positive) and (.frames | type == "array" and length > 0)
       and all(.frames[]; frame)
    then [.type, .id] + [.frames[] | "\(.line // 0):\(.function // "")"]
    else null end
  elif .type == "header" then
    if (.version | . != null) and (.heapsonde | text) and (.kernel | type == "string")
       and (.pid | positive) and (.command | text) and (.exe | text)
       and (.ocaml | text) and (.rate | rate) and (.stack_depth | natural)
       and (.tier | natural) and .clock == "CLOCK_MONOTONIC" and (.time | positive)
       and (.wall_offset | natural) and has("track")
    then [.type, .pid, .rate, .stack_depth, .tier] else null end
  elif .type == "profile" then
    if (.profile | positive) and (.rate | rate) and (.time | positive)
       and (if .state == "stopped" then .reason | reason else .state == "sampling" and has("reason") == false end)
       and (if has("domains") then .domains | type == "array" and length > 0 and all(.[]; natural)
            else true end)
    then [.type, .profile, .rate, .state, .reason // "-", (.domains // ["-"] | map(tostring) | join(",")), .time]
    else null end
  elif .type == "rate" then
    if (.profile | positive) and (.domain | natural) and (.thread | positive) and (.time | positive)
       and (.rate | rate) and counts("")
    then [.type, .profile, .domain, .thread, .time, .rate, .minor_words, .promoted_words, .major_words]
    else null end
  elif .type == "domain_spawn" then
    if (.domain | natural) and (.parent | natural) and (.thread | positive)
       and (.time | positive)
    then [.type, .domain, .parent, .time, .thread] else null end
  elif .type == "domain_terminate" then
    if (.domain | natural) and (.thread | positive) and (.time | positive) and counts("")
    then [.type, .domain, .time, .thread, .minor_words, .promoted_words, .major_words] else null end
  elif .type == "major_cycle" then
    if (.domain | natural) and (.thread | positive) and (.time | positive) and counts("")
       and (.major_collections | positive)
    then [.type, .domain, .thread, .time, .minor_words, .promoted_words, .major_words,
      .major_collections]
    else null end
  elif .type == "counters" then
    if (.domain | natural) and (.time | positive) and counts("") and (.samples_kept | natural)
       and (.tracked | natural)
    then [.type, .domain, .time, .minor_words, .promoted_words, .major_words,
      .major_collections, .samples_kept, .tracked]
    else null end
  elif .type == "thread" then
    if (.thread | positive) and (.domain | natural) and (.time | positive)
    then [.type, .thread, .domain, .time] else null end
  elif .type == "loss" then
    if has("domain") and (.domain | . == null or natural) and (.cause | cause)
       and (.domain == null or .cause != "output_full") and (.count | positive) and (.time | positive)
       and (.since | natural_if_there) and (.since // 0) <= .time
       and (if .cause == "output_full" then all(.samples, .lives; natural_if_there)
            else .samples == null and .lives == null end)
    then [.type, .domain // "-", .cause, .count, .samples // "-", .lives // "-"] else null end
  elif .type == "summary" then
    if (.reason | reason) and (.domains | type == "array") and all(.domains[]; domain_counts)
       and (.folded == null or (.folded | folded_counts))
       and (.lost | type == "object") and all(.lost[]; positive)
       and all(.lost | keys[]; cause_of_summary)
    then [.type, .reason, ([.lost[]] | add // 0)] + [((.folded // empty) + {domain: "folded", state: "terminated", sampled: true, rate: null}), .domains[] |
      [.domain, .state, .minor_words, .promoted_words, .major_words,
       .base_minor_words, .base_promoted_words, .base_major_words,
       .samples_hit, .samples_kept, .records,
       .end_minor_words, .end_promoted_words, .end_major_words, .sampled, .rate // "-",
       .major_collections, .tracked, .samples_left_out // "-", .samples_lost // "-"]
      | map(tostring) | join(":")]
    else null end
  else null end;

(if type != "object" then null else other end) // ["bad", tojson] | @tsv
