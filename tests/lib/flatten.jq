# SPDX-License-Identifier: BSD-2-Clause
#
# The part of tests/lib/flatten that is jq: the records with something nested in
# them, one in, one line of tab-separated fields out. A record that lacks a field, or
# has one of the wrong kind, comes out as "bad" with the record itself.

def natural: type == "number" and . >= 0 and floor == .;
def positive: natural and . > 0;
def text: type == "string" and length > 0;
def rate: type == "number" and . > 0 and . <= 1;
def one_of(l): . as $x | any(l[]; . == $x);

def frame: type == "object" and has("function") and (.function | . == null or type == "string")
  and ((.file // null) | . == null or type == "string")
  and (if .file != null then (.line | natural) and (.start | natural) and (.end | natural)
       else true end);

def domain_counts: (.domain | natural) and (.state | one_of(["alive", "terminated"]))
  and all(.minor_words, .promoted_words, .major_words, .minor_collections,
    .major_collections, .base_minor_words, .base_promoted_words,
    .base_major_words, .samples_hit, .samples_kept, .records; natural);

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
       and (.state | one_of(["sampling", "stopped", "discarded"]))
    then [.type, .profile, .rate, .state] else null end
  elif .type == "domain_spawn" then
    if (.domain | natural) and (.parent | natural) and (.thread | positive)
       and (.time | positive)
    then [.type, .domain, .parent, .time] else null end
  elif .type == "domain_terminate" then
    if (.domain | natural) and (.time | positive)
       and all(.minor_words, .promoted_words, .major_words; natural)
    then [.type, .domain, .time] else null end
  elif .type == "thread" then [.type]
  elif .type == "loss" then
    if (.domain | natural) and (.cause | text) and (.count | positive)
       and (.time | positive)
    then [.type, .domain, .cause, .count] else null end
  elif .type == "summary" then
    if (.reason | text) and (.domains | type == "array") and all(.domains[]; domain_counts)
       and (.lost | type == "object") and all(.lost[]; natural)
    then [.type, .reason, ([.lost[]] | add // 0)] + [.domains[] |
      [.domain, .state, .minor_words, .promoted_words, .major_words,
       .base_minor_words, .base_promoted_words, .base_major_words,
       .samples_hit, .samples_kept, .records] | map(tostring) | join(":")]
    else null end
  else null end;

(if type != "object" then null else other end) // ["bad", tojson] | @tsv
