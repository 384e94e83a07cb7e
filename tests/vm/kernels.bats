#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# In a test machine, whose kernel is known: heapsonde finds the features that this version has.
# (Elsewhere a version tells nothing: distributions take features back to older kernels.)

setup() {
  cd "$BATS_TEST_TMPDIR" || return
}

# at_least VERSION: is this kernel?
at_least() {
  [[ $(printf '%s\n' "$1" "$(uname -r)" | sort -V | head -n 1) == "$1" ]]
}

# expected_of FEATURE=VERSION...: as heapsonde would list them on this kernel.
expected_of() {
  local word
  for word; do
    if at_least "${word#*=}"; then
      echo "${word%=*}=true"
    else
      echo "${word%=*}=false"
    fi
  done
}

# bats test_tags=kernel
@test "each feature is found from the version on that has it" {
  expected_of bpf=6.1 ringbuf=6.1 bpf_loop=6.1 sleepable_uprobe=6.1 perf_uprobe=6.1 uprobe_multi=6.6 \
    uprobe_multi_by_pid=6.12 nop10=7.2 pidfd_open=6.1 process_vm_readv=6.1 btf=6.1 >expected
  "$HEAPSONDE" version --json | jq -r '.features | to_entries[] | "\(.key)=\(.value)"' >found
  diff expected found
}
