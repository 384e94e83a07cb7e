# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
#
# ocaml-source.bash: where the sources of OCaml come from. Sourced after lib.sh, never run.
#
# in:   npm's and apt's configuration on this machine
# out:  fetch_ocaml, and what apt-source.bash gives

# shellcheck source=scripts/apt-source.bash
. "$ROOT/scripts/apt-source.bash"

# What is fetched must be this, wherever it comes from: of 5.3.0 the npm package ocaml@5.3.0, which is the
# whole source (npm view … dist.integrity in hex); of 5.4.1 Debian's ocaml_5.4.1.orig.tar.xz.
declare -A OCAML_SHA512=(
  [5.3.0]=0f4b86e38437afa2d8e304b38416691defaad72309e101e09394753acbfba8b5818163d0da313ad2f63aad7809ada2ff1fd7efb16385dca65222ba3f6d2f99f0
  [5.4.1]=b3fe706223cab70527d64dc2c573af6bcc91dc3249a68cbb3762336b30fa46323ea37879d9dfaeb60d439894e881cf074bb3144fd7e62aea5deb00beeddb119a
)

# fetch_ocaml VERSION FOLDER: the source, as FOLDER/package; says on stderr what goes wrong. FOLDER is
# there and holds all that is left behind, caches included.
fetch_ocaml() {
  local version=$1 folder=$2 file
  if [ -z "${OCAML_SHA512[$version]-}" ]; then
    echo "it is not known where the source of OCaml $version comes from, nor its checksum" >&2
    return 1
  fi
  case $version in
    5.3.0)
      file=$folder/ocaml-$version.tgz
      (cd "$folder" && npm pack --silent --ignore-scripts --no-update-notifier --cache "$folder/npm" \
        "ocaml@$version") || return
      ;;
    *)
      file=$folder/ocaml_$version.orig.tar.xz
      fetch_from_sid ocaml "$version" "$folder" || return
      ;;
  esac
  echo "${OCAML_SHA512[$version]}  $file" | sha512sum -c - || return
  mkdir -p "$folder/package"
  tar -xf "$file" -C "$folder/package" --strip-components=1 --no-same-owner
}

# fetch_from_sid PACKAGE VERSION FOLDER: the upstream archive of the source package, from Debian sid, into FOLDER. apt is
# given a configuration of its own for it, so that this machine never installs from sid.
fetch_from_sid() {
  local package=$1 version=$2 folder=$3 codename source found
  codename=$(. /etc/os-release && echo "${VERSION_CODENAME-}")
  source=$(main_source "$codename")
  if [ -z "$source" ]; then
    # Lists that were never read, as in a new container, say nothing of where they would come from.
    apt-get update || true
    source=$(main_source "$codename")
  fi
  if [ -z "$source" ]; then
    echo "apt has no source for Debian's $codename main, so none for sid" >&2
    return 1
  fi
  mkdir -p "$folder/apt/sources" "$folder/apt/lists" "$folder/apt/cache/archives/partial"
  # shellcheck disable=SC2086  # two words
  like_source $source sid | sed 's/^Types: deb$/Types: deb-src/' >"$folder/apt/sources/sid.sources"
  local apt=(-o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$folder/apt/sources"
    -o Dir::State::Lists="$folder/apt/lists" -o Dir::Cache="$folder/apt/cache" -o APT::Sandbox::User=
    -o APT::Update::Error-Mode=any)
  apt-get "${apt[@]}" update || return
  # Of several revisions the newest, which apt prints last.
  found=$(apt-cache "${apt[@]}" showsrc --only-source "$package" |
    awk -v version="$version" '$1 == "Version:" && index($2, version "-") == 1 { v = $2 } END { print v }')
  if [ -z "$found" ]; then
    echo "Debian sid has no $package $version: $(apt-cache "${apt[@]}" showsrc --only-source "$package" |
      awk '$1 == "Version:" { print $2 }' | xargs)" >&2
    return 1
  fi
  # The upstream archive is all that is wanted, and its checksum is in the signed lists.
  (cd "$folder" && apt-get "${apt[@]}" --download-only --tar-only source "$package=$found")
}
