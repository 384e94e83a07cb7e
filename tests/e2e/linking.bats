#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# Ways of linking and of starting a program: with each of them the records are exactly what
# the program did, every word of it, and each stack has its names; or the program is refused,
# and the line says why. Needs root and BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

# bats file_tags=ocaml

load helpers

# ocaml_link OUTPUT NAME FLAG…: link the test program NAME with these flags.
ocaml_link() {
  local output=$1 name=$2
  shift 2
  (
    cd "$TESTS_BUILD/obj" &&
      ocamlopt -g -I +unix -I +threads -I "$TESTS_BUILD/variant" "$@" \
        unix.cmxa threads.cmxa stubs.o oracle.cmx harness.cmx "$name.cmx" \
        -o "$BATS_TEST_TMPDIR/$output"
  ) 2>link.err && return
  cat link.err
  fail "cannot link $name with $*"
}

# linked FLAG…: both programs that `exact` runs, with the variant and these flags.
linked() {
  ocaml_link domains domains -runtime-variant _sonde "$@" &&
    ocaml_link stack stack -runtime-variant _sonde "$@"
}

# is FILE TYPE INTERPRETER: an ELF file of this type (EXEC, DYN), with a dynamic linker (yes)
# or without one (no). Otherwise a flag has done nothing, and the test shows nothing.
is() {
  local type interpreter=no
  type=$(LC_ALL=C readelf -hW "$1" | awk '$1 == "Type:" { print $2 }')
  [[ $(LC_ALL=C readelf -lW "$1") != *INTERP* ]] || interpreter=yes
  [[ "$type $interpreter" == "$2 $3" ]] || fail "$1 is $type, dynamic linker: $interpreter"
}

# exact_run PROGRAM: from its first allocation on, in four domains and both heaps: each site has
# as many words as the program says, and all together are the runtime's counters.
exact_run() {
  record_run run -r 1 -- "$1" 900 || return
  "$LIB/stats" -v rate=1 -v counters=2 run.tsv run.out && "$LIB/counters" run.tsv run.out
}

# exact_stacks PROGRAM: attached while it runs, its stacks are those that Printexc prints.
exact_stacks() {
  start_target target "$1" --wait || return
  start_record attached -p "$target_pid" -r 1 --stack-depth 1024 || return
  tell target go
  said target '^done' || return
  tell target end
  ended_with 0 "$target_pid" target.err || return
  end_record attached || return
  "$LIB/places" attached.jsonl target.out
}

exact() {
  exact_run ./domains && exact_stacks ./stack
}

# refused TEXT PID: attaching ends with status 1, and with TEXT in one line.
refused() {
  local status=0
  "$HEAPSONDE" record -p "$2" >refused.out 2>refused.err </dev/null || status=$?
  if ((status != 1)) || [[ -s refused.out ]] || (($(wc -l <refused.err) != 1)) ||
    ! grep -qF -- "$1" refused.err; then
    cat refused.err
    fail "heapsonde record -p $2 ended with status $status; it should be 1, and say '$1' in one line"
  fi
}

@test "a position-independent executable" {
  linked -ccopt -pie
  is domains DYN yes
  exact
}

@test "an executable at a fixed address" {
  linked -ccopt -no-pie
  is domains EXEC yes
  exact
}

@test "linked statically, at a fixed address" {
  linked -ccopt "-static -no-pie"
  is domains EXEC no
  exact
}

@test "linked statically, position-independent" {
  # With -Wl,-E, which ocamlopt passes to the linker, such a program of any OCaml dies in the C
  # library before its first instruction.
  linked -ccopt "-static-pie -Wl,--no-export-dynamic"
  is domains DYN no
  exact
}

@test "linked statically and stripped" {
  linked -ccopt "-static -no-pie"
  strip domains stack
  is domains EXEC no
  exact
}

@test "without sections that are not used, and with --as-needed and -z now" {
  linked -ccopt "-Wl,--gc-sections,--as-needed,-z,now,-z,relro"
  exact
}

@test "an OCaml program within a C program: -output-complete-obj" {
  local name
  cat >main.c <<'EOT'
#include <caml/callback.h>
int main(int argc, char **argv)
{
	(void)argc;
	caml_startup(argv);
	caml_shutdown();
	return 0;
}
EOT
  for name in domains stack; do
    ocaml_link "$name.o" "$name" -runtime-variant _sonde -output-complete-obj
    # shellcheck disable=SC2046  # a list of words
    cc -I "$(ocamlopt -where)" main.c "$name.o" -o "$name" $(ocamlopt -config-var native_c_libraries)
  done
  exact
}

@test "a bytecode program with its runtime inside (-output-complete-exe) is refused as bytecode" {
  (
    cd "$TESTS_BUILD/obj"
    ocamlc -g -output-complete-exe plain.ml -o "$BATS_TEST_TMPDIR/complete"
  )
  start_target target ./complete
  refused bytecode "$target_pid"
  tell target go
  ended_with 0 "$target_pid" target.err
}

@test "the shared runtime (libasmrun_shared) is refused, and the line says how to relink" {
  local name pid where
  where=$(ocamlopt -where)
  ocaml_link whole lists -without-runtime -cclib -lasmrun_shared -ccopt "-L$where -Wl,-rpath,$where"
  readelf -dW whole | grep -q libasmrun_shared.so
  strip -o stripped whole
  for name in whole stripped; do
    start_target "$name" "./$name" 900 --wait
    pid=${name}_pid
    refused '-runtime-variant _sonde' "${!pid}"
    tell "$name" go
    tell "$name" end
    ended_with 0 "${!pid}" "$name.err"
  done
}

@test "code that is loaded with Dynlink while attached: every word of it, with its line" {
  local how
  cp "$TESTS_BUILD/loader" .
  for how in whole stripped; do
    cp "$TESTS_BUILD/plugged.cmxs" .
    [[ $how == whole ]] || strip --strip-unneeded plugged.cmxs
    start_target "$how" ./loader 4000 --wait
    local pid=${how}_pid
    start_record "${how}_run" -p "${!pid}" -r 1
    tell "$how" go
    said "$how" '^done'
    # Its names are looked up while it is there; nothing says so once it has gone.
    wait_until "names of the loaded code" grep -q '"function":"Plugged.site"' "${how}_run.jsonl"
    tell "$how" end
    ended_with 0 "${!pid}" "$how.err"
    end_record "${how}_run"
    # The line is in what the program expects.
    "$LIB/stats" -v rate=1 -v counters=2 "${how}_run.tsv" "$how.out"
  done
}

@test "minor heaps of 4 ki, 8 Mi and 32 Mi words" {
  local size
  for size in 4k 8M 32M; do
    echo "# OCAMLRUNPARAM=s=$size"
    OCAMLRUNPARAM=s=$size exact_run "$TESTS_BUILD/domains"
    OCAMLRUNPARAM=s=$size record_run run -r 1 -- lists 60000
    "$LIB/stats" -v rate=1 -v counters=2 run.tsv run.out
    "$LIB/counters" run.tsv run.out
  done
}
