# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What the end-to-end tests share: targets and heapsondes in the background, waiting
# for conditions, the checkers of tests/lib.
#
# in:   HEAPSONDE, TESTS_BUILD, in a build with sanitizers HEAPSONDE_REPORTS (scripts/run-e2e)
# out:  functions. Each works in the test's own folder, which is the current one.
#
# No test depends on how long something takes: what is waited for has a deadline
# that a machine many times slower than usual still meets, and missing it fails the
# test with what was waited for.
#
# Test bodies run under `set -e`, but a function called in a condition does not: the
# functions below return at the first failure by themselves.

# Tests use what the functions set, and the other way round, each in its own subshell.
# shellcheck disable=SC2034,SC2154

LIB=$(cd "$BATS_TEST_DIRNAME/../lib" && pwd)

# The seconds that anything may take before it counts as hung. (Emulated machines take longer.)
DEADLINE=${HEAPSONDE_TEST_DEADLINE:-120}

setup() {
  cd "$BATS_TEST_TMPDIR" || return
  children=()
  mounts=()
  cgroups=()
  anywhere= # a folder that others than root can read, if the test makes one
  # One for each test: what a sanitizer reports fails the test in which it was reported.
  if [[ -n ${HEAPSONDE_REPORTS-} ]]; then
    HEAPSONDE_REPORTS=$(mktemp -d "$HEAPSONDE_REPORTS/XXXXXX") && chmod 1777 "$HEAPSONDE_REPORTS" || return
  fi
}

# Nothing that a test started may outlive it, however it ended.
teardown() {
  local pid dir
  for pid in "${children[@]}"; do
    # One that has been waited for is gone, and its number may be somebody else's by now.
    is_of_this_test "$pid" || continue
    kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  for dir in "${cgroups[@]}"; do
    wait_until "$dir to be empty" remove_cgroup "$dir" || true
  done
  for dir in "${mounts[@]}"; do
    umount -l "$dir" || true
  done
  [[ -z $anywhere ]] || rm -rf "$anywhere"
  if [[ -n ${HEAPSONDE_REPORTS-} ]]; then
    no_reports "$HEAPSONDE_REPORTS" && rm -rf "$HEAPSONDE_REPORTS"
  fi
}

# no_reports FOLDER: no sanitizer has reported anything there; if one has, that is shown. (LSan also says
# there that a thread took long to stop.)
no_reports() {
  local file found=0
  for file in "$1"/*; do
    grep -qs 'ERROR: \|runtime error: ' "$file" || continue
    found=1
    echo "--- a sanitizer about process ${file##*/}:"
    head -n 60 "$file"
  done
  ((found == 0))
}

# is_of_this_test PID: a child of the test, or what has the test's environment and another parent by
# now (a server that has gone into the background).
is_of_this_test() {
  local name value
  while read -r name value; do
    [[ $name != PPid: ]] || break
  done 2>/dev/null <"/proc/$1/status" || return
  [[ $value == "$BASHPID" ]] ||
    grep -Fqxz "BATS_TEST_TMPDIR=$BATS_TEST_TMPDIR" "/proc/$1/environ" 2>/dev/null
}

# remove_cgroup FOLDER: with all that runs in it; 1 if that takes longer.
remove_cgroup() {
  local pid
  while read -r pid; do kill -KILL "$pid" 2>/dev/null || true; done <"$1/cgroup.procs"
  rmdir "$1" 2>/dev/null
}

# fail WORD…: why, then the end of the test.
fail() {
  printf '%s\n' "$*" >&2
  return 1
}

# not COMMAND…: COMMAND fails. (bats does not notice a `! COMMAND` that fails.)
not() {
  ! "$@"
}

# ---- waiting ----------------------------------------------------------------------

# wait_until WHAT COMMAND…: until COMMAND succeeds.
wait_until() {
  local what=$1 end=$((SECONDS + DEADLINE))
  shift
  until "$@"; do
    if ((SECONDS >= end)); then
      fail "waited $DEADLINE s for $what"
      return
    fi
    sleep 0.02
  done
}

# given_time COMMAND…: COMMAND SECONDS, where what is looked for shows only if a program gets far
# enough in a time that is set beforehand. A machine that is busy with other things is given more.
given_time() {
  local seconds
  for seconds in 1 5 25; do
    "$@" "$seconds" && return
    echo "not so in $seconds s"
  done
  return 1
}

# anew FILE…: for a process in the background that writes them and is waited for by what they say. It empties
# them at some time after it has been started, and what an earlier one said must not be taken for its.
anew() {
  rm -f "$@"
}

# Has a child ended? (One that nobody has waited for yet is a zombie.)
has_ended() {
  local stat
  # Not $(<…): bats takes the failure of a subshell for the test's.
  { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 0
  [[ $stat == *') Z '* ]]
}

# ended_with STATUS PID [FILE…]: child PID ends, and with this exit status; if not, the
# files are shown.
ended_with() {
  local expected=$1 pid=$2 status=0 file
  shift 2
  wait_until "process $pid to end" has_ended "$pid" || return
  wait "$pid" || status=$?
  ((status == expected)) && return
  for file; do
    echo "--- $file:"
    tail -n 20 "$file"
  done
  fail "process $pid ended with status $status, not $expected"
}

# ---- targets ----------------------------------------------------------------------

# start_target NAME PROGRAM ARG…: start a program of tests/programs that waits for
# commands on stdin; NAME_pid, NAME_in (a descriptor) and NAME.out are its PID, its
# stdin and its stdout.
start_target() {
  local name=$1 program=$2 in
  shift 2
  [[ $program == */* ]] || program=$TESTS_BUILD/$program
  mkfifo "$name.in"
  anew "$name.out"
  # Open for both, so that neither side waits for the other.
  exec {in}<>"$name.in"
  "$program" "$@" <"$name.in" >"$name.out" 2>"$name.err" {in}>&- 3>&- &
  printf -v "${name}_pid" %d $!
  printf -v "${name}_in" %d "$in"
  children+=($!)
  wait_until "$program to be ready" grep -qs ^ready "$name.out"
}

# tell NAME LINE: a command to a target.
tell() {
  local in=${1}_in
  printf '%s\n' "$2" >&"${!in}"
}

# said NAME PATTERN: a line of a target's stdout matches; waits for it.
said() {
  wait_until "$1 to say $2" grep -Eq "$2" "$1.out"
}

# ---- heapsonde --------------------------------------------------------------------

# start_record NAME OPTION…: heapsonde record in the background, its records in
# NAME.jsonl, its diagnostics in NAME.err; NAME_pid is its PID. Returns when it samples.
start_record() {
  local name=$1
  shift
  anew "$name.jsonl"
  "$HEAPSONDE" record --force -o "$name.jsonl" "$@" >"$name.out" 2>"$name.err" </dev/null 3>&- &
  printf -v "${name}_pid" %d $!
  children+=($!)
  wait_until "$name to sample" samples_or_ended "$name" $!
  has_records "$name" && return
  cat "$name.err"
  fail "heapsonde record $* did not start"
}

has_records() {
  grep -qs '^{"type":"profile".*"sampling"' "$1.jsonl"
}

samples_or_ended() {
  has_records "$1" || has_ended "$2"
}

# end_record NAME [SIGNAL]: the recording ends, by itself or by the signal, with
# status 0, and the records are in good order. Makes NAME.tsv.
end_record() {
  local name=$1 pid=${1}_pid
  [[ -z ${2-} ]] || kill "-$2" "${!pid}"
  ended_with 0 "${!pid}" "$name.err" && in_order "$name"
}

# record_around NAME FILE OPTION… -- PROGRAM ARG…: heapsonde record around a program, one of
# the test programs unless it is a path, into FILE; it must end with status 0. Makes
# NAME.out, the program's stdout, and NAME.err.
record_around() {
  local name=$1 file=$2 options=() status=0 program
  shift 2
  while [[ $1 != -- ]]; do
    options+=("$1")
    shift
  done
  program=$2
  shift 2
  [[ $program == */* ]] || program=$TESTS_BUILD/$program
  "$HEAPSONDE" record "${options[@]}" -o "$file" -- "$program" "$@" \
    >"$name.out" 2>"$name.err" </dev/null 3>&- || status=$?
  ((status == 0)) && return
  cat "$name.err"
  fail "heapsonde record ${options[*]} -- $program $* ended with status $status"
}

# record_run NAME OPTION… -- PROGRAM ARG…: the same as JSON lines, and the records must be in
# order. Makes NAME.jsonl and NAME.tsv too.
record_run() {
  record_around "$1" "$1.jsonl" --force "${@:2}" && in_order "$1"
}

# in_order NAME [OPTION…]: the records of NAME.jsonl are well-formed and in order.
in_order() {
  local name=$1
  shift
  "$LIB/flatten" "$name.jsonl" >"$name.tsv" || return
  "$LIB/check_order" "$@" "$name.tsv" && return
  echo "--- $name.err:"
  tail -n 20 "$name.err"
  fail "the records of $name are not in order"
}

# statistically COMMAND…: COMMAND ends with a run of tests/lib/stats. When that is in
# doubt, a fresh run decides: see there.
statistically() {
  local status=0
  "$@" || status=$?
  ((status == 3)) || return "$status"
  echo "in doubt, so once more"
  "$@"
}

# count NAME TYPE: how many records of a type there are in NAME.tsv.
count() {
  awk -F '\t' -v type="$2" '$1 == type { n++ } END { print n + 0 }' "$1.tsv"
}

# reason NAME: why the recording ended, according to its summary.
reason() {
  awk -F '\t' '$1 == "summary" { print $2 }' "$1.tsv"
}

# ---- what must not be left behind ---------------------------------------------------

# bpf_objects PID: the BPF programs, maps and links that a process holds, as "prog 7".
bpf_objects() {
  cat "/proc/$1/fdinfo/"* 2>/dev/null |
    awk '/^(prog|map|link)_id:/ { sub(/_id:/, "", $1); print $1, $2 }' | sort -u
}

# no_object "KIND ID": the kernel does not know it any more.
no_object() {
  # shellcheck disable=SC2086  # two words
  ! bpftool ${1/ / show id } >/dev/null 2>&1
}

# gone FILE: none of the objects that bpf_objects wrote to FILE is left.
gone() {
  local object
  [[ -s $1 ]] || fail "no BPF objects were seen while heapsonde was attached" || return
  while read -r object; do
    wait_until "BPF $object to go" no_object "$object" || return
  done <"$1"
}

# probes PID: for each probe of the process, the run-time addresses of its nop and of
# its semaphore: "alloc_0 NOP SEMAPHORE", in decimal.
probes() {
  local exe=/proc/$1/exe start vaddr bias
  start=$(awk -v exe="$(readlink "$exe")" '$6 == exe && $3 == "00000000" {
    split($1, a, "-"); print a[1]; exit }' "/proc/$1/maps")
  vaddr=$(LC_ALL=C readelf -lW "$exe" | awk '$1 == "LOAD" { print $3; exit }')
  bias=$((0x$start - vaddr))
  LC_ALL=C readelf -nW "$exe" | awk '
    /Provider:/ { ours = $NF == "ocaml" }
    $1 == "Name:" { name = $2 }
    $1 == "Location:" && ours { gsub(/,/, ""); print name, $2, $6 }' |
    while read -r name location semaphore; do
      echo "$name $((location + bias)) $((semaphore + bias))"
    done
}

# peek PID: for each probe of the process, what stands there: "alloc_0 nop 0", its site and
# the value of its semaphore. A site is a nop of one byte and one of ten (runtime/probes.h),
# and either may be attached to, as the kernel has it. "nop" is a site that does nothing: of
# the ten bytes the last five are an operand, and a kernel that has optimized a probe leaves
# its call's there when it takes the probe out. Else the site's first two bytes are told, in
# hexadecimal: "cc66" is a breakpoint on the first nop, "90cc" one on the second, "9048" the
# beginning of an optimized probe.
peek() {
  local pid=$1 column low high
  probes "$pid" >"probes.$pid"
  # One read for all sites and one for all semaphores, as each stand close together.
  for column in 2 3; do
    read -r low high < <(awk -v c=$column 'NR == 1 || $c < low { low = $c } $c > high { high = $c }
      END { printf "%.0f %.0f\n", low, high - low + (c == 2 ? 6 : 2) }' "probes.$pid")
    dd if="/proc/$pid/mem" bs="$high" skip="$low" count=1 iflag=skip_bytes,fullblock status=none |
      od -An -v -w1 -tx1 >"peek.$column" || return
  done
  awk '
    FILENAME ~ /^peek/ { byte[substr(FILENAME, 6), FNR - 1] = $1; next }
    { at2[NR] = $2; at3[NR] = $3; name[NR] = $1 }
    FNR == 1 { first = NR; low2 = $2; low3 = $3 }
    $2 < low2 { low2 = $2 }
    $3 < low3 { low3 = $3 }
    function digit(c) { return index("0123456789abcdef", c) - 1 }
    function number(hex) { return 16 * digit(substr(hex, 1, 1)) + digit(substr(hex, 2, 1)) }
    function site(at,  bytes, i) {
      for (i = 0; i < 6; i++)
        bytes = bytes byte[2, at + i]
      return bytes == "90662e0f1f84" ? "nop" : substr(bytes, 1, 4)
    }
    END {
      for (i = first; i <= NR; i++)
        print name[i], site(at2[i] - low2),
          number(byte[3, at3[i] - low3]) + 256 * number(byte[3, at3[i] - low3 + 1])
    }' peek.2 peek.3 "probes.$pid"
}

# probes_up PID: the names of the probes whose semaphore is not 0.
probes_up() {
  peek "$1" | awk '$3 != 0 { print $1 }'
}

# probes_armed PID: the names of the probes that are no nops now.
probes_armed() {
  peek "$1" | awk '$2 != "nop" { print $1 }'
}

untouched() {
  local state
  state=$(peek "$1") && [[ -n $state ]] && awk '$2 != "nop" || $3 != 0 { bad = 1 } END { exit bad }' <<<"$state"
}

# nothing_left PID FILE: process PID has no probe armed and no semaphore up any more,
# and the BPF objects listed in FILE are gone.
nothing_left() {
  if ! wait_until "process $1 to be left alone" untouched "$1"; then
    fail "still up: $(probes_up "$1"); still armed: $(probes_armed "$1")"
    return
  fi
  gone "$2"
}
