#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# heapsonde export --to folded and --to speedscope: what they say is what the JSON lines
# of the same capture add up to, and their readers take them.

load helpers
load export_helpers

# unfold FILE: "WORDS<tab>FRAMES", the lines of each list of frames added up. Strict: a line
# is frames without blanks, but for the two that heapsonde makes up, one blank, digits.
unfold() {
  awk '
    !/^(\(no OCaml frame\)|\(stack lost\)|[^ ;]+(;[^ ;]+)*) [1-9][0-9]*$/ { print "not folded: " $0; exit 1 }
    { n = $NF; sub(/ [0-9]+$/, ""); sum[$0] += n; lines[$0]++ }
    END { for (f in sum) printf "%.0f\t%d\t%s\n", sum[f], lines[f], f }' "$1"
}

# compare NAME FILE COLUMN: the words of each list of frames are those of a column of
# NAME.sums, each line rounded by itself.
compare() {
  unfold "$2" >unfolded || {
    cat unfolded
    return 1
  }
  awk -F '\t' -v c="$3" '
    FILENAME ~ /sums$/ { words[$8] += $c; next }
    {
      d = words[$3] - $1
      if ((d < 0 ? -d : d) > $2 / 2 + 1e-6 * $1) { print $3 ": " $1 ", and the records say " words[$3]; bad = 1 }
      found[$3] = 1
    }
    END {
      for (f in words) if (words[f] >= 1 && !found[f]) { print f " is missing"; bad = 1 }
      exit bad
    }' "$1.sums" unfolded
}

@test "folded stacks are exact at rate 1, for each metric" {
  capture x -r 1 -- domains --words 5000
  export_to x folded alloc.txt
  compare x alloc.txt 4
  grep -q '^Stdlib__Domain\.spawn\.body;.*;Domains\.pairs [0-9]*$' alloc.txt
  export_to x folded live.txt --metric live
  compare x live.txt 6
  [ -s live.txt ]
  export_to x folded promoted.txt --metric promoted
  compare x promoted.txt 7
  [ -s promoted.txt ]
}

@test "folded stacks are the estimates that the records give" {
  capture x -r 2^-4 -- domains --words 100000
  export_to x folded alloc.txt
  compare x alloc.txt 4
  export_to x folded again.txt
  cmp alloc.txt again.txt
}

@test "speedscope files are as speedscope's schema demands, and their totals are right" {
  local metric column k=0 scope=x.speedscope.json
  npm_modules schema browser
  capture x -r 1 -- domains --words 5000
  export_to x speedscope $scope --metric promoted
  node "$LIB/../schema/validate.js" "${NODE_PATH#*:}/speedscope/dist/release/file-format-schema.json" $scope
  # The validator does find something.
  jq '.profiles[0].unit = 1' $scope >bad.json
  not node "$LIB/../schema/validate.js" "${NODE_PATH#*:}/speedscope/dist/release/file-format-schema.json" bad.json
  for column in 4 6 7; do
    [ "$(jq ".profiles[$k].endValue" $scope)" = $((8 * $(total x $column))) ]
    jq -e ".profiles[$k] | (.weights | add) == .endValue and (.weights | length) == (.samples | length)" $scope
    k=$((k + 1))
  done
  jq -e '.activeProfileIndex == 2 and (.profiles | length) == 4' $scope
  # The same frames as the folded stacks, and each index in range.
  for metric in alloc:0 promoted:2 survivors:3; do
    export_to x folded "$metric.txt" --metric "${metric%:*}"
    unfold "$metric.txt" | awk -F '\t' -v OFS='\t' '{ print 8 * $1, $3 }' | sort >folded
    jq -r --argjson k "${metric#*:}" '.shared.frames as $f | .profiles[$k] | [.samples, .weights] | transpose[] |
      "\(.[1])\t\(.[0] | map($f[.].name) | join(";"))"' $scope |
      awk -F '\t' '{ sum[$2] += $1 } END { for (s in sum) printf "%d\t%s\n", sum[s], s }' | sort >scope
    diff folded scope
  done
}

@test "speedscope shows its own format, the folded stacks and the pprof file" {
  npm_modules browser
  capture x -r 2^-4 -- domains --words 100000
  export_to x speedscope x.speedscope.json
  export_to x folded x.folded.txt
  export_to x pprof x.pb.gz
  for file in x.speedscope.json x.folded.txt x.pb.gz; do
    # The first two of its table are what allocates the most.
    node "$LIB/../browser/speedscope.js" "$file" Domains.pairs Domains.arrays >shown
    head -n 3 shown | tail -n 2 | cut -f 3 | sort | tr '\n' ' ' | grep -q '^Domains\.arrays.* Domains\.pairs'
  done
}
