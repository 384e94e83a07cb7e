#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# heapsonde-variant, and what a program linked with the variant is when nothing is
# attached. Only two tests need root, to look into a running process.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

# bats file_tags=other-build

load helpers

# A copy of the OCaml library folder that may be changed, and an ocamlopt that uses it.
# Only what the variant and linking need: the compiler's own libraries are large.
copy_ocaml() {
  local where
  where=$(ocamlopt -where)
  mkdir -p ocaml/lib ocaml/bin
  cp -r "$where/caml" ocaml/lib
  cp "$where"/*.a "$where"/*.cmxa "$where"/*.cmi "$where"/*.cmx "$where"/*.o ocaml/lib 2>/dev/null || true
  cat >ocaml/bin/ocamlopt <<EOT
#!/bin/sh
OCAMLLIB=$PWD/ocaml/lib exec $(command -v ocamlopt) "\$@"
EOT
  chmod +x ocaml/bin/ocamlopt
  [[ $(ocaml/bin/ocamlopt -where) == "$PWD/ocaml/lib" ]]
}

# refused PATTERN ARG…: heapsonde-variant ARG… fails, and says in one line why.
refused() {
  local pattern=$1 status=0
  shift
  "$HEAPSONDE_VARIANT" "$@" >refused.out 2>refused.err </dev/null || status=$?
  if ((status != 1)) || (($(wc -l <refused.err) != 1)) || ! grep -Eiq -- "$pattern" refused.err; then
    echo "heapsonde-variant $*: status $status, should say /$pattern/ in one line; said"
    cat refused.err
    return 1
  fi
}

cat_hello() {
  echo 'let () = print_endline (String.concat " " (List.map string_of_int (List.init 5 Fun.id)))' >hello.ml
}

@test "into DIR: a program links with -I DIR and runs" {
  "$HEAPSONDE_VARIANT" dir
  [[ -s dir/libasmrun_sonde.a && -s dir/libasmrun_sonde_pic.a ]]
  cat_hello
  ocamlopt -I dir -runtime-variant _sonde hello.ml -o hello
  [[ $(./hello) == "0 1 2 3 4" ]]
  readelf -nW hello | grep -q 'Provider: ocaml'
}

@test "OCAMLPARAM relinks a whole build, with no file changed" {
  "$HEAPSONDE_VARIANT" dir
  cat_hello
  OCAMLPARAM="_,I=$PWD/dir,runtime-variant=_sonde" ocamlopt hello.ml -o hello
  [[ $(./hello) == "0 1 2 3 4" ]]
  readelf -nW hello | grep -q 'Provider: ocaml'
}

@test "-output-obj with the _pic variant gives a shared object with the probes" {
  "$HEAPSONDE_VARIANT" dir
  cat_hello
  ocamlopt -I dir -runtime-variant _sonde_pic -output-complete-obj hello.ml -o hello.so ||
    ocamlopt -I dir -runtime-variant _sonde_pic -output-obj hello.ml -o hello.so
  readelf -nW hello.so | grep -q 'Provider: ocaml'
}

@test "--install and --uninstall change the OCaml they are pointed at, and only by the variant" {
  copy_ocaml
  ls ocaml/lib >before
  "$HEAPSONDE_VARIANT" --ocamlopt "$PWD/ocaml/bin/ocamlopt" --install
  ls ocaml/lib >installed
  diff before installed | grep '^>' >new
  [[ $(sort new) == "> libasmrun_sonde.a"$'\n'"> libasmrun_sonde_pic.a" ]]
  cat_hello
  ocaml/bin/ocamlopt -runtime-variant _sonde hello.ml -o hello
  [[ $(./hello) == "0 1 2 3 4" ]]
  # Twice is as good as once.
  "$HEAPSONDE_VARIANT" --ocamlopt "$PWD/ocaml/bin/ocamlopt" --install
  "$HEAPSONDE_VARIANT" --ocamlopt "$PWD/ocaml/bin/ocamlopt" --uninstall
  ls ocaml/lib >after
  diff before after
}

@test "the stock runtime of that OCaml stays as it is, byte for byte" {
  copy_ocaml
  cksum ocaml/lib/libasmrun*.a >before
  "$HEAPSONDE_VARIANT" --ocamlopt "$PWD/ocaml/bin/ocamlopt" dir
  cksum ocaml/lib/libasmrun*.a >after
  diff before after
}

@test "an OCaml whose memprof interface is not known is refused" {
  copy_ocaml
  # The version says 5.3, but the symbol is another.
  objcopy --redefine-sym caml_memprof_sample_young=caml_memprof_sample_small ocaml/lib/libasmrun.a
  refused 'caml_memprof_sample_young' --ocamlopt "$PWD/ocaml/bin/ocamlopt" dir
  [[ ! -e dir/libasmrun_sonde.a ]]
  refused 'caml_memprof_sample_young' --ocamlopt "$PWD/ocaml/bin/ocamlopt" --install
  [[ ! -e ocaml/lib/libasmrun_sonde.a ]]
}

@test "an OCaml whose headers are of another memprof interface is refused" {
  copy_ocaml
  # As if a parameter had been added.
  sed -i 's/extern void caml_memprof_sample_young(/&int extra, /' ocaml/lib/caml/memprof.h
  sed -i 's/caml_memprof_sample_young(uintnat wosize/caml_memprof_sample_young(int extra, uintnat wosize/' \
    ocaml/lib/caml/memprof.h
  grep -q 'int extra' ocaml/lib/caml/memprof.h
  local status=0
  "$HEAPSONDE_VARIANT" --ocamlopt "$PWD/ocaml/bin/ocamlopt" dir >out 2>err || status=$?
  cat err
  ((status == 1))
  grep -qi 'memprof' err
  [[ ! -e dir/libasmrun_sonde.a ]]
}

@test "no ocamlopt, no such folder, no arguments: one line" {
  PATH=/usr/bin:/bin refused 'ocamlopt' --ocamlopt /no/such/ocamlopt dir
  refused 'dir|proc' /proc/no/such/dir
  local status=0
  "$HEAPSONDE_VARIANT" >out 2>err || status=$?
  ((status == 2))
}

@test "the notes are standard: readelf reads all probes, with semaphores" {
  readelf -nW "$TESTS_BUILD/lists" >notes
  local probe
  for probe in alloc_{0..24} stack_{16,32,64,128,256,512,1024} minor_end major_end compact \
    domain_spawn domain_terminate exit registry; do
    grep -qE "Name: $probe\$" notes || fail "no probe $probe"
  done
  awk '$1 == "Location:" { n++; if ($6 !~ /^0x0*[1-9a-f]/) bad++ }
    END { print n " notes, " bad + 0 " without a semaphore"; exit !n || bad }' notes
}

@test "bpftrace lists the probes" {
  bpftrace -l "usdt:$TESTS_BUILD/lists:*" >probes.txt
  grep -Eq 'ocaml:alloc_0$' probes.txt
  grep -Eq 'ocaml:minor_end$' probes.txt
}

@test "bpftrace traces the probes of a running program" {
  start_target target busy
  timeout -k 5 "$DEADLINE" bpftrace -p "$target_pid" -e "usdt:$TESTS_BUILD/busy:ocaml:minor_end { @n = count(); exit(); }" \
    >trace.out 2>&1
  cat trace.out
  grep -q '@n' trace.out
  wait_until "the target to be left alone" untouched "$target_pid"
  tell target stop
  ended_with 0 "$target_pid" target.err
}

@test "no site is a nop5, and each is a nop and a nop10 within a page" {
  # kernel-facts: an optimized nop5 corrupts the red zone on some kernels.
  local name location
  readelf -nW "$TESTS_BUILD/lists" | awk '
    $1 == "Name:" { name = $2 } $1 == "Location:" { gsub(/,/, ""); print name, $2 }' >sites
  # File offset of a text address: by the program header that holds it.
  readelf -lW "$TESTS_BUILD/lists" | awk '$1 == "LOAD" { print $2, $3, $5 }' >segments
  while read -r name location; do
    local offset vaddr size at bytes
    while read -r offset vaddr size; do
      if ((location >= vaddr && location < vaddr + size)); then
        at=$((location - vaddr + offset))
      fi
    done <segments
    bytes=$(dd if="$TESTS_BUILD/lists" bs=1 skip="$at" count=11 status=none | od -An -tx1 | tr -d ' \n')
    [[ $name == registry || $bytes == 90662e0f1f840000000000 ]] || fail "$name: $bytes"
    ((location % 4096 + 11 <= 4096)) || fail "$name crosses a page"
  done <sites
}

# same_as_stock PROGRAM ARG…: the same output with both runtimes. Under names of one
# length, because the program's name is among the blocks it allocates.
same_as_stock() {
  local program=$1
  shift
  cp "$TESTS_BUILD/stock/$program" ./stock
  cp "$TESTS_BUILD/${program%.native}" ./sonde
  ./stock "$@" <<<go >stock.out
  ./sonde "$@" <<<go >sonde.out
  # Times and addresses change from run to run.
  sed -E 's/[0-9]{9,}/TIME/g; /^moved/d' stock.out >stock.txt
  sed -E 's/[0-9]{9,}/TIME/g; /^moved/d' sonde.out >sonde.txt
  diff -u stock.txt sonde.txt
}

@test "nothing attached: output, collections and words are those of the stock runtime" {
  same_as_stock lists 100000
  same_as_stock lifetimes 2000
  same_as_stock plain.native 1000
}

@test "nothing attached: every test program runs to its end" {
  local program
  for program in lists combined arrays cstrings bigarrays marshals domains threads effects \
    callbacks lifetimes handoff memprof stack fork spawner nodebug; do
    "$TESTS_BUILD/$program" 3000 >"$program.out"
    grep -q '^quick_stat' "$program.out" || fail "$program"
  done
}

@test "nothing attached: domains and threads under load stay right" {
  start_target target busy --domains 4
  tell target spawn
  said target '^spawned'
  tell target stop
  ended_with 0 "$target_pid" target.err
  grep -q '^ok' target.out
}
