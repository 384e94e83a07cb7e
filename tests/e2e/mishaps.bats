#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# What goes wrong when people make something of captures: wrong names, wrong times, nothing in
# them, a named pipe, an interruption, a full disk. Needs root for one test, and to record.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers

golden=$BATS_TEST_DIRNAME/../golden
formats="jsonl ctf pprof folded speedscope html"

# refused STATUS TEXT COMMAND…: it ends so, with one line on stderr that has the text.
refused() {
  local expected=$1 text=$2 status=0
  shift 2
  timeout "$DEADLINE" "$HEAPSONDE" "$@" >refused.out 2>refused.err </dev/null || status=$?
  ((status == expected)) || fail "$*: exit $status: $(<refused.err)" || return
  (($(wc -l <refused.err) == 1)) || fail "$*: $(<refused.err)" || return
  [[ $(<refused.err) == *"$text"* ]] || fail "$*: $(<refused.err)"
}

@test "each format is offered once" {
  local format
  for format in $formats; do
    (($("$HEAPSONDE" export -h | grep -c "^  $format  ") == 1)) || fail "$format" || return
  done
}

@test "the format is what the name of the output says, unless --to does" {
  local name format
  while read -r name format; do
    "$HEAPSONDE" export "$golden/lives.hsd" -o "$name"
    "$HEAPSONDE" export "$golden/lives.hsd" --to "$format" -o other
    cmp "$name" other
    rm "$name" other
  done <<'END'
x.jsonl jsonl
x.ctf ctf
x.pb.gz pprof
x.folded folded
x.speedscope.json speedscope
x.html html
x.txt jsonl
.html jsonl
END
  "$HEAPSONDE" export "$golden/lives.hsd" --to folded -o x.html
  cmp x.html <("$HEAPSONDE" export "$golden/lives.hsd" --to folded)
}

@test "an option that has no effect is refused" {
  local format
  for format in jsonl ctf; do
    refused 2 "no --metric" export "$golden/lives.hsd" --to "$format" --metric live -o x
  done
  refused 2 "pprof has no metric promoted" export "$golden/lives.hsd" --to pprof --metric promoted -o x
  for format in jsonl pprof folded speedscope html; do
    refused 2 "--ctf-version is for" export "$golden/lives.hsd" --to "$format" --ctf-version 2 -o x
  done
  [[ ! -e x ]]
}

@test "a capture is never replaced by what is made of it" {
  local format
  cp "$golden/lives.hsd" x.hsd
  ln -s x.hsd link.hsd
  ln x.hsd name.hsd
  for format in $formats; do
    refused 1 "is the capture itself" export x.hsd --to "$format" -o x.hsd --force
    refused 1 "is the capture itself" export x.hsd --to "$format" -o link.hsd --force
    refused 1 "is the capture itself" export name.hsd --to "$format" -o x.hsd --force
  done
  refused 1 "is the capture itself" timeline x.hsd --html -o x.hsd --force
  cmp x.hsd "$golden/lives.hsd"
}

@test "an export that is interrupted leaves nothing, and what was there as it was" {
  local signal pid format old status
  mkfifo slow
  for signal in INT TERM HUP; do
    for format in jsonl html; do
      for old in no yes; do
        rm -f x
        [[ $old == no ]] || echo old >x
        # Both ends, so that the export neither ends nor waits for a writer.
        exec 9<>slow
        # With the signals that a shell's background jobs do not get.
        setsid env --default-signal=INT,HUP "$HEAPSONDE" export slow --to "$format" -o x --force 9>&- &
        pid=$!
        wait_until "what is unfinished" compgen -G 'x.*.new'
        kill -"$signal" "$pid"
        status=0
        wait "$pid" || status=$?
        exec 9>&-
        ((status == 128 + $(kill -l "$signal"))) || fail "$signal: exit $status" || return
        not compgen -G 'x.*' || fail "$signal, $format: left behind" || return
        if [[ $old == no ]]; then
          [[ ! -e x ]] || fail "$signal, $format: x" || return
        else
          [[ $(<x) == old ]] || fail "$signal, $format: x" || return
        fi
      done
    done
  done
}

@test "an export that is interrupted as soon as there is a file leaves none" {
  local pid n
  mkfifo slow
  exec 9<>slow
  # The moment is a short one: some of many tries hit it.
  for ((n = 0; n < 60; n++)); do
    setsid env --default-signal=INT "$HEAPSONDE" export slow -o x 9>&- &
    pid=$!
    until [[ -e x.$pid.new ]] || has_ended "$pid"; do :; done
    kill -INT "$pid"
    wait "$pid" || true
    not compgen -G 'x*' || fail "left behind"
  done
}

@test "a named pipe is read once, and from its beginning" {
  mkfifo pipe
  local format
  for format in $formats; do
    cat "$golden/lives.hsd" >pipe &
    timeout "$DEADLINE" "$HEAPSONDE" export pipe --to "$format" >"pipe.$format"
    wait $!
    "$HEAPSONDE" export "$golden/lives.hsd" --to "$format" >"file.$format"
    # These have the capture's name in them.
    [[ $format == html ]] && sed -i 's/"input":"[^"]*"/"input":""/' ./*.html
    cmp "pipe.$format" "file.$format"
  done
  cat "$golden/growing.hsd" >pipe &
  timeout "$DEADLINE" "$HEAPSONDE" leaks pipe >leaks.out
  wait $!
  grep -q 'growth is not known: for that a capture is read twice' leaks.out
  timeout "$DEADLINE" "$HEAPSONDE" leaks <(cat "$golden/growing.hsd") | cmp - leaks.out
  timeout "$DEADLINE" "$HEAPSONDE" leaks - <"$golden/growing.hsd" | cmp - leaks.out
}

@test "what is no capture is called so, by every command" {
  local input command
  : >empty
  head -c 4000 /dev/urandom | tr -d '\0(h' >random
  printf 'heapsond\4\0\0\0\3\0\0\0' >newer
  mkdir folder
  for input in empty:empty random:"not a capture" newer:"version 4/3" folder:"s a directory" \
    /proc/self/mem:"cannot read" absent:"cannot open" /dev/zero:"not a capture"; do
    for command in report leaks timeline "diff $golden/lives.hsd" "timeline --html" \
      "export --to jsonl" "export --to ctf" "export --to pprof" "export --to html"; do
      # shellcheck disable=SC2086  # words
      refused 1 "${input#*:}" $command "${input%%:*}"
    done
  done
}

@test "zeros without end are refused before they are unpacked" {
  head -c 300M /dev/zero | zstd -q >zeros.hsd
  { head -c 16 <(zstd -dcq "$golden/lives.hsd") && head -c 300M /dev/zero; } 2>/dev/null |
    zstd -q >header.hsd
  refused 1 "not a capture" report zeros.hsd
  refused 1 "damaged at byte 16" report header.hsd
}

@test "a full disk is called so, of whatever size the output is" {
  local format
  for format in $formats; do
    refused 1 "No space left" export "$golden/growing.hsd" --to "$format" -o /dev/full
  done
  mkdir disk
  mount -t tmpfs -o size=8k none disk
  mounts+=("$PWD/disk")
  refused 1 "No space left" export "$golden/growing.hsd" --to html -o disk/x
  refused 1 "No space left" export "$golden/growing.hsd" --to jsonl -o disk/x
  refused 1 "No space left" timeline "$golden/growing.hsd" --html -o disk/x
  [[ -z $(ls -A disk) ]]
  local status=0
  "$HEAPSONDE" report "$golden/growing.hsd" --json >disk/x 2>err || status=$?
  ((status == 1))
  grep -q 'No space left' err
}

@test "times after the end are noted, times that are none refused" {
  local option
  for option in --at --since --until; do
    "$HEAPSONDE" report "$golden/growing.hsd" "$option" 1h >out 2>err
    grep -q 'ends 64.6ms after its beginning, before the time that is asked for' err
    "$HEAPSONDE" report "$golden/growing.hsd" "$option" 10ms >out 2>err
    [[ ! -s err ]]
    refused 2 "not a time after the beginning" report "$golden/growing.hsd" "$option" -1
    refused 2 "not a time after the beginning" report "$golden/growing.hsd" "$option" soon
  done
  refused 2 "ends before it begins" report "$golden/growing.hsd" --since 5 --until 3
}

@test "the head says what is left out, and so does JSON" {
  local command
  for command in report leaks "diff $golden/lives.hsd"; do
    # shellcheck disable=SC2086  # words
    "$HEAPSONDE" $command "$golden/growing.hsd" --domain 0 --source normal --filter LEAK |
      grep -q '^#.*; of domain 0; of source normal; with "LEAK" on the stack$' || fail "$command" || return
    # shellcheck disable=SC2086  # words
    "$HEAPSONDE" $command "$golden/growing.hsd" --domain 0 --source normal --filter $'L\xff' --json |
      jq -e '.domain == 0 and .source == "normal" and .filter == "L\ufffd"' || fail "$command" || return
  done
}

@test "of a recording without samples all is unsure, and no difference significant" {
  "$HEAPSONDE" record -q -r 2^-40 -o empty.hsd -- "$TESTS_BUILD/lists" 2000 >/dev/null
  "$HEAPSONDE" report empty.hsd --json >report.json
  jq -e '.recording | .blocks == 0 and .rate_low == .rate_high and .rate_low > 0' report.json
  # 3.69 samples.
  jq -e '.total | [.allocated, .live, .promoted] | all(.words == 0 and .high > 3e12)' report.json
  "$HEAPSONDE" diff empty.hsd "$golden/growing.hsd" --json >diff.json
  jq -e '(.rows | length > 5) and ([.rows[], .total] | all(.significant | not))' diff.json
  "$HEAPSONDE" timeline empty.hsd --json >timeline.json
  jq -e '.steps | length == 1 and (.[0].live | .value == 0 and .high > 3e12)' timeline.json
  # The same program at rate 1: the difference is the rate's alone.
  "$HEAPSONDE" record -q -r 1 -o all.hsd -- "$TESTS_BUILD/lists" 2000 >/dev/null
  "$HEAPSONDE" diff empty.hsd all.hsd --json | jq -e '[.rows[], .total] | all(.significant | not)'
  local format
  for format in $formats; do
    "$HEAPSONDE" export empty.hsd --to "$format" -o "empty.$format"
  done
  zcat empty.pprof | protoc --decode_raw >/dev/null
  jq -e '.profiles | all(.samples == [])' empty.speedscope
  [[ ! -s empty.folded ]]
}

@test "what was not recorded is an error or left out of exports, and not 0" {
  "$HEAPSONDE" record -q -r 1 --track alloc -o allocs.hsd -- "$TESTS_BUILD/lists" 200 >/dev/null
  local metric format
  for metric in live promoted survivors; do
    for format in folded speedscope html; do
      refused 1 "only what was allocated is known" export allocs.hsd --to "$format" --metric "$metric"
    done
  done
  refused 1 "only what was allocated is known" export allocs.hsd --to pprof --metric live
  refused 1 "only what was allocated is known" timeline allocs.hsd --html
  refused 1 "survivors are not known" export "$golden/v2.raw" --to folded --metric survivors
  [[ $("$HEAPSONDE" export allocs.hsd --to speedscope | jq -c '[.profiles[].name]') == '["allocated"]' ]]
  [[ $("$HEAPSONDE" export "$golden/v2.raw" --to speedscope | jq '.profiles | length') == 3 ]]
  "$HEAPSONDE" export allocs.hsd -o allocs.pb.gz
  go tool pprof -raw allocs.pb.gz 2>/dev/null | grep -qx 'alloc_objects/count alloc_space/bytes\[dflt\]'
  "$HEAPSONDE" record -q -r 1 --stack-depth 0 -o flat.hsd -- "$TESTS_BUILD/lists" 200 >/dev/null
  "$HEAPSONDE" report flat.hsd | grep -qx '# no call stacks were recorded (--stack-depth 0)'
}

@test "folded live words come with a note that older blocks are not in them" {
  "$HEAPSONDE" export "$golden/growing.hsd" --to folded --metric live >out 2>err
  grep -q 'blocks allocated before the recording began are not known' err
  "$HEAPSONDE" export "$golden/growing.hsd" --to folded --metric live -q 2>err | cmp - out
  [[ ! -s err ]]
}

@test "a recording sampled until it began to detach, and not for as long as that took" {
  start_target target busy
  # All but what was under way has been allocated by then, and there is time after it.
  sampled_until() {
    "$HEAPSONDE" record -q -p "$target_pid" -r 2^-14 --duration "$1" --force -o run.hsd || return
    "$HEAPSONDE" export run.hsd >run.jsonl || return
    jq -es '(map(select(.type == "summary")) | first) as $s
      | [.[] | select(.type == "alloc_minor" or .type == "alloc_major") | .time] as $times
      | ($times | length > 100) and $s.sampled_until < $s.time
        and ($times | map(select(. <= $s.sampled_until)) | length) * 2 > ($times | length)' run.jsonl
  }
  given_time sampled_until
  tell target stop
  ended_with 0 "$target_pid" target.err
  "$HEAPSONDE" report run.hsd --json >report.json
  jq -es '.[0].recording.seconds as $seconds
    | ([.[] | select(.type == "header") | .time] | first) as $begin
    | ([.[] | select(.type == "summary") | .sampled_until] | first) as $until
    | ($seconds - ($until - $begin) / 1e9) | fabs < 1e-6' report.json run.jsonl
}
