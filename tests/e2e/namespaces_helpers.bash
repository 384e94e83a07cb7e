# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What the tests of containers share, besides helpers.bash: targets behind unshare, chroot and
# the like, and what all commands say of one.
#
# in:   HEAPSONDE, TESTS_BUILD; helpers.bash, top_helpers.bash
# out:  functions
#
# The program is tests/programs/lists, at rate 1, where every word is a sample and nothing is
# random; with a small minor heap, so that its counters are never far behind.

# Tests use what the functions set, and the other way round, each in its own subshell.
# shellcheck disable=SC2034,SC2154

UNSHARE=$(command -v unshare)
NSENTER=$(command -v nsenter)

# start_inside NAME COMMAND ARG…: as start_target, where COMMAND may fork before it becomes the
# program. NAME_pid is the PID of the program, NAME_wrapper that of COMMAND.
start_inside() {
  local name=$1 pid child
  OCAMLRUNPARAM=s=4k start_target "$@" || return
  pid=${name}_pid
  pid=${!pid}
  printf -v "${name}_wrapper" %d "$pid"
  while child=$(pgrep -P "$pid"); do
    pid=$child
  done
  printf -v "${name}_pid" %d "$pid"
}

# end_target NAME: it goes on to its end, and ends well.
end_target() {
  local wrapper=${1}_wrapper
  tell "$1" end
  ended_with 0 "${!wrapper}" "$1.err"
}

# inner_pid PID: its PID in its own namespace.
inner_pid() {
  awk '$1 == "NSpid:" { print $NF }' "/proc/$1/status"
}

# put_mount OPTION… DIR: mount, until the test is over.
put_mount() {
  mount "$@" && mounts=("${!#}" "${mounts[@]}")
}

# overlay DIR LOWER: an overlayfs at DIR/merged over the folder LOWER, with an upper layer that
# is on another file system.
overlay() {
  mkdir "$1" && put_mount -t tmpfs none "$1" && mkdir "$1/upper" "$1/work" "$1/merged" &&
    put_mount -t overlay -o "lowerdir=$2,upperdir=$1/upper,workdir=$1/work" none "$1/merged"
}

# make_root DIR PROGRAM: a folder to chroot to, with the program at /program.
make_root() {
  local file
  mkdir -p "$1" && cp "$2" "$1/program" || return
  while read -r file; do
    mkdir -p "$1${file%/*}" && cp "$file" "$1$file" || return
  done < <(ldd "$2" | grep -o '/[^ ]*')
}

# ---- what is said of it -------------------------------------------------------------------

# sites NAME: what lists allocated, by kind, size and whole call stack, and how many samples.
sites() {
  jq -rn 'reduce inputs as $r ({};
      if $r.type == "stack" then
        .stacks["\($r.id)"] = ($r.frames | map("\(.function) \(.file):\(.line):\(.start)-\(.end)") | join(" < "))
      elif $r.type == "alloc_minor" or $r.type == "alloc_major" then
        .sums["\($r.type) \($r.size) \(.stacks["\($r.stack)"])"] += $r.n_samples
      else . end)
    | .sums | to_entries[] | select(.key | test("^[a-z_]+ [0-9]+ Lists\\.")) | "\(.key)\t\(.value)"' \
    "$1.jsonl" | sort
}

# build_ids NAME: of all that was mapped; what is mapped differs by nothing but its place.
build_ids() {
  jq -r 'select(.type == "header").mappings[].build_id' "$1.jsonl" | sort
}

# elf_build_id FILE
elf_build_id() {
  LC_ALL=C readelf -nW "$1" | awk '/Build ID:/ { print $NF; exit }'
}

# reference: how lists looks outside of all containers, in $BATS_FILE_TMPDIR: the sites, the
# build ids. Made once.
reference() {
  [[ ! -e $BATS_FILE_TMPDIR/sites ]] || return 0
  start_inside reference "$TESTS_BUILD/lists" 3000 --wait &&
    start_record reference_run -p "$reference_pid" -r 1 || return
  tell reference go
  said reference '^done' && end_target reference && end_record reference_run || return
  build_ids reference_run >"$BATS_FILE_TMPDIR/build_ids" &&
    sites reference_run >"$BATS_FILE_TMPDIR/sites" || return
  # Four sites, one of which is recursive to no more than the depth of stacks.
  (($(wc -l <"$BATS_FILE_TMPDIR/sites") >= 4)) ||
    fail "the reference is of no use: $(cat "$BATS_FILE_TMPDIR/sites")" || return
  grep -qx "$(elf_build_id "$TESTS_BUILD/lists")" "$BATS_FILE_TMPDIR/build_ids" ||
    fail "the reference has not the build id of lists"
}

# as_outside RUN NAME: the record RUN of target NAME is right to the word, and its names and build
# ids are those of the same program outside.
as_outside() {
  "$LIB/stats" -v counters=1 "$1.tsv" "$2.out" || return
  sites "$1" | diff "$BATS_FILE_TMPDIR/sites" - || fail "the sites of $1 are not those outside" || return
  build_ids "$1" | diff "$BATS_FILE_TMPDIR/build_ids" - || fail "the build ids of $1 are not those outside"
}

# listed PID FILTER: list says of the process what the jq filter wants.
listed() {
  "$HEAPSONDE" list --json 2>list.err >list.jsonl || return
  jq -e -n --argjson pid "$1" "[inputs | select(.pid == \$pid)] | length == 1 and (.[0] | $2)" \
    list.jsonl >/dev/null && return
  cat list.jsonl
  fail "list does not say of $1: $2"
}

# start_plain_top NAME PID: top without a terminal, into NAME.top; NAME_top is its PID.
start_plain_top() {
  "$HEAPSONDE" top -p "$2" -r 1 --delay 0.2 --rows 50 >"$1.top" 2>"$1.top.err" </dev/null 3>&- &
  printf -v "${1}_top" %d $!
  children+=($!)
  wait_until "$1: a table of top, or its end" top_or_ended "$1" $! &&
    has_table "$1" && return
  cat "$1.top.err"
  fail "heapsonde top -p $2 did not start"
}

has_table() {
  grep -q 'ALLOCATION SITE' "$1.top"
}

top_or_ended() {
  has_table "$1" || has_ended "$2"
}

# The words that stat says were allocated in the minor heap.
stat_words() {
  awk '$1 == 0 { words += $3 } END { printf "%.0f\n", words }' "$1.stat"
}

stat_has() {
  (($(stat_words "$1") >= $2))
}

# watched NAME [PID]: record, top and stat at once on target NAME, which waits to begin, given
# PID (NAME_pid); all of them are right to the word.
watched() {
  local name=$1 pid=${1}_pid allocated stat_pid
  pid=${2:-${!pid}}
  start_record "${name}_run" -p "$pid" -r 1 && start_plain_top "$name" "$pid" || return
  "$HEAPSONDE" stat -p "$pid" 0.2 >"$name.stat" 2>"$name.stat.err" </dev/null 3>&- &
  stat_pid=$!
  children+=("$stat_pid")
  wait_until "stat to print" grep -Eq '^ +0 alive' "$name.stat" || return
  tell "$name" go
  said "$name" '^done' || return
  # All but what is in the minor heap yet; and little more than what it says.
  allocated=$(awk -F '\t' '$1 == "expect" { n += $9 } END { print n }' "$name.out")
  wait_until "stat to show $allocated words" stat_has "$name" $((allocated - 4096)) || return
  (($(stat_words "$name") <= allocated + 4096)) || fail "$(cat "$name.stat")" || return
  end_target "$name" && end_record "${name}_run" || return
  local top=${name}_top
  ended_with 0 "${!top}" "$name.top.err" && ended_with 0 "$stat_pid" "$name.stat.err" &&
    as_outside "${name}_run" "$name" && top_exact "$name" "$name"
}
