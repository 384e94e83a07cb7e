#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# The daemon's protocol (docs/protocol.md): requests that do not keep to it. Each gets a
# clear answer, and nobody else notices. Needs root and BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

# bats file_tags=untrusted

load helpers
load daemon_helpers
load protocol_helpers

@test "what is not a JSON object" {
  start_daemon
  local text
  for text in '' ' ' '{' '}' '{"op"}' '{"op":}' '{"op":"status"' 'status' '"status"' '7' 'null' \
    'true' '[]' '[{"op":"status"}]' '{"op":"status"}{"op":"status"}' '{"op":"status"} x' \
    "{'op':'status'}" '{"op":"status",}' '{"op":"status","op":"status"}' '{"op":"sta\u0000tus"}' \
    '{"op":"status","profile":1e999}' '{"op":"status","profile":99999999999999999999999}' \
    '{"op":"status","profile":NaN}' $'{"op":"sta\tus"}' '{"op":"\ud800"}'; do
    bad 'JSON|bad request' "$text"
  done
  # Neither text nor whole: bytes that are no UTF-8, and zeros.
  printf '{"op":"\xff\xfe"}\n' | send >answer
  rejected EBADMSG JSON
  printf '{"op":"status"\0}\n' | send >answer
  rejected EBADMSG JSON
  head -c 4096 /dev/urandom | tr -d '\n' >noise
  { cat noise && echo; } | send >answer
  rejected EBADMSG JSON
  serves
}

@test "unknown requests and members are named" {
  start_daemon
  bad op '{}'
  bad op '{"profile":1}'
  bad op '{"op":null}'
  bad op '{"op":7}'
  bad op '{"op":["status"]}'
  bad op '{"op":"STATUS"}'
  bad op '{"op":"status "}'
  bad op '{"op":"no-such-request"}'
  bad 'verbose' '{"op":"status","verbose":true}'
  bad 'rate' '{"op":"stop","profile":1,"rate":0.5}'
  bad 'pid' '{"op":"follow","profile":1,"pid":1}'
  bad 'depth' '{"op":"start","pid":1,"depth":3}'
  bad 'member' '{"op":"status","":1}'
  # What the supervisor says to its workers is not for clients to say.
  bad 'uid' '{"op":"status","uid":0}'
  bad 'uid|gid' '{"op":"stop","profile":1,"uid":0,"gid":0}'
  bad 'profile' '{"op":"start","pid":1,"profile":7}'
  bad 'uid|gid|profile' '{"op":"start","pid":1,"uid":0,"gid":0,"profile":7}'
  # A name that is no fit text for a line.
  bad . '{"op":"status","a\nb\u001b[31m":1}'
  bad . "{\"op\":\"status\",\"$(printf '%060000d' 0)\":1}"
  serves
}

@test "members that are missing, of a wrong type, out of range: each is named" {
  start_daemon
  local op value
  for op in stop discard follow; do
    bad profile '{"op":"'"$op"'"}'
    for value in null true '"1"' 1.0 1.5 '[1]' '{}' 0 -1 4294967296 9223372036854775807; do
      bad profile '{"op":"'"$op"'","profile":'"$value"'}'
    done
  done
  bad 'profile|rate' '{"op":"rate"}'
  bad profile '{"op":"rate","rate":0.5}'
  bad rate '{"op":"rate","profile":1}'
  bad profile '{"op":"status","profile":"1"}'
  bad pid '{"op":"start"}'
  for value in null false '"1"' 1.0 '[1]' 0 -1 2147483648; do
    bad pid '{"op":"start","pid":'"$value"'}'
  done
  serves
}

@test "each member of a start: wrong types and values out of range" {
  start_daemon
  local name value
  # A bystander that could be profiled, so that it is the member that is refused.
  start_target target busy
  while read -r name value; do
    bad "$name" '{"op":"start","pid":'"$target_pid"',"'"$name"'":'"$value"'}'
  done <<'MEMBERS'
domains null
domains 0
domains []
domains {}
domains "0"
domains [-1]
domains [0.5]
domains ["0"]
domains [null]
domains [[0]]
domains [0,4294967296]
rate null
rate "0.5"
rate [0.5]
rate 0
rate 0.0
rate -0.5
rate 1.0000001
rate 2
rate 1e-300
rate true
stack_depth null
stack_depth -1
stack_depth 1025
stack_depth 64.0
stack_depth "64"
track null
track ""
track "everything"
track ["all"]
track 7
format null
format "xml"
format "JSONL"
format 1
ring_bytes null
ring_bytes 0
ring_bytes 4095
ring_bytes 2048
ring_bytes 4097
ring_bytes 3000000
ring_bytes -4096
ring_bytes 8589934592
ring_bytes "4096"
max_blocks null
max_blocks 0
max_blocks -1
max_blocks 1.5
max_blocks 4294967296
max_stacks null
max_stacks 0
max_stacks -1
max_stacks "1"
max_stacks 4294967296
counters_only null
counters_only 1
counters_only "true"
bound null
bound 0
bound "yes"
top null
top -1
top 1.0
top "10"
MEMBERS
  bad 'top|bound' '{"op":"start","pid":'"$target_pid"',"top":10}'
  ask '{"op":"status"}'
  answered '.profiles == []'
  wait_until "the target to be left alone" untouched "$target_pid"
  tell target stop
  ended_with 0 "$target_pid" target.err
}

@test "a request of 65,536 bytes is read, a longer one is not" {
  start_daemon
  local padding
  # The newline is one of them.
  padding=$(printf '%*s' $((65536 - 1 - 15)) '')
  ask '{"op":"status"'"$padding"'}'
  [[ $(wc -c <<<'{"op":"status"'"$padding"'}') == 65536 ]]
  answered .ok
  ask '{"op":"status"'"$padding"' }'
  rejected EMSGSIZE long
  # Of one that never ends the answer is the same, and comes before the end.
  head -c 10000000 /dev/zero | tr '\0' ' ' | send >answer
  rejected EMSGSIZE long
  half '{"op":"status","padding":"'"$padding"
  wait_until "the client to be disconnected" has_ended "$half_pid"
  cp half.out answer
  rejected EMSGSIZE long
  serves
}

@test "deeply nested requests" {
  start_daemon
  local n open close members
  for n in 17 100 2000 30000; do
    open=$(printf "%${n}s" '' | tr ' ' '[')
    close=$(printf "%${n}s" '' | tr ' ' ']')
    bad . "$open$close"
    bad . '{"op":'"$open$close"'}'
    bad . "$open"
    bad . "$close"
  done
  for n in 17 100 2000 10000; do
    members=$(printf "%${n}s" '' | sed 's/ /{"a":/g')
    bad . "${members}1$(printf "%${n}s" '' | tr ' ' '}')"
  done
  serves
}
