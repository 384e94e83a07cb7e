#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# heapsonde top: the screen and its keys in a real terminal, of real programs; and that nothing is
# left behind, neither in the terminal nor in the program. Needs root, BPF and tmux.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers
load daemon_helpers
load permissions_helpers
load top_helpers

ONE=4242

# Enough samples for the shares below: see there.
has_samples() {
  shot | grep -Eq 'samples ([5-9][0-9]\.[0-9]k|[0-9]{3}k|[0-9.]+M)'
}

# ---- the screen ---------------------------------------------------------------------------

@test "top: the sites of busy, with their shares and fates" {
  start_target target busy --domains 2
  start_top run -p "$target_pid" -r 2^-11
  shows '^heapsonde top +PID '"$target_pid"' .*busy --domains 2'
  shows 'domains 2 alive, 2 seen +rate 2\^-11 +samples'
  shows 'allocates [0-9.]+M words/s +promotes [0-9.]+[kM] words/s +GC [0-9.]+ minor/s, [0-9.]+ major/s'
  shows 'blocks allocated before attaching are not seen'
  shows 'ALLOC/s +LIVE +SHARE +PROM% +YOUNG% +AGE +ALLOCATION SITE'
  shows 'Busy.churn +busy.ml:16'
  wait_until "50,000 samples" has_samples
  shot >screen.txt
  cat screen.txt
  # A list has 3000 words, and every 40th brings an array of 501: 99.58 %. With half of the samples
  # in the window the share has a standard deviation of 0.04.
  within "$(column SHARE Busy.churn <screen.txt)" 99.0 99.9
  within "$(column SHARE Busy.chunks <screen.txt)" 0.1 1.0
  # One list in 20 is kept for 50 more; and those that a collection finds are kept too.
  within "$(column 'PROM%' Busy.churn <screen.txt)" 2 30
  within "$(column 'YOUNG%' Busy.churn <screen.txt)" 70 98
  # Arrays of more than 256 words are allocated in the major heap.
  [[ $(column 'PROM%' Busy.chunks <screen.txt) == - ]]
  [[ $(column 'YOUNG%' Busy.chunks <screen.txt) == 0.0% ]]
  [[ $(grep -c 'Busy\.' screen.txt) == 2 ]]
  # The first row is the biggest, and its interval stands beside it.
  grep -Eq '^ +[0-9.]+M +±[0-9]+% .*Busy.churn' screen.txt
  press q
  left_well run 0
  nothing_attached "$target_pid"
}

@test "top: metric, order, stacks, intervals" {
  start_target target busy --domains 2
  start_top run -p "$target_pid" -r 2^-11
  shows 'sites, allocated; by ALLOC/s$'
  shows 'Busy.churn'
  shows 'Busy.chunks'
  press Tab
  shows 'sites, live; by LIVE$'
  shows '^ +LIVE +ALLOC/s'
  press m
  shows 'sites, promoted; by PROM/s$'
  shows '^ +PROM/s'
  press BTab
  shows 'sites, live; by LIVE$'
  press BTab
  shows 'sites, allocated; by ALLOC/s$'
  local key
  for key in l:LIVE o:PROM/s h:SHARE p:PROM% y:YOUNG% g:AGE t:TOTAL a:ALLOC/s n:name; do
    press "${key%:*}"
    shows "by ${key#*:}\$"
  done
  # By name: chunks before churn. The first row of the table is the seventh line.
  first_is() { shot | sed -n 7p | grep -q "$1"; }
  wait_until "chunks to be first" first_is Busy.chunks
  press r
  shows 'by name reversed$'
  wait_until "churn to be first" first_is Busy.churn
  press n
  shows 'by name$'
  press a
  wait_until "churn to be first" first_is Busy.churn
  press a
  shows 'by ALLOC/s reversed$'
  wait_until "chunks to be first" first_is Busy.chunks
  press a
  hides reversed
  press x
  shows 'stacks, allocated'
  shows 'Busy.churn +busy.ml:16 < B'
  press x
  shows 'sites, allocated'
  # One interval, then one for each column that there is still room for.
  intervals() { [[ $(shot | grep Busy.churn | grep -o ± | wc -l) == "$1" ]]; }
  wait_until "one interval or two" intervals 2
  press i
  more_intervals() { (($(shot | grep Busy.churn | grep -o ± | wc -l) > 2)); }
  wait_until "more of them" more_intervals
  press i
  wait_until "fewer of them" intervals 2
  press Q
  shows 'no such key'
  press q
  left_well run 0
}

@test "top: filters by function, domain and source" {
  start_target target busy --domains 2
  start_top run -p "$target_pid" -r 2^-11
  shows 'Busy.churn'
  shows 'Busy.chunks'
  press / c h u n
  shows '^function: chun_'
  press BSpace n K Enter
  shows 'only function \*chunK\*'
  hides 'Busy.churn'
  shows 'Busy.chunks'
  # A caller counts too.
  press / D o m a i n . s p a w n Enter
  shows 'only function \*Domain.spawn\*'
  shows 'Busy.churn'
  press / q Escape
  shows 'only function \*Domain.spawn\*'
  press / n o n e Enter
  shows 'nothing that the filter lets through'
  press c
  hides 'only'
  press d 1 Enter
  shows 'only domain 1$'
  shows 'Busy.churn'
  # Domain 1 has been spawned, domain 0 has not.
  press / S t d l i b _ _ D o m a i n Enter
  shows 'only function \*Stdlib__Domain\* domain 1'
  shows 'Busy.churn'
  press d 0 Enter
  shows 'nothing that the filter lets through'
  press d x Enter
  shows 'a domain is a number'
  press c s
  shows 'only source normal'
  shows 'Busy.churn'
  press s
  shows 'only source marshal'
  shows 'nothing that the filter lets through'
  press s s
  shows 'only source map_file'
  press s
  shows 'Busy.churn'
  hides 'only'
  press q
  left_well run 0
}

@test "top: a row in full, help, pause, rate" {
  start_target target busy --domains 2
  start_top run -p "$target_pid" -r 2^-11
  shows 'Busy.chunks'
  # chunks is the second row: it stays the one that is open, in whatever order.
  press Down Enter
  shows '^Busy.chunks +busy.ml:17'
  shows 'ALLOC/s +[0-9.]+[kM] +[0-9.]+[kM] to [0-9.]+[kM] +words/s allocated'
  shows '^Stack 1: ALLOC/s'
  shows '^ +Busy.work +busy.ml:'
  press n
  shows 'by name'
  shows '^Busy.chunks +busy.ml:17'
  # Two stacks, one for each domain; the second one is further down.
  press End
  shows '^Stack 2: ALLOC/s'
  press Home
  shows '^Busy.chunks +busy.ml:17'
  press Escape
  shows 'ALLOCATION SITE'
  press '?'
  shows '^HELP'
  shows 'Ctrl-C quits anywhere'
  press PPage NPage
  shows 'invisible, and in no figure'
  press q
  shows 'ALLOCATION SITE'
  press Space
  shows '; paused'
  shot | sed -n '2,$p' >paused.1
  # A moment in which it would have been shown anew: the clock goes on, the picture does not.
  sleep 2.5
  shot | sed -n '2,$p' >paused.2
  diff <(grep Busy paused.1) <(grep Busy paused.2)
  press Space
  hides '; paused'
  press +
  shows 'rate 2\^-10 '
  press - -
  shows 'rate 2\^-12 '
  press z
  shows 'Busy.churn'
  # Ten times lower than the lowest.
  local i
  for ((i = 0; i < 38; i++)); do press -; done
  shows 'rate 2\^-40 '
  shows 'there is no lower rate'
  press q
  left_well run 0
  nothing_attached "$target_pid"
}

@test "top: any size, and others while it runs" {
  start_target target busy
  start_top run -p "$target_pid" -r 2^-11
  shows 'Busy.churn'
  local wh
  for wh in '20 5' '140 12' '1 1' '10 2' '300 60' '80 24'; do
    read -r width height <<<"$wh"
    tm resize-window -t run -x "$width" -y "$height"
    case $wh in
      '20 5')
        shows '^ ALLOC/s +ALLOCATI'
        shows 'Busy.churn'
        ;;
      '140 12' | '300 60')
        shows '(±[^±]+){8}Busy.churn'
        shows '^ ALLOC/s +LIVE +PROM/s +SHARE +PROM% +YOUNG% +AGE +TOTAL +ALLOCATION SITE'
        ;;
      '80 24') shows 'ALLOC/s +LIVE +SHARE +PROM% +YOUNG% +AGE +ALLOCATION SITE' ;;
      *) kill -0 "$top_pid" ;;
    esac
  done
  press q
  left_well run 0
  # From the beginning, and with keys.
  size='20 5' start_top small -p "$target_pid"
  shows 'Busy.churn'
  press Down Enter Tab '?' q q
  shows 'ALLOCATI'
  press q
  left_well small 0
}

@test "top: without colours, and in ASCII" {
  start_target target busy
  start_top run -p "$target_pid" -r 2^-11
  shows 'Busy.churn'
  coloured() { tm capture-pane -e -p -t "$screen" | grep -q $'\e\[[0-9;]*[34][0-7]'; }
  wait_until "colours" coloured
  press q
  left_well run 0
  environment='NO_COLOR=1' start_top grey -p "$target_pid" -r 2^-11
  shows 'Busy.churn'
  not coloured
  press q
  left_well grey 0
  environment='LC_ALL=C' start_top ascii -p "$target_pid" -r 2^-11
  shows '\+-[0-9]+% .*Busy.churn'
  not screen_has '±'
  press q
  left_well ascii 0
}

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
  wait_until "the shell" screen_lacks 'Busy.churn'
  [[ $(pane run alternate_on) == 0 ]]
  press fg Enter
  shows 'Busy.churn'
  [[ $(pane run alternate_on) == 1 ]]
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
  "$HEAPSONDE" top -p "$target_pid" -r 1 --delay 0.2 --rows 50 >top.out 2>top.err </dev/null 3>&- &
  local pid=$!
  children+=("$pid")
  wait_until "a table" grep -q 'ALLOCATION SITE' top.out
  tell target go
  said target '^done'
  tell target end
  ended_with 0 "$target_pid" target.err
  ended_with 0 "$pid" top.err
  [[ ! -s top.err ]]
  not grep -q $'\e' top.out
  # A time for each table.
  (($(grep -Ec '^--- [0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}[+-][0-9]{4}$' top.out) == $(grep -c 'ALLOCATION SITE' top.out)))
  # The last one is the end, with every word that was allocated.
  awk '/^---/ { text = "" } { text = text $0 "\n" } END { printf "%s", text }' top.out >last.txt
  cat last.txt target.out
  grep -qx 'ended: target exited' last.txt
  local function words total
  while IFS=$'\t' read -r function words; do
    total=$(column TOTAL "$function " <last.txt)
    [[ $total == "$words" ]] || fail "$function allocated $words words, and TOTAL is $total"
    n=$((${n:-0} + 1))
  done < <(awk -F '\t' '$1 == "expect" {
    w = $9
    for (unit = ""; w >= 999.5; w /= 1000) unit = (unit == "" ? "k" : "M")
    printf("%s\t%.*f%s\n", $5, (unit == "" || w >= 99.95 ? 0 : 1), w, unit) }' target.out)
  ((n == 4))
  [[ $(column SHARE '  all ' <last.txt) == 100% ]]
}

@test "top without a terminal: -n, --duration, --by stack, --metric; a dumb terminal" {
  start_target target busy --domains 2
  "$HEAPSONDE" top -p "$target_pid" -n 3 --delay 0.1 -r 2^-11 >three.out
  (($(grep -c '^---' three.out) == 3))
  "$HEAPSONDE" top -p "$target_pid" --duration 0.5 --delay 0.1 -r 2^-11 --by stack --metric live --rows 1 >stack.out
  cat stack.out
  grep -q '^stacks, live; by LIVE' stack.out
  tail -n 2 stack.out | grep -q 'Busy.churn  busy.ml:16 < Busy.work'
  tail -n 1 stack.out | grep -Eq 'all [34]$'
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
  shows 'GC [0-9.]+ minor/s'
  wait_until "50,000 samples" has_samples
  within "$(shot | column SHARE Busy.churn)" 99.0 99.9
  status_of 1 '"\(.uid) \(.bound)"' | grep -qx "$ONE true"
  press +
  shows 'rate 2\^-10 '
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
