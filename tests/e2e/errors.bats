#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# Bad input: one clear line on stderr, nothing on stdout, exit 1 (2 for a usage error),
# and nothing changed. Needs root and BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers

# refused STATUS PATTERN ARG…: heapsonde ARG… ends with STATUS, and says in one line
# what matches PATTERN. PREFIX, if set, is a command that runs it.
refused() {
  local expected=$1 pattern=$2 status=0
  shift 2
  "${PREFIX[@]}" timeout -k 5 "$DEADLINE" "${BIN:-$HEAPSONDE}" "$@" >refused.out 2>refused.err \
    </dev/null 3>&- || status=$?
  if ((status != expected)) || [[ -s refused.out ]] || (($(wc -l <refused.err) != 1)) ||
    ! grep -Eiq -- "$pattern" refused.err; then
    echo "heapsonde $*"
    echo "ended with status $status, not $expected; it should say /$pattern/ in one line; it said"
    head -n 5 refused.err
    echo "and on stdout"
    head -n 5 refused.out
    return 1
  fi
}

# A process that is none of heapsonde's: its PID is in $bystander.
bystander() {
  sleep 1000 3>&- &
  bystander=$!
  children+=("$bystander")
}

@test "no such PID" {
  local max
  max=$(</proc/sys/kernel/pid_max)
  refused 1 'no such process|no process' record -p "$max"
  refused 1 'no such process|no process' stat -p "$max"
}

@test "not an OCaml program" {
  bystander
  refused 1 'ocaml' record -p "$bystander"
  refused 1 'ocaml' stat -p "$bystander"
  [[ -d /proc/$bystander ]]
}

@test "a kernel thread is not an OCaml program" {
  # kthreadd. In a PID namespace of its own this is some process all the same.
  refused 1 . record -p 2
}

@test "OCaml without the probes: the line says how to relink" {
  start_target target "$TESTS_BUILD/stock/busy"
  refused 1 'OCAMLPARAM|-runtime-variant' record -p "$target_pid"
  refused 1 'OCAMLPARAM|-runtime-variant' stat -p "$target_pid"
  tell target stop
  ended_with 0 "$target_pid" target.err
  grep -q '^ok' target.out
}

@test "a bytecode program, with and without a runtime of its own" {
  local how
  for how in byte custom; do
    start_target "$how" "$TESTS_BUILD/stock/plain.$how"
    local pid=${how}_pid
    refused 1 bytecode record -p "${!pid}"
    tell "$how" go
    ended_with 0 "${!pid}" "$how.err"
  done
}

@test "record -- CMD: a program without the probes is not even started" {
  refused 1 'OCAMLPARAM|-runtime-variant' record -o run.jsonl -- "$TESTS_BUILD/stock/lists" 1000
  refused 1 ocaml record -o run.jsonl -- touch started
  [[ ! -e started ]]
}

@test "record -- CMD: no such command, or one that cannot be run" {
  refused 1 'no-such-command' record -- ./no-such-command
  echo >not-executable
  refused 1 'not-executable' record -- ./not-executable
}

# A copy of heapsonde where anybody may run it: the build may be under /root.
for_everybody() {
  anywhere=$(mktemp -d /tmp/heapsonde-test.XXXXXX)
  chmod 755 "$anywhere"
  install -m 755 "$HEAPSONDE" "$TESTS_BUILD/busy" "$anywhere"
  BIN=$anywhere/heapsonde
  PREFIX=(setpriv --reuid 65534 --regid 65534 --clear-groups)
}

@test "not root: the line names the capabilities" {
  for_everybody
  # Also where the target is one's own.
  "${PREFIX[@]}" "$anywhere/busy" </dev/zero >target.out 2>&1 3>&- &
  local pid=$!
  children+=("$pid")
  wait_until "the target to be ready" grep -q ^ready target.out
  refused 1 'CAP_BPF.*CAP_PERFMON|CAP_PERFMON.*CAP_BPF|CAP_SYS_ADMIN' record -p "$pid"
  refused 1 'CAP_' record -- "$anywhere/busy"
}

@test "not root, and the target is somebody else's" {
  for_everybody
  start_target target busy
  refused 1 'root|CAP_' record -p "$target_pid"
  tell target stop
  ended_with 0 "$target_pid" target.err
}

@test "not root: what needs no privileges works" {
  for_everybody
  "${PREFIX[@]}" "$BIN" version >version.out
  grep -q heapsonde version.out
  "${PREFIX[@]}" "$BIN" list >list.out 2>list.err
  "${PREFIX[@]}" "$BIN" --help >help.out
}

@test "a kernel without BPF: the line names it" {
  start_target target busy
  # bpf(2) is system call 321; ENOSYS is 38.
  PREFIX=("$TESTS_BUILD/without-syscall" 321 38)
  refused 1 'bpf' record -p "$target_pid"
  wait_until "the target to be left alone" untouched "$target_pid"
  tell target stop
  ended_with 0 "$target_pid" target.err
}

@test "a kernel without BTF: the line names it, or it is not needed" {
  start_target target busy
  local status=0
  mkdir empty
  # shellcheck disable=SC2016
  unshare -m sh -c 'mount --bind empty /sys/kernel/btf && shift && exec "$@"' sh \
    -- "$HEAPSONDE" record -p "$target_pid" --duration 0.5 >run.jsonl 2>run.err || status=$?
  cat run.err
  if ((status != 0)); then
    ((status == 1))
    [[ $(wc -l <run.err) == 1 ]]
    grep -q BTF run.err
  else
    in_order run
  fi
  wait_until "the target to be left alone" untouched "$target_pid"
}

@test "a rate that is none" {
  bystander
  local rate
  for rate in 0 0.0 -1 -0.5 1.5 2 2^1 2^-99999 abc '' 1e-6x nan inf -inf 1e400 '2^' '2^-' ' 1'; do
    refused 2 rate record -p "$bystander" -r "$rate"
  done
  for rate in 0 -8 abc '' 8x 1e400; do
    refused 2 'interval' record -p "$bystander" --interval "$rate"
  done
}

@test "options that make no sense" {
  bystander
  refused 2 . record
  refused 2 . record -p "$bystander" -- "$TESTS_BUILD/lists"
  refused 2 . record -p "$bystander" --no-such-option
  refused 2 . record -p "$bystander" extra
  refused 2 . record -p abc
  refused 2 . record -p 0
  refused 2 . record -p -1
  refused 2 . record -p ''
  refused 2 . record -p "$bystander" -r 2^-10 --interval 8192
  refused 2 . record -p "$bystander" --stack-depth -1
  refused 2 . record -p "$bystander" --stack-depth many
  refused 2 . record -p "$bystander" --duration 0
  refused 2 . record -p "$bystander" --duration -1
  refused 2 . record -p "$bystander" --duration soon
  refused 2 . record -p "$bystander" --track everything
  refused 2 . record -p "$bystander" --track ''
  refused 2 . record -p "$bystander" --format xml
  refused 2 . record -p "$bystander" --domain x
  refused 2 . record -p "$bystander" --domain -1
  refused 2 . record -- 
  refused 2 . stat
  refused 2 . stat -p abc
  refused 2 . stat -p "$bystander" 0
  refused 2 . stat -p "$bystander" 1 0
  refused 2 . stat -p "$bystander" 1 1 1
  refused 2 . list extra
  refused 2 . version extra
  refused 2 . export
  refused 2 . no-such-command
}

@test "a domain that does not exist" {
  start_target target busy --domains 2
  refused 1 'domain.*77|77.*domain' record -p "$target_pid" --domain 77
  refused 1 'domain.*77|77.*domain' record -p "$target_pid" --domain 0 --domain 77
  wait_until "the target to be left alone" untouched "$target_pid"
  tell target stop
  ended_with 0 "$target_pid" target.err
}

@test "an output file that cannot be written" {
  start_target target busy
  refused 1 'no-such-folder' record -p "$target_pid" -o no-such-folder/run.jsonl
  mkdir folder
  refused 1 'folder' record -p "$target_pid" -o folder
  refused 1 'no-such-folder' record -o no-such-folder/run.jsonl -- "$TESTS_BUILD/lists"
  wait_until "the target to be left alone" untouched "$target_pid"
  tell target stop
  ended_with 0 "$target_pid" target.err
}

@test "an error leaves the file that -o names as it was" {
  bystander
  echo precious >run.jsonl
  refused 1 . record -p "$bystander" --force -o run.jsonl
  refused 2 . record -p "$bystander" -r 7 --force -o run.jsonl
  refused 1 . record --force -o run.jsonl -- "$TESTS_BUILD/stock/lists"
  [[ $(<run.jsonl) == precious ]]
}

@test "a full disk: one line, exit 1, what was written is readable, the target runs on" {
  start_target target busy
  mkdir small
  mount -t tmpfs -o size=256k tmpfs small
  mounts+=("$PWD/small")
  refused 1 'space|full' record -p "$target_pid" -r 2^-6 -o small/run.jsonl
  (($(wc -c <small/run.jsonl) > 100000))
  # Whole lines of JSON, the last one included.
  jq -e -n 'reduce inputs as $r (0; . + 1) | . > 100' small/run.jsonl
  wait_until "the target to be left alone" untouched "$target_pid"
  tell target stop
  ended_with 0 "$target_pid" target.err
  grep -q '^ok' target.out
}

@test "a full disk under a raw capture: what was written can be exported" {
  start_target target busy
  mkdir small
  mount -t tmpfs -o size=256k tmpfs small
  mounts+=("$PWD/small")
  refused 1 'space|full' record -p "$target_pid" -r 2^-6 --format raw -o small/run.hsd
  # It may say that the capture is cut, but gives all there is.
  "$HEAPSONDE" export small/run.hsd >run.jsonl 2>export.err || true
  jq -e -n 'reduce inputs as $r (0; . + 1) | . > 100' run.jsonl
  tell target stop
  ended_with 0 "$target_pid" target.err
}

@test "a full disk from the first byte" {
  start_target target busy
  refused 1 'space|full' record -p "$target_pid" -o /dev/full
  wait_until "the target to be left alone" untouched "$target_pid"
  tell target stop
  ended_with 0 "$target_pid" target.err
}

@test "export refuses what is no capture" {
  refused 1 'no-such-file' export no-such-file.hsd
  echo '{"type":"header"}' >text.hsd
  refused 1 'capture' export text.hsd
  : >empty.hsd
  refused 1 'capture' export empty.hsd
  head -c 100000 /dev/urandom >random.hsd
  refused 1 'capture' export random.hsd
  mkdir folder.hsd
  refused 1 . export folder.hsd
}

@test "the same bad input twice changes nothing: no probe is left" {
  start_target target busy
  refused 1 . record -p "$target_pid" --domain 77
  refused 1 . record -p "$target_pid" --domain 77
  refused 1 . record -p "$target_pid" -o no-such-folder/x
  wait_until "the target to be left alone" untouched "$target_pid"
  tell target stop
  ended_with 0 "$target_pid" target.err
}
