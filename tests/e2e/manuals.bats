#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# --help, the manual pages and the completions of three shells say the same, and real
# shells complete with them; what is installed works where it is. Needs root and BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers
load daemon_helpers

ROOT=${BATS_TEST_DIRNAME%/tests/e2e}
COMPLETION=$ROOT/build/completion

# The shells find heapsonde by its name.
as_heapsonde() {
  PATH=$(dirname "$HEAPSONDE"):$PATH
  export PATH
}

# commands: all that --help names.
commands() {
  "$ROOT/scripts/completion/options" "$HEAPSONDE" >options.tsv
  awk -F '\t' '$2 == "-" && $3 == "-" { print $1 }' options.tsv
}

# options_of COMMAND…: theirs in --help, sorted.
options_of() {
  local command
  for command in "$@"; do
    awk -F '\t' -v command="$command" '$1 == command { print $2; print $3 }' options.tsv
  done | grep -v '^-$' | sort -u
}

# page_of COMMAND
page_of() {
  case $1 in
    daemon) echo "$ROOT/docs/man/heapsonde-daemon.8" ;;
    stop | discard | rate) echo "$ROOT/docs/man/heapsonde-start.1" ;;
    *) echo "$ROOT/docs/man/heapsonde-$1.1" ;;
  esac
}

@test "each command has a manual page with all its options and no others" {
  local command page bad=0
  commands >names
  (($(wc -l <names) >= 12))
  while read -r command; do
    page=$(page_of "$command")
    [[ -f $page ]] || fail "there is no $page"
    case $command in
      stop | discard | rate)
        # Together with start, whose options it has besides.
        comm -23 <(options_of "$command") <("$LIB/man-options" "$page") >differs
        ;;
      start)
        diff <(options_of start stop discard rate) <("$LIB/man-options" "$page") >differs || true
        ;;
      *) diff <(options_of "$command") <("$LIB/man-options" "$page") >differs || true ;;
    esac
    [[ ! -s differs ]] || {
      echo "heapsonde $command: --help and ${page##*/} differ:"
      cat differs
      bad=1
    }
  done <names
  ((!bad))
}

@test "each manual page is of a command, and heapsonde(1) names all commands" {
  local page name
  commands >names
  for page in "$ROOT"/docs/man/heapsonde-*; do
    name=${page##*/heapsonde-}
    name=${name%.[18]}
    [[ $name == variant ]] || grep -qx "$name" names || fail "$page is of no command"
  done
  while read -r name; do
    grep -Eq "^\.It Cm (.* )?$name( ,|\$)" "$ROOT/docs/man/heapsonde.1" ||
      fail "heapsonde.1 does not name $name"
  done <names
}

@test "heapsonde-variant's options are those of its page" {
  "$HEAPSONDE_VARIANT" --help >help
  # Its help is a text that does not mention itself.
  diff <(grep -o -e '--[a-z]*' help | sort -u) \
    <("$LIB/man-options" "$ROOT/docs/man/heapsonde-variant.1" | grep -vx -e -h -e --help)
}

@test "the manual pages have their sections, and mandoc and groff find nothing wrong" {
  local page section
  for page in "$ROOT"/docs/man/*.[18]; do
    mandoc -T lint -W warning "$page" >lint.out 2>&1 || true
    groff -mdoc -ww -Tutf8 "$page" >text.out 2>>lint.out
    [[ -s text.out ]]
    if [[ -s lint.out ]]; then
      cat lint.out
      fail "$page"
    fi
    for section in REQUIREMENTS OVERHEAD EXAMPLES; do
      grep -qx ".Sh $section" "$page" || fail "$page has no $section"
    done
  done
}

@test "what manual pages refer to is there" {
  local name section
  grep -hE '^\.Xr heapsonde' "$ROOT"/docs/man/* | sort -u >refs
  [[ -s refs ]]
  while read -r _ name section _; do
    [[ -f $ROOT/docs/man/$name.$section ]] || fail "$name($section)"
  done <refs
}

# ---- completion -----------------------------------------------------------------

in_bash() { "$LIB/complete-bash" "$COMPLETION/heapsonde.bash" "$@"; }
# The - that it offers where a command may be is the modifier of zsh's own.
in_zsh() { timeout 60 zsh -f "$LIB/complete-zsh" "$COMPLETION" "$*" | grep -vx -e - || true; }
in_fish() {
  # shellcheck disable=SC2016  # fish's own
  fish --no-config -c 'source $argv[1]; complete -C $argv[2]' "$COMPLETION/heapsonde.fish" "$*" |
    cut -f 1 | sort -u
}

# offers SHELL WORD… => CANDIDATE…: exactly these, sorted.
offers() {
  local shell=$1 words=()
  shift
  while [[ $1 != '=>' ]]; do
    words+=("$1")
    shift
  done
  shift
  "in_$shell" "${words[@]}" >offered
  diff <(printf '%s\n' "$@") offered || fail "$shell: ${words[*]}"
}

@test "bash, zsh and fish offer all commands" {
  as_heapsonde
  local shell
  commands | sort >names
  for shell in bash zsh fish; do
    "in_$shell" heapsonde '' | grep -v '^-' >offered
    diff <(cat names <(echo help) | sort) offered || fail "$shell"
    offers "$shell" heapsonde recor '=>' record
    offers "$shell" heapsonde help recor '=>' record
  done
}

@test "bash, zsh and fish offer all options of each command and no others" {
  as_heapsonde
  local command shell
  commands >names
  while read -r command; do
    options_of "$command" >wanted
    for shell in bash zsh fish; do
      "in_$shell" heapsonde "$command" - >offered </dev/null
      diff wanted offered || fail "$shell: $command"
    done
  done <names
}

@test "bash, zsh and fish complete words, lists, files, captures and programs" {
  as_heapsonde
  mkdir folder
  touch one.hsd two.hsd other.txt folder/three.hsd
  local shell before
  for shell in bash zsh fish; do
    # zsh leaves out what stands before the comma.
    before=minor,
    [[ $shell != zsh ]] || before=
    offers "$shell" heapsonde start --track minor,ma '=>' "$before"{major,map_file,marshal}
    offers "$shell" heapsonde record -o othe '=>' other.txt
    offers "$shell" heapsonde export tw '=>' two.hsd
    offers "$shell" heapsonde record -- heapsonde-varian '=>' heapsonde-variant
  done
  offers bash heapsonde export --to=json '=>' jsonl
  offers fish heapsonde export --to=json '=>' --to=jsonl
  offers zsh heapsonde export --to=json '=>' jsonl
  # No other file than captures; folders, as there may be some within.
  in_bash heapsonde export '' | grep -qx folder
  in_bash heapsonde export '' | not grep other
  in_zsh heapsonde export '' | not grep other
}

@test "bash, zsh and fish complete processes and profiles that are really there" {
  as_heapsonde
  start_daemon
  start_target target busy
  start_target stock "$TESTS_BUILD/stock/busy"
  [[ $("$HEAPSONDE" start -p "$target_pid" -r 2^-10 3>&-) == 1 ]]
  start_target other busy
  [[ $("$HEAPSONDE" start -p "$other_pid" -r 2^-10 3>&-) == 2 ]]
  local shell
  for shell in bash zsh fish; do
    "in_$shell" heapsonde record -p '' >pids
    grep -qx "$target_pid" pids || fail "$shell: no $target_pid"
    # What cannot be attached to is not offered.
    not grep -qx "$stock_pid" pids
    offers "$shell" heapsonde stop '' '=>' 1 2
  done
  "$HEAPSONDE" stop 1
  "$HEAPSONDE" stop 2
  "$HEAPSONDE" discard 1
  "$HEAPSONDE" discard 2
  stop_daemon
}

# ---- installing -----------------------------------------------------------------

@test "make install puts everything where it works, and make uninstall takes it away" {
  local root=$PWD/root file
  make -s -C "$ROOT" install DESTDIR="$root" PREFIX=/usr >/dev/null
  # The binary and the variant, with nothing of the build's folder.
  "$root/usr/bin/heapsonde" version | grep -q '^heapsonde'
  mkdir variant
  "$root/usr/bin/heapsonde-variant" variant
  [[ -s variant/libasmrun_sonde.a ]]
  # A page by its command's name, also where one page is of several.
  for file in heapsonde.1 heapsonde-record.1 heapsonde-rate.1 heapsonde-variant.1; do
    mandoc -T markdown "$root/usr/share/man/man1/$file" >page
    grep -qx '# NAME' page
  done
  man -M "$root/usr/share/man" -w 8 heapsonde-daemon
  grep -qx 'ExecStart=/usr/bin/heapsonde daemon' "$root/usr/lib/systemd/system/heapsonde.service"
  [[ -s $root/usr/share/doc/heapsonde/LICENSE ]]
  # The shells find the completions by themselves.
  PATH=$root/usr/bin:$PATH
  [[ $("$LIB/complete-bash" "$root/usr/share/bash-completion/completions/heapsonde" heapsonde expor) == export ]]
  [[ $(zsh -f "$LIB/complete-zsh" "$root/usr/share/zsh/site-functions" 'heapsonde expor') == export ]]
  XDG_DATA_DIRS=$root/usr/share fish -c 'complete -C "heapsonde expor"' | grep -q '^export'
  make -s -C "$ROOT" uninstall DESTDIR="$root" PREFIX=/usr >/dev/null
  [[ -z $(find "$root" ! -type d) ]]
  [[ -z $(find "$root" -path '*heapsonde*') ]]
}

@test "install refuses a PREFIX that is no absolute path" {
  local status=0
  "$ROOT/scripts/install" "$PWD/root" usr >out 2>err || status=$?
  ((status == 2))
  [[ ! -e root ]]
}
