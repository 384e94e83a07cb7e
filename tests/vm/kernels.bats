#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# In a test machine, whose kernel is known: heapsonde finds the features that this version has.
# (Elsewhere a version tells nothing: distributions take features back to older kernels.)

# at_least VERSION: is this kernel?
at_least() {
  [[ $(printf '%s\n' "$1" "$(uname -r)" | sort -V | head -n 1) == "$1" ]]
}

# offers FEATURE since VERSION: it is found from this version on, and not before.
offers() {
  local expected=false
  at_least "$3" && expected=true
  [[ $(jq -r --arg f "$1" '.features[$f]' <<<"$found") == "$expected" ]] || {
    echo "$1 on Linux $(uname -r): not $expected"
    return 1
  }
}

# bats test_tags=kernel
@test "each feature is found from the version on that has it" {
  found=$("$HEAPSONDE" version --json)
  offers bpf since 6.1
  offers ringbuf since 6.1
  offers bpf_loop since 6.1
  offers sleepable_uprobe since 6.1
  offers perf_uprobe since 6.1
  offers uprobe_multi since 6.6
  offers uprobe_multi_by_pid since 6.12
  offers nop10 since 7.2
  offers pidfd_open since 6.1
  offers process_vm_readv since 6.1
}
