# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Control groups of a test's own, of either version of the kernel's interface. They are made at the
# top, beside whatever the machine has, and teardown removes them.
#
# in:   root; helpers.bash, whose teardown empties and removes what is in $cgroups
# out:  functions

# Tests use what the functions set, and the other way round, each in its own subshell.
# shellcheck disable=SC2034,SC2154

# controller_root CONTROLLER: where version 1 of it is mounted; nothing if it is not.
controller_root() {
  awk -v c="$1" '{
    for (i = 7; $i != "-"; i++) ;
    if ($(i + 1) == "cgroup" && ("," $(i + 3) ",") ~ ("," c ",")) { print $5; exit }
  }' /proc/self/mountinfo
}

# unified_root: where version 2 is mounted; it is mounted here if it is not.
unified_root() {
  local dir
  dir=$(awk '{ for (i = 7; $i != "-"; i++) ; if ($(i + 1) == "cgroup2") { print $5; exit } }' /proc/self/mountinfo)
  if [[ -z $dir ]]; then
    dir=$PWD/cgroup2
    mkdir "$dir" && mount -t cgroup2 cgroup2 "$dir" || return
  fi
  echo "$dir"
}

# make_cgroup NAME CONTROLLER: NAME_cgroup is its folder.
make_cgroup() {
  local name=$1 controller=$2 root dir
  root=$(controller_root "$controller")
  if [[ -z $root ]]; then
    root=$(unified_root) || fail "this machine has no control groups" || return
    [[ $root != "$PWD/cgroup2" ]] || mounts+=("$root")
    grep -qw "$controller" "$root/cgroup.controllers" ||
      fail "no controller $controller for control groups, of either version" || return
    # It stays: a machine that has several tests at work may need it for another one.
    grep -qw "$controller" "$root/cgroup.subtree_control" ||
      echo "+$controller" >"$root/cgroup.subtree_control" ||
      fail "the controller $controller cannot be had: a container without control groups of its own?" || return
  fi
  dir=$(mktemp -d "$root/heapsonde-test.XXXXXX") || return
  cgroups+=("$dir")
  printf -v "${name}_cgroup" %s "$dir"
}

# limit_memory NAME BYTES: of a group with the controller memory; "" for no limit.
limit_memory() {
  local dir=${1}_cgroup
  dir=${!dir}
  if [[ -e $dir/memory.max ]]; then
    echo "${2:-max}" >"$dir/memory.max"
  else
    echo "${2:--1}" >"$dir/memory.limit_in_bytes"
  fi
}

# limit_cpu NAME US: so many microseconds of a processor in each second; "" for no limit.
limit_cpu() {
  local dir=${1}_cgroup
  dir=${!dir}
  if [[ -e $dir/cpu.max ]]; then
    echo "${2:-max} 1000000" >"$dir/cpu.max"
  else
    echo 1000000 >"$dir/cpu.cfs_period_us" && echo "${2:--1}" >"$dir/cpu.cfs_quota_us"
  fi
}

# join_cgroup NAME PID: from now on, with all that it starts.
join_cgroup() {
  local dir=${1}_cgroup
  echo "$2" >"${!dir}/cgroup.procs"
}

# in_cgroup NAME COMMAND…: in the place of this shell, so in a subshell.
in_cgroup() {
  join_cgroup "$1" "$BASHPID" && exec "${@:2}"
}

# oom_kills NAME: how many processes the kernel has killed in the group for want of memory.
oom_kills() {
  local file=${1}_cgroup
  file=${!file}/memory.events
  [[ -e $file ]] || file=${file%/*}/memory.oom_control
  awk '$1 == "oom_kill" { print $2 }' "$file"
}
