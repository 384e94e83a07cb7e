# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What the end-to-end tests of the daemon share, besides helpers.bash: a daemon of the
# test's own, and other users.
#
# in:   HEAPSONDE; helpers.bash
# out:  functions; HEAPSONDE_SOCKET, exported, which all commands go by

# Tests use what the functions set, and the other way round, each in its own subshell.
# shellcheck disable=SC2034,SC2154

# A folder that every user can look into and nobody but root write in, $anywhere, with
# what other users run: the build and the test's own folder may be closed to them.
# teardown removes it.
for_everybody() {
  [[ -z $anywhere ]] || return 0
  anywhere=$(mktemp -d /tmp/heapsonde-test.XXXXXX) && chmod 755 "$anywhere" &&
    install -m 755 "$HEAPSONDE" "$TESTS_BUILD/send-fd" "$anywhere" || return
  HEAPSONDE=$anywhere/heapsonde
}

# start_daemon [OPTION…]: a daemon on a socket in $anywhere. Its messages are in
# daemon.err; daemon_pid is its PID. Returns when it answers. Another one may be started
# on the same socket when the first has ended.
start_daemon() {
  for_everybody || return
  export HEAPSONDE_SOCKET=$anywhere/control.sock
  "$HEAPSONDE" daemon --socket "$HEAPSONDE_SOCKET" "$@" >>daemon.out 2>>daemon.err </dev/null 3>&- &
  daemon_pid=$!
  children+=("$daemon_pid")
  wait_until "the daemon to answer" answers_or_ended "$daemon_pid" || return
  answers && return
  cat daemon.err
  fail "heapsonde daemon $* did not start"
}

answers() {
  "$HEAPSONDE" status >/dev/null 2>&1
}

answers_or_ended() {
  answers || has_ended "$1"
}

# stop_daemon: SIGTERM, and it ends well.
stop_daemon() {
  kill -TERM "$daemon_pid"
  ended_with 0 "$daemon_pid" daemon.err
}

# workers: the PIDs of the daemon's workers.
workers() {
  pgrep -P "$daemon_pid" || true
}

# as_user UID COMMAND…: with this user and group, and no others; 0 is root.
as_user() {
  local uid=$1
  shift
  if ((uid == 0)); then
    "$@"
  else
    # env, because setpriv itself keeps root's capabilities.
    setpriv --reuid="$uid" --regid="$uid" --clear-groups env "$@"
  fi
}

# folder_of UID: a folder that this user may write.
folder_of() {
  [[ -d $anywhere/$1 ]] || install -d -o "$1" -g "$1" -m 755 "$anywhere/$1" || return
  echo "$anywhere/$1"
}

# status_of PROFILE FILTER: of its status, by jq: `.state`, say.
status_of() {
  "$HEAPSONDE" status --json "$1" | jq -r "$2"
}

# has_state PROFILE STATE
has_state() {
  [[ $(status_of "$1" .state) == "$2" ]]
}

# nothing_attached PID: process PID has no probe armed and no semaphore up any more.
nothing_attached() {
  wait_until "process $1 to be left alone" untouched "$1" && return
  fail "still up: $(probes_up "$1"); still armed: $(probes_armed "$1")"
}

# worker_of PROCESS: the PID of the daemon's worker for this target, which has it open.
worker_of() {
  local pid
  for pid in $(workers); do
    if grep -qx "Pid:[[:space:]]$1" "/proc/$pid/fdinfo/"* 2>/dev/null; then
      echo "$pid"
      return
    fi
  done
  fail "no worker for process $1"
}

# ---- profiles ---------------------------------------------------------------------------

# start_profile NAME OPTION…: heapsonde start with its output in NAME.jsonl, and room for
# bursts. NAME_id is its number.
start_profile() {
  local name=$1 number
  shift
  number=$("$HEAPSONDE" start --force -o "$name.jsonl" --ring-size 16M "$@" 3>&-) || return
  [[ $number =~ ^[1-9][0-9]*$ ]] || fail "heapsonde start said: $number" || return
  printf -v "${name}_id" %d "$number"
  : >"$name.err" # for in_order
}

# end_profile NAME: discard it, after a stop if it samples; its records are in order, and
# all have its number. Makes NAME.tsv.
end_profile() {
  local id=${1}_id
  [[ $(status_of "${!id}" .state) != sampling ]] || "$HEAPSONDE" stop "${!id}" || return
  "$HEAPSONDE" discard "${!id}" && in_order "$1" || return
  [[ $(awk -F '\t' '$1 == "profile" { print $2; exit }' "$1.tsv") == "${!id}" ]] ||
    fail "the records of $1 are not of profile ${!id}"
}

# refused PATTERN ARG…: heapsonde ARG… ends with status 1, and says in one line on stderr
# what matches PATTERN, and nothing on stdout.
refused() {
  local pattern=$1 status=0
  shift
  "$HEAPSONDE" "$@" >refused.out 2>refused.err </dev/null 3>&- || status=$?
  if ((status != 1)) || [[ -s refused.out ]] || (($(wc -l <refused.err) != 1)) ||
    ! grep -Eq -- "$pattern" refused.err; then
    echo "heapsonde $* ended with status $status, not 1; it should say /$pattern/ in one line; it said"
    head -n 5 refused.err
    echo "and on stdout"
    head -n 5 refused.out
    return 1
  fi
}

# request LINE: a request of docs/protocol.md, its answer to stdout.
request() {
  socat -t "$DEADLINE" STDIO "UNIX-CONNECT:$HEAPSONDE_SOCKET" <<<"$1"
}

# follow_profile NAME PROFILE: in the background, into NAME.jsonl. Sets NAME_pid. Returns
# when it follows.
follow_profile() {
  anew "$1.jsonl"
  "$HEAPSONDE" follow "$2" >"$1.jsonl" 2>"$1.err" </dev/null 3>&- &
  printf -v "${1}_pid" %d $!
  children+=($!)
  wait_until "$1 to follow" grep -qs '^{"type":"profile"' "$1.jsonl"
}

# start_orders NAME N [ARG…]: tests/programs/orders with domains 0 to N-1, and a small
# minor heap, so that collections are frequent.
start_orders() {
  OCAMLRUNPARAM=s=8k start_target "$1" orders --domains "$2" "${@:3}"
}

# order NAME ORDER: and wait until it is carried out; $answer is what it answers.
order() {
  local number=${1}_orders
  printf -v "$number" %d $((${!number:-0} + 1))
  tell "$1" "$2"
  wait_until "$1 to $2" grep -q "^done ${!number}\b" "$1.out" || return
  answer=$(awk -v n="${!number}" '$1 == "done" && $2 == n { print $3 }' "$1.out")
}

# domains_in NAME: the domains that have allocations in NAME.tsv, as "0 1 7".
domains_in() {
  awk -F '\t' '/^alloc_/ { print $4 }' "$1.tsv" | sort -un | paste -sd ' '
}
