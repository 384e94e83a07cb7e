#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# heapsonde top: however it ends, nothing is left behind, neither in the terminal nor in the program;
# plain tables; through the daemon. Needs root, BPF and tmux.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers
load daemon_helpers
load permissions_helpers
load top_helpers

ONE=4242

# ---- ends ---------------------------------------------------------------------------------

@test "top: q, Ctrl-C, SIGTERM, SIGHUP and a crash restore the terminal and detach" {
  start_target target busy
  local how
  for how in q C-c TERM HUP INT; do
    start_top "run-$how" -p "$target_pid" -r 2^-11
    shows 'Busy.churn'
    case $how in
      q | C-c) press $how ;;
      *) kill "-$how" "$top_pid" ;;
    esac
    left_well "run-$how" 0
    [[ ! -s run-$how.err ]]
    nothing_attached "$target_pid"
  done
  # Our own fault, as it looks from outside.
  for how in SEGV ABRT QUIT; do
    start_top "run-$how" -p "$target_pid" -r 2^-11
    shows 'Busy.churn'
    kill "-$how" "$top_pid"
    left_well "run-$how" $((128 + $(kill -l $how)))
    nothing_attached "$target_pid"
  done
}

@test "top: a terminal that nobody reads holds nothing up" {
  start_target target lists 20000 --wait
  size='300 100' start_top run -p "$target_pid" -r 1 --delay 0.1
  shows 'ALLOCATION SITE'
  local server i
  server=$(tm display-message -p '#{pid}')
  kill -STOP "$server"
  # Each time it paints all of the screen: together more than any terminal keeps.
  for ((i = 0; i < 40; i++)); do
    kill -CONT "$top_pid"
    sleep 0.05
  done
  # It takes in records all the same, of which the final state tells.
  tell target go
  said target '^done'
  tell target end
  ended_with 0 "$target_pid" target.err
  kill -CONT "$server"
  shows '^target exited: this is the final state; q quits'
  shows 'Lists.conses'
  not screen_has '^lost'
  # And it ends when it is told to, though nobody can see that.
  kill -STOP "$server"
  for ((i = 0; i < 40; i++)); do
    kill -CONT "$top_pid"
    sleep 0.05
  done
  kill -TERM "$top_pid"
  wait_until "top to end" has_ended "$top_pid"
  kill -CONT "$server"
  wait_until "the shell to go on" test -e run.done
  [[ $(<run.status) == 0 ]]
  diff run.stty run.stty2
}

@test "top: kill -9 leaves nothing attached" {
  start_target target busy
  start_top run -p "$target_pid" -r 2^-11
  shows 'Busy.churn'
  bpf_objects "$top_pid" >objects
  kill -KILL "$top_pid"
  nothing_left "$target_pid" objects
  tell target stop
  ended_with 0 "$target_pid" target.err
  grep -q '^ok' target.out
}

@test "top: Ctrl-Z gives the terminal back, fg goes on" {
  start_target target busy
  start_top run -p "$target_pid" -r 2^-11
  shows 'Busy.churn'
  press C-z
  full_screen() { [[ $(pane run alternate_on) == "$1" ]]; }
  wait_until "the terminal to be the shell's" full_screen 0
  shows '^\[1\].*Stopped'
  not screen_has 'Busy.churn'
  press fg Enter
  shows 'Busy.churn'
  wait_until "the full screen" full_screen 1
  # Stopped by somebody else: top can give nothing back, but the shell takes it.
  kill -STOP "$top_pid"
  shows '^\[1\].*Stopped'
  press fg Enter
  hides 'Stopped'
  press Tab
  shows 'sites, live'
  press q
  wait_until "top to end" has_ended "$top_pid"
  wait_until "the terminal to be as before" is_restored run
  nothing_attached "$target_pid"
}

@test "top: the end of the program: its final state, until q" {
  start_target target lists 20000 --wait
  start_top run -p "$target_pid" -r 1
  tell target go
  said target '^done'
  tell target end
  ended_with 0 "$target_pid" target.err
  shows '^target exited: this is the final state; q quits'
  shows 'Lists.conses'
  press Down Enter
  shows '^Stack 1'
  press q
  shows 'ALLOCATION SITE'
  press q
  left_well run 0
}

@test "top: errors leave the terminal alone" {
  start_top none -p "$(</proc/sys/kernel/pid_max)"
  left_well none 1
  grep -q 'no process' none.err
  (($(wc -l <none.err) == 1))
  start_top shell -p $$
  left_well shell 1
  (($(wc -l <shell.err) == 1))
  start_target target busy
  start_top domain -p "$target_pid" --domain 77
  left_well domain 1
  grep -q 'no domain 77' domain.err
  start_top usage -p "$target_pid" --by size
  left_well usage 2
  start_top nodaemon -p "$target_pid" --socket "$PWD/none"
  left_well nodaemon 1
  untouched "$target_pid"
}

# ---- plain tables ---------------------------------------------------------------------------

@test "top without a terminal: the same figures as tables; exact at rate 1" {
  start_target target lists 20000 --wait
  "$HEAPSONDE" top -p "$target_pid" -r 1 --delay 0.2 --rows 50 >top.top 2>top.err </dev/null 3>&- &
  local pid=$!
  children+=("$pid")
  wait_until "a table" grep -q 'ALLOCATION SITE' top.top
  tell target go
  said target '^done'
  tell target end
  ended_with 0 "$target_pid" target.err
  ended_with 0 "$pid" top.err
  [[ ! -s top.err ]]
  not grep -q $'\e' top.top
  # A time for each table.
  (($(grep -Ec '^--- [0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}[+-][0-9]{4}$' top.top) == $(grep -c 'ALLOCATION SITE' top.top)))
  # The last one is the end, with every word that was allocated.
  top_exact top target
  [[ $(column SHARE '  all ' <top.last) == 100% ]]
}

@test "top without a terminal: -n, --duration, --by stack, --metric; a dumb terminal" {
  start_target target busy --domains 2
  "$HEAPSONDE" top -p "$target_pid" -n 3 --delay 0.1 -r 2^-11 >three.out
  (($(grep -c '^---' three.out) == 3))
  # Two stacks in each of two domains.
  stacks() {
    "$HEAPSONDE" top -p "$target_pid" --duration "$1" --delay 0.1 -r 2^-11 --by stack --metric live --rows 1 \
      >stack.out || return
    tail -n 9 stack.out
    grep -q '^stacks, live; by LIVE' stack.out &&
      tail -n 2 stack.out | grep -q 'Busy.churn  busy.ml:16 < Busy.work' && tail -n 1 stack.out | grep -Eq 'all [34]$'
  }
  given_time stacks
  start_top dumb -p "$target_pid" -n 2 --delay 0.1 --plain
  left_well dumb 0
  environment='TERM=dumb' start_top dumber -p "$target_pid" -n 1 --delay 0.1
  left_well dumber 0
  [[ ! -s dumber.err ]]
  environment='TERM=nonsense' start_top nonsense -p "$target_pid" -n 1 --delay 0.1
  left_well nonsense 0
  grep -q 'nothing is known of the terminal nonsense; so it is plain tables' nonsense.err
  # A reader that goes, a disk that is full.
  local status=0
  "$HEAPSONDE" top -p "$target_pid" --delay 0.1 >/dev/full 2>full.err || status=$?
  ((status == 1))
  grep -q 'cannot write' full.err
  nothing_attached "$target_pid"
}

@test "top: domains that come and go, hundreds of them" {
  start_target target spawner 3000000 --domains 400 --wait
  "$HEAPSONDE" top -p "$target_pid" -r 2^-8 --delay 0.2 >top.out 2>top.err </dev/null 3>&- &
  local pid=$!
  children+=("$pid")
  wait_until "a table" grep -q 'ALLOCATION SITE' top.out
  tell target go
  said target '^done'
  # Longer than it takes until the counters of the last ones are told.
  wait_until "all domains but the first to have gone" grep -q 'domains 1 alive, 401 seen' top.out
  tell target end
  ended_with 0 "$target_pid" target.err
  ended_with 0 "$pid" top.err
  grep '^domains' top.out | tail -n 1 | grep -q 'domains 1 alive, 401 seen'
  # Four at a time; some end a moment before that is told.
  awk '/^domains/ && $2 > 50 { print; bad = 1 } END { exit bad }' top.out
}

# ---- through the daemon -----------------------------------------------------------------------

@test "top through the daemon, as a user who is not root" {
  daemon_for_users
  start_of target $ONE "$anywhere/busy"
  start_of roots 0 "$anywhere/busy"
  cat >"$anywhere/top" <<END
#!/bin/bash
shift
exec setpriv --reuid=$ONE --regid=$ONE --clear-groups env HEAPSONDE_SOCKET=$HEAPSONDE_SOCKET $anywhere/heapsonde top "\$@"
END
  chmod 755 "$anywhere/top"
  HEAPSONDE=$anywhere/top start_top run -p "$target_pid" -r 2^-11
  shows 'Busy.churn +busy.ml:16'
  shows 'GC [0-9.]+k? minor/s'
  wait_until "50,000 samples" has_samples
  wait_until "a narrow interval" narrow_shot screen.txt
  shares_are_right screen.txt
  status_of 1 '"\(.uid) \(.bound)"' | grep -qx "$ONE true"
  press +
  shows 'rate 2\^-10 '
  # What the daemon does not grant is said.
  "$HEAPSONDE" stop 1
  shows 'sampling has stopped: interrupted'
  press +
  shows '^profile 1 does not sample any more'
  press q
  left_well run 0
  [[ $("$HEAPSONDE" status) == 'no profiles' ]]
  nothing_attached "$target_pid"
  # Not another user's; and kill -9.
  HEAPSONDE=$anywhere/top start_top refused -p "$roots_pid"
  left_well refused 1
  grep -q "does not run entirely as user $ONE" refused.err
  HEAPSONDE=$anywhere/top start_top killed -p "$target_pid" -r 2^-11
  shows 'Busy.churn +busy.ml:16'
  kill -KILL "$top_pid"
  nothing_attached "$target_pid"
  # The end of the program, and of the daemon.
  HEAPSONDE=$anywhere/top start_top last -p "$target_pid" -r 2^-11
  shows 'Busy.churn +busy.ml:16'
  tell target stop
  ended_with 0 "$target_pid" target.err
  shows '^target exited: this is the final state; q quits'
  press q
  left_well last 0
  start_of again $ONE "$anywhere/busy"
  HEAPSONDE=$anywhere/top start_top daemon -p "$again_pid" -r 2^-11
  shows 'Busy.churn +busy.ml:16'
  stop_daemon
  shows '^interrupted: this is the final state; q quits'
  press q
  left_well daemon 0
  nothing_attached "$again_pid"
}
