#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# heapsonde top: the screen and its keys in a real terminal, of real programs. Needs root, BPF and
# tmux. How it ends: top_ends.bats.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers
load daemon_helpers
load top_helpers

# ---- the screen ---------------------------------------------------------------------------

@test "top: the sites of busy, with their shares and fates" {
  start_target target busy --domains 2
  start_top run -p "$target_pid" -r 2^-11
  shows '^heapsonde top +PID '"$target_pid"' .*busy --domains 2'
  shows 'domains 2 alive, 2 seen +rate 2\^-11 +samples'
  shows 'allocates [0-9.]+[kMG] words/s +promotes [0-9.]+[kMG] words/s +GC [0-9.]+k? minor/s, [0-9.]+k? major/s'
  shows 'blocks allocated before attaching are not seen'
  shows 'ALLOC/s +LIVE +SHARE +PROM% +YOUNG% +AGE +ALLOCATION SITE'
  shows 'Busy.churn +busy.ml:16'
  wait_until "50,000 samples" has_samples
  wait_until "a narrow interval" narrow_shot screen.txt
  cat screen.txt
  shares_are_right screen.txt
  # One list in 20 is kept for 50 more; and those that a collection finds are kept too.
  within "$(column 'PROM%' Busy.churn <screen.txt)" 2 30
  within "$(column 'YOUNG%' Busy.churn <screen.txt)" 70 98
  # Arrays of more than 256 words are allocated in the major heap.
  [[ $(column 'PROM%' Busy.chunks <screen.txt) == - ]]
  [[ $(column 'YOUNG%' Busy.chunks <screen.txt) == 0.0% ]]
  [[ $(grep -c 'Busy\.' screen.txt) == 2 ]]
  # The first row is the biggest, and its interval stands beside it.
  grep -Eq '^ +[0-9.]+[kMG] +±[0-9]+% .*Busy.churn' screen.txt
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
  shows 'Busy.churn:16 < Busy.work < '
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
  shows 'ALLOC/s +[0-9.]+[kMG]? +[0-9.]+[kMG]? to [0-9.]+[kMG]? +words/s allocated'
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
  shows 'lines [0-9]+-([0-9]+) of \1\)'
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
  # Down to the lowest. Where the program does not collect meanwhile one or the other is refused.
  at_the_lowest() {
    press -
    screen_has 'there is no lower rate'
  }
  wait_until "the lowest rate" at_the_lowest
  shows 'rate 2\^-40 '
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
        shows 'Busy.c…:16'
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
  shows 'Busy.c…:16'
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
