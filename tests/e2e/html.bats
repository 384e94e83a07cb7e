#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# export --to html, looked at in a real browser: what the page shows is what the records
# say, however many call stacks there are and whatever their names.

load helpers

BROWSER=$BATS_TEST_DIRNAME/../browser/run

setup_file() {
  command -v chromium >/dev/null || {
    echo "no chromium: run scripts/setup" >&2
    return 1
  }
}

# capture NAME OPTION… -- PROGRAM ARG…: a recording, as NAME.hsd, NAME.html and NAME.jsonl.
capture() {
  record_around "$1" "$1.hsd" --format raw "${@:2}" && pages "$1"
}

# pages NAME: NAME.html and NAME.jsonl of NAME.hsd.
pages() {
  "$HEAPSONDE" export "$1.hsd" --to html -o "$1.html"
  "$HEAPSONDE" export "$1.hsd" --to jsonl -o "$1.jsonl"
}

# looks_right NAME: NAME.html shows what NAME.jsonl says; what was checked is in NAME.checks.
looks_right() {
  "$BROWSER" page.js "$1.html" "$1.jsonl" >"$1.checks" 2>"$1.err" && return
  cat "$1.checks" "$1.err"
  fail "the page of $1 does not show what its records say"
}

@test "every word sampled: frames, metrics and their widths are those of the records" {
  capture run -r 1 -- lifetimes 300
  # To be looked at by people: build/tests/page-*.png.
  SCREENSHOTS=$TESTS_BUILD/page looks_right run
  # Not only because there was nothing.
  grep -Eq '^live: [0-9]+ frames' run.checks
  grep -Eq '^promoted: [0-9]+ frames' run.checks
  cat run.checks
}

@test "the filter shows one domain" {
  capture run -r 1 -- domains 3000 --domains 3
  looks_right run
  grep -qx 'domains: 4' run.checks
}

@test "some words sampled: estimates, at the rate in force" {
  capture run -r 2^-4 -- lifetimes 3000
  looks_right run
}

@test "names that would be markup or script are names" {
  capture run -r 2^-4 -- lifetimes 3000
  "$BROWSER" hostile.js run.hsd hostile.hsd
  pages hostile
  looks_right hostile
  # As a text of the page's own, and not as an element: `<` is not in the data.
  grep -q 'u003c/script>\\u003cscript>window.pwned' hostile.html
  not grep -q '</script><script>window.pwned' hostile.html
}

@test "a page asks for nothing" {
  local urls
  capture run -r 2^-4 -- lifetimes 300
  # Within licences they are text. The names of XML's vocabularies are no addresses.
  sed 's/<pre>/\n&/; s/<\/pre>/&\n/' run.html | sed '/<pre>/,/<\/pre>/d' >page
  urls=$(grep -oE "https?://[^\"' )<]*" page | sort -u | grep -v '^http://www.w3.org/' || true)
  [[ -z $urls ]] || fail "addresses in the page: $urls"
  not grep -qE '<(script|link|img|iframe)[^>]+(src|href)=' page
  not grep -qE '@import|url\(' page
  grep -q "default-src 'none'" page
}

@test "a capture that was cut off gives a page that says so" {
  capture run -r 2^-4 -- lifetimes 3000
  head -c $(($(stat -c %s run.hsd) * 2 / 3)) run.hsd >cut.hsd
  "$HEAPSONDE" export cut.hsd --to html -o cut.html 2>cut.err
  grep -q 'cut off' cut.err
  "$BROWSER" opens.js cut.html
  grep -q '"is_cut":true' cut.html
}

@test "100,000 call stacks: the page opens and draws" {
  local ms frames first
  "$TESTS_BUILD/make-capture" -n 300000 -s 100000 -d 16 >big.hsd
  "$HEAPSONDE" export big.hsd --to html -o big.html
  "$BROWSER" opens.js big.html >opened
  read -r ms frames first <opened
  # No limit on time: the machine may be busy with anything else.
  echo "# $(stat -c %s big.html) bytes, first graph after $ms ms, $frames frames" >&3
  [[ $first == graph-section ]]
  # As many as can be seen, and not 100,000.
  ((frames > 100 && frames < 3100))
}

@test "an output that cannot be written is an error" {
  capture run -r 2^-4 -- lifetimes 300
  run "$HEAPSONDE" export run.hsd --to html -o /dev/full
  ((status == 1))
  [[ $output == "heapsonde: cannot write "* ]]
}

@test "timeline --html begins with the timeline, and refuses what makes no sense" {
  capture run -r 2^-4 -- lifetimes 3000
  "$HEAPSONDE" timeline run.hsd --html -o timeline.html
  "$BROWSER" opens.js timeline.html >opened
  grep -q ' timeline-section$' opened
  run "$HEAPSONDE" timeline run.hsd --html -o timeline.html
  ((status == 1))
  run "$HEAPSONDE" timeline run.hsd --html --json
  ((status == 2))
  run "$HEAPSONDE" timeline run.hsd -o table.txt
  ((status == 2))
}
