#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# heapsonde export --to pprof, read with `go tool pprof`: what it says is what the JSON
# lines of the same capture add up to.

load helpers
load export_helpers

setup_file() {
  command -v go >/dev/null || {
    echo "go is missing; run scripts/setup" >&2
    return 1
  }
}

# pprof keeps settings below HOME, and caches below TMPDIR.
pprof() {
  HOME=$BATS_TEST_TMPDIR go tool pprof "$@" 3>&-
}

# compare NAME: the four values for each domain, source and innermost function are those of
# NAME.sums: words as bytes, each sample rounded by itself.
compare() {
  local name=$1
  "$LIB/pprof_sums" "$name.pb.gz" >"$name.pprof" || return
  awk -F '\t' '
    function differs(a, b, n) { d = a - b; return (d < 0 ? -d : d) > n / 2 + 1e-6 * a }
    {
      leaf = $8
      sub(/.*;/, "", leaf)
      key = $1 " " $2 " " leaf
    }
    FILENAME ~ /sums$/ {
      value[key, 1] += $3; value[key, 2] += 8 * $4; value[key, 3] += $5; value[key, 4] += 8 * $6
      known[key] = 1
      next
    }
    {
      n_keys++
      if (!known[key]) { print key " is not in the records"; bad = 1 }
      delete known[key]
      for (i = 1; i <= 4; i++)
        if (differs(value[key, i], $(i + 2), $7)) {
          printf "%s: value %d is %s, and the records say %.3f\n", key, i, $(i + 2), value[key, i]
          bad = 1
        }
    }
    END {
      for (key in known) { print key " is not in the profile"; bad = 1 }
      if (!n_keys) { print "the profile has no sample"; bad = 1 }
      exit bad
    }' "$name.sums" "$name.pprof"
}

# showing FILE OPTION…: the bytes or objects that -top accounts for, with these options.
showing() {
  local file=$1
  shift
  pprof -top -unit=B -nodefraction=0 -nodecount=100000 "$@" "$file" 2>/dev/null |
    sed -n 's/^Showing nodes accounting for \([0-9]*\)B\{0,1\},.*/\1/p'
}

@test "at rate 1 the four values are exact, by domain, source and function" {
  capture x -r 1 -- domains --words 5000
  export_to x pprof x.pb.gz
  compare x
  # All of it, to the byte: words are not rounded at rate 1.
  [ "$(showing x.pb.gz -sample_index=alloc_space)" = $((8 * $(total x 4))) ]
  [ "$(showing x.pb.gz -sample_index=inuse_space)" = $((8 * $(total x 6))) ]
}

@test "sampled, the values are the estimates that the records give" {
  capture x -r 2^-4 -- domains --words 200000
  export_to x pprof x.pb.gz
  compare x
  awk -F '\t' '$8 ~ /Domains\.(pairs|arrays)/ { n++ } END { exit n < 8 }' x.pprof
}

@test "blocks of other sources" {
  capture m -r 2^-3 -- marshals --words 50000
  export_to m pprof m.pb.gz
  compare m
  grep -q "^0	marshal	" m.pprof
  capture b -r 2^-10 -- bigarrays
  export_to b pprof b.pb.gz
  compare b
  grep -q "^0	custom	" b.pprof
}

@test "-tagfocus finds domains, domain 0 too, and sources" {
  local domain words
  capture x -r 1 -- domains --words 5000
  export_to x pprof x.pb.gz
  for domain in 0 1 2 3; do
    words=$(awk -F '\t' -v d=$domain '$1 == d { n += $4 } END { printf "%.0f", n }' x.sums)
    ((words > 0))
    [ "$(showing x.pb.gz -tagfocus="domain=$domain")" = $((8 * words)) ]
  done
  words=$(awk -F '\t' '$1 >= 1 && $1 <= 2 { n += $4 } END { printf "%.0f", n }' x.sums)
  [ "$(showing x.pb.gz -tagfocus=domain=1:2)" = $((8 * words)) ]
  words=$(awk -F '\t' '$2 == "normal" { n += $4 } END { printf "%.0f", n }' x.sums)
  [ "$(showing x.pb.gz -tagfocus=source=normal)" = $((8 * words)) ]
  # The arrays of 400 words, and nothing else, are that large.
  words=$(jq -n 'reduce (inputs | select(.size != null and .size >= 257)) as $b (0; . + $b.n_samples)' x.jsonl)
  ((words > 0))
  [ "$(showing x.pb.gz -tagfocus=bytes=2kb:)" = $((8 * words)) ]
}

@test "every report of pprof works, with each kind of value" {
  local index report
  capture x -r 2^-4 -- domains --words 50000
  export_to x pprof x.pb.gz
  for index in alloc_objects alloc_space; do
    for report in -top -traces -tree -peek=Domains.pairs -svg -dot; do
      pprof -sample_index=$index "$report" -output "report" x.pb.gz >/dev/null
      grep -q 'Domains\.pairs' report
    done
  done
  for index in inuse_objects inuse_space; do
    pprof -sample_index=$index -top x.pb.gz | grep -q "^Type: $index"
  done
  # What is shown without -sample_index follows --metric.
  pprof -top x.pb.gz | grep -q '^Type: alloc_space'
  export_to x pprof live.pb.gz --metric live
  pprof -top live.pb.gz | grep -q '^Type: inuse_space'
}

@test "it says of which program it is: command, mappings, build id, lines" {
  local id
  capture x -r 2^-4 -- domains --words 50000
  export_to x pprof x.pb.gz
  pprof -raw x.pb.gz >raw
  id=$(LC_ALL=C readelf -n "$TESTS_BUILD/domains" | awk '/Build ID:/ { print $3 }')
  [[ -n $id ]]
  # The first mapping is the executable, and it has the frames.
  grep -Eq "^1: 0x[0-9a-f]+/0x[0-9a-f]+/0x[0-9a-f]+ .*/domains $id \[FN\]\[FL\]\[LN\]\[IN\]" raw
  grep -Eq '^ *[0-9]+: 0x[0-9a-f]+ M=[0-9]+ Domains\.pairs .*domains\.ml:[0-9]+' raw
  not grep -E '^ *[0-9]+: 0x[0-9a-f]+ Domains\.' raw
  grep -q '^Period: 128$' raw
  grep -q '^PeriodType: space bytes$' raw
  pprof -comments x.pb.gz >comments
  grep -qx "command: $TESTS_BUILD/domains --words 50000" comments
  grep -q 'blocks allocated before the recording began are in no figure' comments
}

@test "the same capture gives the same bytes, and a damaged one no file" {
  local n
  capture x -r 2^-4 -- lists
  export_to x pprof one
  export_to x pprof two
  cmp one two
  # Cut within the header, within the names, and anywhere.
  for n in 0 16 20 1000 5000 20000; do
    head -c $n x.hsd >cut.hsd
    rm -f cut.out
    if export_to cut pprof cut.out 2>cut.err; then
      pprof -raw cut.out >/dev/null
      pprof -comments cut.out | grep -q 'cut off'
    else
      [ "$(wc -l <cut.err)" = 1 ]
      [ ! -e cut.out ]
    fi
  done
  not "$HEAPSONDE" export --to pprof x.hsd >/dev/full 2>full.err
  grep -q 'No space left' full.err
}
