# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
#
# apt-source.bash: where this machine has Debian from, and how to write another suite of the same
# mirror down. Sourced, never run.
#
# in:   apt's configuration
# out:  the functions below, which change nothing

# has_suite CODENAME: has apt read its package list?
has_suite() {
  # shellcheck disable=SC2016  # apt's own variables
  apt-get indextargets --format '$(CREATED_BY) $(CODENAME) $(COMPONENT)' |
    grep -qx "Packages $1 main"
}

# main_source CODENAME: the address of this suite and the file that names it; nothing if apt has
# not read it.
main_source() {
  # shellcheck disable=SC2016  # apt's own variables
  apt-get indextargets --format \
    '$(CREATED_BY) $(CODENAME) $(COMPONENT) $(REPO_URI) $(SOURCESENTRY)' |
    awk -v suite="$1" '$1 == "Packages" && $2 == suite && $3 == "main" && $4 !~ /^cdrom:/ {
      sub(/:[0-9]+$/, "", $5); print $4, $5; exit }'
}

# like_source URI FILE SUITE: a source like the one of URI in FILE, for another suite. What else is
# said there (Signed-By, Trusted, Check-Valid-Until, …) holds for the same mirror here.
like_source() {
  echo "Types: deb"
  echo "URIs: $1"
  echo "Suites: $3"
  echo "Components: main"
  case "$2" in
    *.sources)
      # Fields may go on in indented lines (an embedded key), so whole ones are kept or dropped.
      grep -v '^#' "$2" | awk -v uri="${1%/}" '
        BEGIN { RS = ""; FS = "\n" }
        {
          kept = ""; mine = 0; keep = 0
          for (i = 1; i <= NF; i++) {
            if ($i !~ /^[ \t]/) {
              name = tolower($i); sub(/[ \t]*:.*/, "", name)
              keep = name !~ /^(types|uris|suites|components|enabled|description|x-.*)$/
            }
            if (name == "uris") {
              n = split($i, words, /[ \t]+/)
              for (j = 1; j <= n; j++) {
                sub(/\/$/, "", words[j])
                if (words[j] == uri) mine = 1
              }
            }
            if (keep) kept = kept $i "\n"
          }
          if (mine) { printf "%s", kept; exit }
        }'
      ;;
    *)
      # deb [signed-by=FILE arch=amd64] URI …: the options are fields of the same names, but for arch.
      awk -v uri="${1%/}" '
        $1 == "deb" {
          options = ""; rest = $0
          if (match($0, /\[[^]]*\]/)) {
            options = substr($0, RSTART + 1, RLENGTH - 2)
            rest = substr($0, RSTART + RLENGTH)
          } else
            sub(/^[ \t]*deb[ \t]+/, "", rest)
          split(rest, words, " ")
          sub(/\/$/, "", words[1])
          if (words[1] != uri) next
          n = split(options, words, " ")
          for (i = 1; i <= n; i++) {
            name = value = words[i]
            sub(/=.*/, "", name); sub(/^[^=]*=/, "", value)
            sub(/^arch$/, "Architectures", name); gsub(/,/, " ", value)
            print name ": " value
          }
          exit
        }' "$2"
      ;;
  esac
}
