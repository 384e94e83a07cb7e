# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What the tests of permissions share, besides helpers.bash and daemon_helpers.bash: users'
# processes, and heapsonde as a user. Users are numbers here; they need no names.
#
# in:   HEAPSONDE, TESTS_BUILD; ONE, a user; helpers.bash, daemon_helpers.bash (whose refused
#       is replaced)
# out:  functions

# Tests use what the functions set, and the other way round, each in its own subshell.
# shellcheck disable=SC2034,SC2154

# daemon_for_users OPTION…: a daemon, and in $anywhere the programs that users run here.
daemon_for_users() {
  start_daemon "$@" && install -m 755 "$TESTS_BUILD/"{busy,lists,fault_exec,become.so} "$anywhere"
}

# start_of NAME UID PROGRAM ARG…: a target of this user, as start_target. (setpriv
# keeps root's capabilities until it executes something: env, so that the program is
# executed by a user who has none.)
start_of() {
  start_target "$1" /usr/bin/setpriv --reuid "$2" --regid "$2" --clear-groups env "${@:3}"
}

# start_as NAME "REAL EFFECTIVE SAVED DUMPABLE": a target with these user ids, and the
# group of user ONE.
start_as() {
  start_target "$1" /usr/bin/setpriv --regid "$ONE" --clear-groups \
    env "BECOME=$2" LD_PRELOAD="$anywhere/become.so" "$anywhere/busy"
}

# hs UID ARG…: heapsonde as this user; 0 is root.
hs() {
  as_user "$1" "$HEAPSONDE" "${@:2}"
}

# refused UID PATTERN ARG…: heapsonde ARG… as this user ends with status 1, and says in
# one line on stderr what matches PATTERN, and nothing on stdout.
refused() {
  local uid=$1 pattern=$2 status=0
  shift 2
  hs "$uid" "$@" >refused.out 2>refused.err </dev/null || status=$?
  if ((status != 1)) || [[ -s refused.out ]] || (($(wc -l <refused.err) != 1)) ||
    ! grep -Eq -- "$pattern" refused.err; then
    echo "heapsonde $*, as user $uid"
    echo "ended with status $status, not 1; it should say /$pattern/ in one line; it said"
    head -n 5 refused.err
    echo "and on stdout"
    head -n 5 refused.out
    return 1
  fi
}

# is UID PROFILE FILTER: it is true of the profile's status, as this user sees it.
is() {
  [[ $(hs "$1" status --json "$2" | jq "$3") == true ]]
}

# no_start PATTERN UID PID: a start is refused, with this reason, and it has not come
# to anything: no profile is left, the target is untouched.
no_start() {
  refused "$2" "$1" start -p "$3" || return
  [[ $(hs 0 status) == 'no profiles' ]] || fail "$(hs 0 status)" || return
  untouched "$3" || fail "process $3 was touched"
}
