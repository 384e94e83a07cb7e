#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# make install and make uninstall: what is installed works where it is, and what is not
# ours stays. That shells and man find what they have is in manuals.bats. Needs root and
# BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2154

load helpers

ROOT=$BATS_TEST_DIRNAME/../..

# to_make TARGET VARIABLE=VALUE…
to_make() {
  make -s -C "$ROOT" "$@" >make.out
}

# all_under FOLDER: files, links and folders, with modes, link targets and contents.
all_under() {
  (cd "$1" && find . -printf '%p %y %m %l\n' | sort &&
    find . -type f -print0 | sort -z | xargs -0r cksum)
}

# records_with BIN: the heapsonde installed in BIN records a program linked with the
# variant that is installed there, and exactly: at rate 1 every block is reported.
records_with() {
  local bin=$1
  cat >lists.ml <<'OCAML'
let rec build n tail = if n = 0 then tail else build (n - 1) (n :: tail)
let () = print_int (List.length (Sys.opaque_identity (build 1000 [])))
OCAML
  "$bin/heapsonde-variant" installed_variant
  ocamlopt -g -I installed_variant -runtime-variant _sonde lists.ml -o lists
  "$bin/heapsonde" record --force -r 1 -o lists.jsonl -- ./lists >lists.out 2>lists.err
  [[ $(<lists.out) == 1000 ]]
  in_order lists
  # Cells of two words; what OCaml's start allocates is more, never less.
  (($(jq -s '[.[] | select(.type == "alloc_minor" and .size == 2)] | length' lists.jsonl) >= 1000))
}

@test "installed with DESTDIR: it is the same tree wherever DESTDIR is, and records" {
  to_make install DESTDIR="$PWD/one" PREFIX=/usr
  to_make install DESTDIR="$PWD/someone's other" PREFIX=/usr/
  diff <(all_under one) <(all_under "someone's other")
  not grep -rlF "$PWD" one/usr/lib one/usr/share
  # The folders are those of whoever makes a package of it: not noted.
  [[ ! -e one/usr/lib/heapsonde/folders ]]
  records_with "$PWD/one/usr/bin"
}

@test "a PREFIX with spaces and other signs: it records, and systemd accepts the unit" {
  # % is a specifier to systemd, & and | are something to sed and the shell.
  local prefix="$PWD/my own & 100% |opt" unit
  to_make install PREFIX="$prefix"
  unit=$prefix/lib/systemd/system/heapsonde.service
  cp "$unit" .
  systemd-analyze verify --man=no "$PWD/heapsonde.service" >said 2>&1 || {
    cat said
    return 1
  }
  cat said
  [[ ! -s said ]]
  # Had it not been understood so, the executable would be missed.
  rm "$prefix/bin/heapsonde"
  systemd-analyze verify --man=no "$PWD/heapsonde.service" >said 2>&1 || true
  grep -qF "$prefix/bin/heapsonde is not executable" said
  to_make install PREFIX="$prefix"
  records_with "$prefix/bin"
  to_make uninstall PREFIX="$prefix"
  [[ ! -e $prefix ]]
}

@test "uninstall leaves what was there before, and what came from elsewhere since" {
  local prefix=$PWD/usr
  mkdir -p usr/bin usr/share/man/man1 usr/share/zsh usr/lib/heapsonde
  echo mine >usr/bin/other
  all_under usr >before
  to_make install PREFIX="$prefix"
  # A second time changes nothing, nor what is known of the folders.
  all_under usr >once
  to_make install PREFIX="$prefix"
  diff once <(all_under usr)
  echo 'mine too' >usr/share/doc/heapsonde/notes
  echo 'mine too' >usr/lib/systemd/system/other.service
  to_make uninstall PREFIX="$prefix"
  grep -qx 'mine too' usr/share/doc/heapsonde/notes
  grep -qx 'mine too' usr/lib/systemd/system/other.service
  rm -r usr/share/doc usr/lib/systemd
  # Empty folders that were there are there; but for lib/heapsonde, which is ours by name.
  mkdir -p usr/lib/heapsonde
  diff before <(all_under usr)
}

@test "a PREFIX that systemd would not take is refused, and nothing is installed" {
  local bad status
  for bad in "/opt/it's" '/opt/a"b' '/opt/a\b' $'/opt/a\nb'; do
    status=0
    "$ROOT/scripts/install" "$PWD/root" "$bad" >out 2>err || status=$?
    ((status == 2))
    [[ $(wc -l <err) == 1 && ! -e root ]]
  done
}

@test "uninstall without an installation, and twice, does nothing" {
  mkdir usr
  to_make uninstall PREFIX="$PWD/usr"
  to_make install PREFIX="$PWD/usr"
  to_make uninstall PREFIX="$PWD/usr"
  to_make uninstall PREFIX="$PWD/usr"
  [[ -d usr && -z $(ls -A usr) ]]
}

@test "installed over an older one: its sources are not compiled with ours" {
  to_make install DESTDIR="$PWD/root"
  local lib=$PWD/root/usr/local/lib/heapsonde
  # A file of a release that had it.
  echo '#error "this is an old one"' >"$lib/runtime/old.c"
  to_make install DESTDIR="$PWD/root"
  [[ ! -e $lib/runtime/old.c ]]
  "$lib/heapsonde-variant" variant
  echo '#error "this is an old one"' >"$lib/runtime/old.c"
  to_make uninstall DESTDIR="$PWD/root"
  [[ -z $(find root ! -type d) ]]
}

@test "documents refer to each other where they are installed" {
  to_make install DESTDIR="$PWD/root" PREFIX=/usr
  local doc=root/usr/share/doc/heapsonde file link n=0
  for file in "$doc"/*.md "$doc"/docs/*.md; do
    while read -r link; do
      case $link in
        *://* | '#'* | '' | ../user/* | ../scripts/* | scripts/* | ../tests/* | ../bpf/* | ../runtime/*) continue ;;
      esac
      [[ -e ${file%/*}/${link%%#*} ]] || fail "${file##*/} refers to $link"
      n=$((n + 1))
    done < <(grep -oE '\]\([^)]+\)' "$file" | sed -E 's/^\]\((.*)\)$/\1/')
  done
  ((n >= 10))
}
