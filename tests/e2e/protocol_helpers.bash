# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What the tests of the protocol share, besides helpers.bash and daemon_helpers.bash:
# requests as bytes, and what is answered.
#
# in:   HEAPSONDE_SOCKET, TESTS_BUILD; helpers.bash, daemon_helpers.bash
# out:  functions; the files `answer` and half.out

# Tests use what the functions set, and the other way round, each in its own subshell.
# shellcheck disable=SC2034,SC2154

# send FD…: stdin to the daemon as it is, and its answer to stdout.
send() {
  "$TESTS_BUILD/send-fd" "$HEAPSONDE_SOCKET" "$@" 2>send.err 3>&-
}

# ask REQUEST [FD…]: a line to the daemon, its answer in the file `answer`.
ask() {
  local request=$1
  shift
  send "$@" <<<"$request" >answer
}

# answered FILTER: the answer is one line of JSON, and FILTER is true of it.
answered() {
  if [[ $(wc -l <answer) != 1 ]] || ! jq -e "$1" answer >/dev/null; then
    fail "not as expected ($1): $(head -c 2000 answer)"
  fi
}

# rejected CODE PATTERN: the answer is an error with this code, and its text, one line
# for people, matches. (Without jq, as there are hundreds.)
rejected() {
  local lines whole='^\{"ok":false,"code":"([A-Z]+)","error":"(.+)"\}$'
  mapfile lines <answer
  [[ ${#lines[@]} == 1 && ${lines[0]} == *$'\n' && ${lines[0]%$'\n'} =~ $whole ]] &&
    [[ ${BASH_REMATCH[1]} == "$1" && ${BASH_REMATCH[2]} =~ $2 ]] &&
    # As JSON writes control characters: none is in it.
    [[ ! ${BASH_REMATCH[2]} =~ \\([bfnrt]|u00[01]) ]] && return
  fail "not an error $1 that says /$2/: $(head -c 2000 answer)"
}

# bad PATTERN REQUEST: it is answered with EBADMSG, and a text that matches.
bad() {
  ask "$2" && rejected EBADMSG "$1" && return
  fail "the request was: ${2:0:200}"
}

# The daemon is there, and answers.
serves() {
  ask '{"op":"status"}' && answered '.ok == true and (.profiles | type == "array")'
}

# fds PID…: how many descriptors processes have open, one after the other.
fds() {
  local pid
  for pid; do
    find "/proc/$pid/fd" -mindepth 1 -maxdepth 1 | wc -l
  done
}

# half REQUEST [OPTION…]: a client in the background that sends this, with no end, and
# stays. Sets half_pid. half_user, if set, is a command that runs it.
half() {
  local request=$1
  shift
  printf '%s' "$request" >half.request
  rm -f half.err
  "${half_user[@]}" "$TESTS_BUILD/send-fd" "$@" "$HEAPSONDE_SOCKET" \
    <half.request >half.out 2>half.err 3>&- &
  half_pid=$!
  children+=("$half_pid")
  wait_until "half a request to be sent" grep -q '^sent' half.err
}
