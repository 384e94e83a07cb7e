#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# kill -9 of either side at random moments: of heapsonde, of the daemon, of its worker, of its
# client, of the target, of both at once; while it attaches, samples, changes its rate,
# stops, detaches. After each nothing is left, by heapsonde residue and by the tests' own eyes, and a
# target that lives on computes what it computes unobserved. Needs root and BPF.
#
# in: KILLS_N, how many moments (20); KILLS_SEED, from which all that is random comes;
#     KILLS_FIRST, the first moment (1): each comes from the seed and its own number

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers
load daemon_helpers
load faults_helpers

KINDS=(busy domains threads lives)
SIDES=(record worker supervisor client target both)
PHASES=(attach steady rate stop discard)

# a_moment: sleep for so many ms at random, below the number given.
a_moment() {
  local ms=$((RANDOM % $1))
  moment+=" +${ms}ms"
  sleep "$(printf '0.%03d' "$ms")"
}

# result NAME: what a target has computed.
result() {
  grep -E '^(digest|wrong)' "$1.out"
}

# unobserved KIND: what it computes, in reference.KIND.
unobserved() {
  start_target alone digests "$1"
  tell alone stop
  ended_with 0 "$alone_pid" alone.err
  result alone >"reference.$1"
  (($(wc -l <"reference.$1") == 16))
  exec {alone_in}>&-
  rm alone.in # the next one's
}

# note_objects PID…: what these processes hold in the kernel now, if anything, into objects.
note_objects() {
  local pid
  for pid; do bpf_objects "$pid"; done >>objects
}

# kill_all PID…: those that are there yet. They and what they hold are noted first.
kill_all() {
  note_objects "$@"
  kill -KILL "$@" 2>/dev/null || moment+=" (had ended)"
}

# ---- the two ways of watching ---------------------------------------------------------

# begin COMMAND…: one of heapsonde in the background, its PID is in $client.
begin() {
  "$HEAPSONDE" "$@" >client.out 2>client.err </dev/null 3>&- &
  client=$!
  children+=("$client")
}

client_ended() {
  wait_until "heapsonde to end" has_ended "$client"
}

# recording PHASE: a recording of the target that has got as far as that.
recording() {
  local file=run.jsonl
  ((RANDOM % 2)) || file=run.hsd
  anew "$file"
  begin record --force -p "$target_pid" -r "2^-$((10 + RANDOM % 6))" -o "$file"
  [[ $1 != attach ]] || { a_moment 800; return; }
  begun_or_ended() { [[ -s $file ]] || has_ended "$client"; }
  wait_until "the recording to begin" begun_or_ended
  [[ $1 == steady || $1 == rate ]] || kill -INT "$client"
  a_moment 200
}

# profile PHASE: the same through the daemon.
profile() {
  begin start --force -p "$target_pid" -r "2^-$((10 + RANDOM % 6))" -o run.jsonl
  [[ $1 != attach ]] || { a_moment 800; return; }
  client_ended
  local id
  id=$(<client.out)
  [[ $id =~ ^[0-9]+$ ]] || fail "no profile: $(cat client.err)" || return
  case $1 in
    steady) begin follow "$id" ;;
    rate) begin rate "$id" "2^-$((8 + RANDOM % 8))" ;;
    stop) begin stop "$id" ;;
    discard)
      "$HEAPSONDE" stop "$id"
      begin discard "$id"
      ;;
  esac
  a_moment 200
}

# ---- one moment -------------------------------------------------------------------------

# strike SIDE: kill -9, and wait until who was hit, and who lives by him, has gone.
strike() {
  local side=$1 pid helpers=()
  [[ -z $daemon_pid ]] || mapfile -t helpers < <(workers)
  case $side in
    record | client) kill_all "$client" ;;
    target) kill_all "$target_pid" ;;
    both) kill_all "$target_pid" "$client" "${helpers[@]}" ;;
    worker) ((${#helpers[@]} == 0)) || kill_all "${helpers[@]}" ;;
    supervisor)
      note_objects "${helpers[@]}"
      kill_all "$daemon_pid"
      wait_until "the daemon to end" has_ended "$daemon_pid"
      daemon_pid=
      ;;
  esac
  # A follower lives as long as the profile; all else ends by itself by now, or is told to.
  [[ $side == record || $side == both ]] || kill -INT "$client" 2>/dev/null || true
  client_ended
  [[ $side != target && $side != both ]] || wait_until "the target to end" has_ended "$target_pid"
  [[ -n $daemon_pid ]] && return
  for pid in "${helpers[@]}"; do wait_until "worker $pid to end" has_ended "$pid" || return; done
}

# Nothing is watched any more. A client that was killed may have left a profile behind, which is
# ended here; it may also come to be a little later.
# Leaves what heapsonde residue says in residue.out, and its exit status in $status.
nobody_attached() {
  local id
  if [[ -n $daemon_pid ]]; then
    for id in $("$HEAPSONDE" status --json | jq .profile); do
      "$HEAPSONDE" stop "$id" 2>/dev/null || true
      "$HEAPSONDE" discard "$id" 2>/dev/null || true
    done
    [[ $("$HEAPSONDE" status) == 'no profiles' ]] || return
  fi
  has_ended "$target_pid" && return
  status=0
  "$HEAPSONDE" residue -p "$target_pid" >residue.out 2>residue.err || status=$?
  not grep -q 'attached by' residue.out
}

objects_gone() {
  [[ ! -s objects ]] || wait_until "BPF objects to go" not left objects
}

nothing_stays() {
  local status=0
  wait_until "nobody to be attached" nobody_attached && objects_gone || return
  has_ended "$target_pid" && return
  ((status == 0)) && grep -q 'nothing left$' residue.out || fail "residue: status $status" || return
  untouched "$target_pid" || fail "armed: $(probes_armed "$target_pid"); up: $(probes_up "$target_pid")" || return
  tell target stop
  ended_with 0 "$target_pid" target.err || return
  diff "reference.$kind" <(result target)
}

# one_moment I [SIDE PHASE]
one_moment() {
  RANDOM=$((seed + $1))
  local kind=${KINDS[RANDOM % ${#KINDS[@]}]} side=${SIDES[RANDOM % ${#SIDES[@]}]} daemon
  local phase=${PHASES[RANDOM % ${#PHASES[@]}]} status=0 helpers
  side=${2:-$side} phase=${3:-$phase}
  # The target and both can be watched either way.
  daemon=$((RANDOM % 2))
  [[ $side != record ]] || daemon=0
  case $side in worker | supervisor | client) daemon=1 ;; esac
  moment="moment $1: kill $side of $kind at $phase"
  ((daemon)) && moment+=" (daemon)"
  : >objects
  if ((daemon)); then
    [[ -n $daemon_pid ]] || start_daemon || return
  fi
  rm -f client.* residue.*
  start_target target digests "$kind" || return
  if ((daemon)); then profile "$phase"; else recording "$phase"; fi || return
  mapfile -t helpers < <([[ -z $daemon_pid ]] || workers)
  note_objects "$client" "${helpers[@]}"
  strike "$side" && nothing_stays || status=$?
  exec {target_in}>&-
  rm -f target.in run.jsonl run.hsd
  return "$status"
}

# failed_moment: what there is to say of the moment that was.
failed_moment() {
  cat residue.out residue.err 2>/dev/null || true
  tail -n 5 client.err daemon.err 2>/dev/null || true
  fail "$moment: KILLS_SEED=$seed KILLS_FIRST=$i KILLS_N=1 is this one"
}

@test "kill -9 at random moments: nothing is left, and the target's results are right" {
  local seed=${KILLS_SEED:-$((RANDOM * 32768 + RANDOM))} n=${KILLS_N:-20} first=${KILLS_FIRST:-1}
  local i kind moment daemon_pid=
  echo "# seed $seed, $n moments" >&3
  for kind in "${KINDS[@]}"; do unobserved "$kind"; done
  for ((i = first; i < first + n; i++)); do
    one_moment "$i" || failed_moment
    [[ -z ${KILLS_VERBOSE-} ]] || echo "# $moment" >&3
  done
  [[ -z $daemon_pid ]] || stop_daemon
}

@test "kill -9 while probes are taken out, by each who does that and in each way: none stays" {
  local seed=${KILLS_SEED:-$((RANDOM * 32768 + RANDOM))} first=${KILLS_FIRST:-1} n=${KILLS_N:-8}
  local i kind moment daemon_pid=
  echo "# seed $seed" >&3
  for kind in "${KINDS[@]}"; do unobserved "$kind"; done
  for ((i = first; i < first + n; i++)); do
    one_moment "$i" record stop || failed_moment
    one_moment "$i" worker stop || failed_moment
    # With perf's links, which are more than one descriptor each.
    HEAPSONDE_WITHOUT=uprobe_multi one_moment "$i" record stop || failed_moment
  done
  stop_daemon
}
