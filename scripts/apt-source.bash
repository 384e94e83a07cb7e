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

