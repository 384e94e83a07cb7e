#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# The daemon's protocol (docs/protocol.md) with clients that go early, stay, pass
# descriptors or send more than a request: nobody else notices. Needs root and BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

# bats file_tags=untrusted

load helpers
load daemon_helpers
load protocol_helpers

@test "half a request, and the client goes: nothing happens" {
  start_daemon
  start_target target busy
  local text before i
  serves
  before=$(fds "$daemon_pid")
  for text in '' '{' '{"op":"sta' '{"op":"status"}' '{"op":"start","pid":'"$target_pid"'}'; do
    for i in 1 2 3; do
      half "$text"
      kill -KILL "$half_pid"
      ended_with 137 "$half_pid"
    done
  done
  # One that does not wait for its answer is no better.
  for i in 1 2 3; do
    socat -u STDIN "UNIX-CONNECT:$HEAPSONDE_SOCKET" <<<'{"op":"status"}'
  done
  ask '{"op":"status"}'
  answered '.profiles == []'
  as_many_fds() { [[ $(fds "$daemon_pid") == "$before" ]]; }
  wait_until "the connections to be closed" as_many_fds
  wait_until "the target to be left alone" untouched "$target_pid"
}

@test "half a request, and the client stays: others are served, and it is disconnected" {
  start_daemon
  half '{"op":"status'
  local i
  for i in 1 2 3 4 5; do serves; done
  wait_until "the client to be disconnected" has_ended "$half_pid"
  [[ ! -s half.out ]]
  serves
}

@test "a request that comes byte by byte is a request" {
  start_daemon
  local request='{"op":"status"}' i
  {
    for ((i = 0; i < ${#request}; i++)); do
      printf %s "${request:i:1}"
      sleep 0.02
    done
    echo
  } | socat -t "$DEADLINE" STDIO "UNIX-CONNECT:$HEAPSONDE_SOCKET" >answer
  answered .ok
}

@test "too many unfinished requests of one user: he is told, others are served" {
  start_daemon
  for_everybody
  # shellcheck disable=SC2034  # half reads it
  half_user=(setpriv --reuid 4242 --regid 4242 --clear-groups)
  TESTS_BUILD=$anywhere half '{"op":"status' -n 64
  as_user 4242 "$anywhere/send-fd" "$HEAPSONDE_SOCKET" <<<'{"op":"status"}' >answer
  rejected EDQUOT 'too many'
  as_user 4343 "$anywhere/send-fd" "$HEAPSONDE_SOCKET" <<<'{"op":"status"}' >answer
  answered .ok
  serves
  # When he has closed some there is room again.
  kill -KILL "$half_pid"
  is_served() {
    as_user 4242 "$anywhere/send-fd" "$HEAPSONDE_SOCKET" <<<'{"op":"status"}' >answer &&
      answered .ok >/dev/null 2>&1
  }
  wait_until "the user to be served again" is_served
}

@test "a read-only descriptor is no output" {
  start_daemon
  start_target target busy
  local fd
  echo precious >file
  exec {fd}<file
  ask '{"op":"start","pid":'"$target_pid"'}' "$fd"
  rejected EBADF 'writ'
  exec {fd}<&-
  # A folder cannot be open in any other way.
  exec {fd}<.
  ask '{"op":"start","pid":'"$target_pid"'}' "$fd"
  rejected EBADF 'writ'
  exec {fd}<&-
  [[ $(<file) == precious ]]
  ask '{"op":"status"}'
  answered '.profiles == []'
  wait_until "the target to be left alone" untouched "$target_pid"
}

@test "more than one descriptor with a start" {
  start_daemon
  start_target target busy
  local fd n i many=()
  : >file
  exec {fd}>file
  for n in 2 3 10 253; do
    many=()
    for ((i = 0; i < n; i++)); do many+=("$fd"); done
    ask '{"op":"start","pid":'"$target_pid"'}' "${many[@]}"
    rejected EBADMSG 'descriptor|bad request'
  done
  [[ ! -s file ]]
  ask '{"op":"status"}'
  answered '.profiles == []'
  wait_until "the target to be left alone" untouched "$target_pid"
}

@test "descriptors with requests that want none: none stays open" {
  start_daemon
  start_target target busy
  local fd i request
  ask '{"op":"start","pid":'"$target_pid"',"rate":0.0001}'
  answered '.ok and .profile == 1'
  mapfile -t workers < <(workers)
  [[ ${#workers[@]} == 1 ]]
  exec {fd}>file
  # Once before, so that whatever is opened but once is.
  ask '{"op":"status","profile":1}' "$fd"
  answered '.ok and .profiles[0].state == "sampling"'
  before=$(fds "$daemon_pid" "${workers[@]}")
  for i in {1..20}; do
    for request in '{"op":"status"}' '{"op":"status","profile":1}' '{"op":"status","profile":2}' \
      '{"op":"rate","profile":1,"rate":0.0001}' '{"op":"discard","profile":1}' \
      '{"op":"stop","profile":2}' '{"op":"start","pid":'"$target_pid"'}' '{"op":"x"}' 'x' \
      '{"op":"status","profile":1,"x":1}'; do
      ask "$request" "$fd" "$fd"
      [[ $(<answer) == '{"ok":'* ]]
    done
  done
  as_before() { [[ $(fds "$daemon_pid" "${workers[@]}") == "$before" ]]; }
  wait_until "as many descriptors as before" as_before
  # Nobody but us has the file open.
  for i in "$daemon_pid" "${workers[@]}"; do
    not grep -q "$PWD/file" <(find "/proc/$i/fd" -type l -printf '%l\n')
  done
  ask '{"op":"status","profile":1}'
  answered '.profiles[0].state == "sampling" and .profiles[0].output_bytes == null'
}

@test "bytes after the request are not read" {
  start_daemon
  start_target target busy
  printf '{"op":"status"}\n{"op":"start","pid":%s}\nand so on' "$target_pid" | send >answer
  answered '.profiles == []'
  { echo '{"op":"status"}' && head -c 200000 /dev/zero; } | send >answer
  answered '.profiles == []'
  printf '{"op":"start","pid":%s,"rate":0.001}\n{"op":"stop","profile":1}\n' "$target_pid" | send >answer
  answered '.ok and .profile == 1'
  ask '{"op":"status","profile":1}'
  answered '.profiles[0].state == "sampling"'
}

@test "the output is the descriptor, and what it says first is the header" {
  start_daemon
  start_target target busy
  local fd
  exec {fd}>run.jsonl
  ask '{"op":"start","pid":'"$target_pid"',"rate":0.001,"stack_depth":4}' "$fd"
  answered '. == {"ok": true, "profile": 1}'
  exec {fd}>&-
  wait_until "some records" grep -q '^{"type":"alloc_' run.jsonl
  ask '{"op":"discard","profile":1}'
  rejected EINPROGRESS 'stop'
  ask '{"op":"stop","profile":1}'
  answered '. == {"ok": true, "profile": 1}'
  ask '{"op":"stop","profile":1}'
  rejected EALREADY 'stopped'
  ask '{"op":"discard","profile":1}'
  answered '. == {"ok": true, "profile": 1, "output_error": null}'
  ask '{"op":"discard","profile":1}'
  rejected EALREADY 'discarded'
  ask '{"op":"discard","profile":2}'
  rejected ENOENT 'no profile 2'
  jq -e -n '[inputs] | .[0].type == "header" and .[0].stack_depth == 4 and .[1].type == "profile"
    and .[-1].type == "summary"' run.jsonl
}

@test "a bound profile ends when its client closes its side, and says how" {
  start_daemon
  start_target target busy
  # socat closes its side at the end of stdin.
  socat -t "$DEADLINE" STDIO "UNIX-CONNECT:$HEAPSONDE_SOCKET" \
    <<<'{"op":"start","pid":'"$target_pid"',"rate":0.001,"bound":true,"top":3}' >answers
  [[ $(wc -l <answers) == 2 ]]
  jq -e -s '.[0] == {"ok": true, "profile": 1} and .[1].ok and .[1].profile == 1
    and .[1].reason == "interrupted" and (.[1].lost | type) == "object" and (.[1].top | type) == "string"
    and .[1].output_error == null' answers
  ask '{"op":"status"}'
  answered '.profiles == []'
  wait_until "the target to be left alone" untouched "$target_pid"
}

@test "a bound client that is killed takes its profile along" {
  start_daemon
  start_target target busy
  half $'{"op":"start","pid":'"$target_pid"$',"rate":0.001,"bound":true}\n'
  wait_until "the profile to start" grep -q '"profile":1' half.out
  kill -KILL "$half_pid"
  no_profiles() { ask '{"op":"status"}' && answered '.profiles == []' 2>/dev/null; }
  wait_until "the profile to go" no_profiles
  wait_until "the target to be left alone" untouched "$target_pid"
}
