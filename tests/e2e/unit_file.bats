#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# scripts/heapsonde.service: systemd understands it, it is tight, and it grants the
# capabilities that the daemon keeps. Needs no running systemd.

load helpers

UNIT=$BATS_TEST_DIRNAME/../../scripts/heapsonde.service
SANDBOX=$BATS_TEST_DIRNAME/../../user/daemon/sandbox.c
MANUAL=$BATS_TEST_DIRNAME/../../docs/daemon.md

# What a setting is in the unit; several lines of it are joined.
setting() {
  sed -n "s/^$1=//p" "$UNIT" | tr '\n' ' '
}

# The capabilities that sandbox.c keeps, one a line.
kept_caps() {
  sed -n '/^} kept_caps\[\] = {/,/^};/p' "$SANDBOX" | grep -o 'CAP_[A-Z_]*' | sort
}

@test "unit: systemd-analyze verify has nothing to say" {
  mkdir units
  # The executable must be there.
  sed "s#^ExecStart=[^ ]*#ExecStart=$HEAPSONDE#" "$UNIT" >units/heapsonde.service
  grep -q "^ExecStart=$HEAPSONDE daemon" units/heapsonde.service
  systemd-analyze verify --man=no "$PWD/units/heapsonde.service" >said 2>&1 || {
    cat said
    return 1
  }
  cat said
  [[ ! -s said ]]
}

@test "unit: a setting that systemd does not know would be noticed" {
  mkdir units
  sed "s#^ExecStart=[^ ]*#ExecStart=$HEAPSONDE#; s#^UMask=#UMusk=#" "$UNIT" >units/heapsonde.service
  systemd-analyze verify --man=no "$PWD/units/heapsonde.service" >said 2>&1 || true
  grep -q UMusk said
}

@test "unit: systemd-analyze security" {
  # 3.0 with systemd 252. A unit without any of this has 9.6.
  systemd-analyze --offline=true --no-pager security --threshold=40 "$UNIT" >said 2>&1 || {
    cat said
    return 1
  }
  grep -q 'Overall exposure level' said
}

@test "unit: the capabilities are those that the daemon keeps, and the manual names them all" {
  local cap n=0
  setting CapabilityBoundingSet | tr ' ' '\n' | grep . | sort >granted
  kept_caps >kept
  diff granted kept
  while read -r cap; do
    grep -q "$cap" "$MANUAL" || fail "docs/daemon.md does not say what $cap is for"
    n=$((n + 1))
  done <kept
  ((n >= 5))
}

@test "unit: what would hide targets is not switched on" {
  [[ $(setting PrivateUsers) == "no " ]]
  [[ $(setting ProtectProc) == "default " ]]
  [[ $(setting ProcSubset) == "all " ]]
  [[ -z $(setting PrivateNetwork) ]]
  [[ -z $(setting User) && -z $(setting DynamicUser) ]]
}
