#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# What a release is: the tarball, Debian's packages, opam's. They are built without a
# network, once for the whole file, and work where they are installed. The packages are
# installed on this machine and purged again. Needs root and BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2154

# bats file_tags=other-build

load helpers

ROOT=$BATS_TEST_DIRNAME/../..
DEBS=$BATS_FILE_TMPDIR/deb

version() {
  sed -n 's/^VERSION := //p' "$ROOT/Makefile"
}

# offline COMMAND…: where there is no network, nor anything that a build has kept at home.
offline() {
  mkdir -p "$BATS_FILE_TMPDIR/home"
  env -u HEAPSONDE_CACHE -u XDG_CACHE_HOME HOME="$BATS_FILE_TMPDIR/home" unshare -n "$@"
}

setup_file() {
  cd "$BATS_FILE_TMPDIR" || return
  if installed | grep -q .; then
    fail "on this machine these are installed, and would be purged: $(installed | tr '\n' ' ')" || return
  fi
  touch none_before
  make -s -C "$ROOT" dist || return
  cp "$ROOT/build/heapsonde-$(version).tar.xz" . || return
  # The unit tests have run before; here they would take as long as the build.
  offline env DEB_BUILD_OPTIONS=nocheck DEB_BUILD_PROFILES=nocheck \
    "$ROOT/scripts/deb" "heapsonde-$(version).tar.xz" deb >deb.log || {
    tail -n 40 deb.log >&2
    return 1
  }
}

teardown_file() {
  cd "$BATS_FILE_TMPDIR" || return
  # What was not ours to install is not ours to purge.
  [[ ! -e none_before ]] || purge
}

# The packages of ours that dpkg knows anything of.
installed() {
  { dpkg-query -W -f '${db:Status-Status} ${Package}\n' 'heapsonde*' 2>/dev/null || true; } |
    awk '$1 != "not-installed" { print $2 }'
}

# Where dpkg is held by somebody else, it is waited for.
dpkg_had() {
  dpkg_status=0
  dpkg "$@" >dpkg.out 2>&1 </dev/null || dpkg_status=$?
  ((dpkg_status == 0)) || ! grep -q 'lock' dpkg.out
}

to_dpkg() {
  wait_until "dpkg's lock" dpkg_had "$@" || return
  ((dpkg_status == 0)) || cat dpkg.out
  return "$dpkg_status"
}

purge() {
  local names
  names=$(installed)
  # shellcheck disable=SC2086  # a list of words
  [[ -z $names ]] || to_dpkg --purge $names
}

# places: what of ours is anywhere that a package may have put it.
places() {
  find /etc /usr /var/lib /run -xdev -name '*heapsonde*' ! -path /run/lock/heapsonde-setup \
    ! -path '/usr/local/*' ! -path '/etc/apt/*' | sort
}

@test "the tarball: the same bytes from the clone, again, and from the tarball itself" {
  local name
  name=heapsonde-$(version)
  tar -xf "$BATS_FILE_TMPDIR/$name.tar.xz"
  (umask 077 && offline make -s -C "$name" dist)
  cmp "$BATS_FILE_TMPDIR/$name.tar.xz" "$name/build/$name.tar.xz"
  make -s -C "$ROOT" dist
  cmp "$BATS_FILE_TMPDIR/$name.tar.xz" "$ROOT/build/$name.tar.xz"
}

@test "the tarball: one folder, nobody's files, nothing that was built but the page" {
  local name
  name=heapsonde-$(version)
  tar --numeric-owner -tvf "$BATS_FILE_TMPDIR/$name.tar.xz" >list
  awk '$2 != "0/0" || $1 !~ /^(-rw-r--r--|-rwxr-xr-x|drwxr-xr-x|l)/ { print; bad = 1 } END { exit bad }' list
  awk -v name="$name" 'index($6, name "/") != 1 { print; bad = 1 } END { exit bad }' list
  grep -q "$name/user/export/html/built/page.h" list
  not grep -E '\.o$|/build/|node_modules|/\.git/|/fuzz/(corpus|regressions)/' list
}

@test "Debian: lintian has nothing to say" {
  lintian --allow-root --fail-on error,warning --tag-display-limit 0 "$DEBS"/*.changes >said 2>&1 || {
    cat said
    return 1
  }
  cat said
  not grep -E '^[EWO]:' said
}

@test "Debian: each package that a part of is in the page has its licence in debian/copyright" {
  local package n=0
  while read -r package; do
    # Words, so that d3-time is not found in d3-timer.
    sed -n '/page.h$/,/^$/p' "$ROOT/scripts/debian/copyright" | tr -d ',.:' | grep -qwF -- "$package" ||
      fail "$package is not in scripts/debian/copyright"
    n=$((n + 1))
  done < <(sed -nE 's/^(.*<pre>)?([@a-z0-9/-]+) [0-9.]+ \([A-Za-z0-9.-]+\)$/\2/p' "$ROOT/build/gen/page.html")
  ((n >= 10))
}

@test "Debian: hardened, and with nothing of the build's folder" {
  dpkg-deb -x "$DEBS"/heapsonde_*.deb root
  readelf -hlWd root/usr/bin/heapsonde >elf
  grep -q 'GNU_RELRO' elf
  grep -qE 'FLAGS.*NOW' elf
  grep -qE 'Type: +DYN' elf
  not grep -qaF "$BATS_FILE_TMPDIR" root/usr/bin/heapsonde
}

@test "Debian: installed, it records; the service is not enabled; removed and purged, nothing is left" {
  places >before
  to_dpkg -i "$DEBS"/heapsonde_*.deb "$DEBS"/heapsonde-runtime_*.deb
  cat >lists.ml <<'OCAML'
let rec build n tail = if n = 0 then tail else build (n - 1) (n :: tail)
let () = print_int (List.length (Sys.opaque_identity (build 1000 [])))
OCAML
  /usr/bin/heapsonde-variant variant
  ocamlopt -g -I variant -runtime-variant _sonde lists.ml -o lists
  HEAPSONDE=/usr/bin/heapsonde record_run lists -r 1 -- "$PWD/lists"
  [[ $(<lists.out) == 1000 ]]
  # Cells of two words; what OCaml's start allocates is more, never less.
  (($(jq -s '[.[] | select(.type == "alloc_minor" and .size == 2)] | length' lists.jsonl) >= 1000))
  # The page came with the tarball.
  /usr/bin/heapsonde record --force -r 1 -o lists.hsd -- ./lists >out 2>err
  /usr/bin/heapsonde export lists.hsd --to html -o lists.html
  cmp <(head -c 2000 "$ROOT/build/gen/page.html") <(head -c 2000 lists.html)
  systemd-analyze verify --man=no heapsonde.service >said 2>&1
  cat said
  [[ ! -s said && $(systemctl is-enabled heapsonde.service) == disabled ]]
  not pgrep -f '^/usr/bin/heapsonde daemon'
  # As in an upgrade; and each of the two without the other.
  to_dpkg -i "$DEBS"/heapsonde_*.deb
  to_dpkg --remove heapsonde
  [[ ! -e /usr/bin/heapsonde ]]
  /usr/bin/heapsonde-variant variant
  purge
  diff before <(places)
}

@test "opam: the file passes lint, and has the version of the release" {
  # 35 and 36: homepage and bug-reports. There is none yet.
  opam lint --warnings=-35-36 "$ROOT/scripts/opam/heapsonde-runtime.opam" >said 2>&1 || {
    cat said
    return 1
  }
  not grep -q warning: said
  grep -qx "version: \"$(version)\"" "$ROOT/scripts/opam/heapsonde-runtime.opam"
}

@test "opam: installs the variant into a switch from the tarball, and takes it away again" {
  local where tarball repo=repo/packages
  where=$(ocamlopt -where)
  tarball=$BATS_FILE_TMPDIR/heapsonde-$(version).tar.xz
  mkdir -p "$repo/ocaml/ocaml.5.3.0" "$repo/heapsonde-runtime/heapsonde-runtime.$(version)"
  echo 'opam-version: "2.0"' >repo/repo
  # The project's OCaml as the switch's: the compiler itself is on PATH.
  cat >"$repo/ocaml/ocaml.5.3.0/opam" <<OPAM
opam-version: "2.0"
flags: compiler
install: [
  ["mkdir" "-p" "%{lib}%/ocaml"]
  ["sh" "-c" "cp -r '$where'/caml '$where'/*.a '$where'/*.cmxa '$where'/*.cmi '$where'/*.cmx '$where'/*.o '%{lib}%/ocaml'"]
]
setenv: OCAMLLIB = "%{lib}%/ocaml"
OPAM
  # What a repository adds.
  {
    cat "$ROOT/scripts/opam/heapsonde-runtime.opam"
    printf 'url {\n  src: "file://%s"\n  checksum: "sha512=%s"\n}\n' "$tarball" "$(sha512sum <"$tarball" | cut -d ' ' -f 1)"
  } >"$repo/heapsonde-runtime/heapsonde-runtime.$(version)/opam"
  export OPAMROOT=$PWD/opam OPAMYES=1 OPAMCOLOR=never
  # opam's own sandbox needs namespaces that a container may not give.
  offline opam init --bare --disable-sandboxing --no-setup --no-opamrc test ./repo
  offline opam switch create test --empty
  offline opam install ocaml.5.3.0
  all_archives() {
    (cd opam/test && find . -path ./.opam-switch -prune -o -print | sort)
  }
  all_archives >before
  offline opam install heapsonde-runtime
  diff before <(all_archives) | grep '^>' >new || true
  [[ $(<new) == "> ./lib/ocaml/libasmrun_sonde.a"$'\n'"> ./lib/ocaml/libasmrun_sonde_pic.a" ]]
  echo 'let () = print_string "ran"' >hello.ml
  offline opam exec -- ocamlopt -runtime-variant _sonde hello.ml -o hello
  readelf -nW hello | grep -q 'Provider: ocaml'
  [[ $(./hello) == ran ]]
  offline opam remove heapsonde-runtime
  diff before <(all_archives)
}
