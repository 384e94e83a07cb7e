#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
#
# The daemon's metrics: as HTTP clients get them, as promtool and a real Prometheus
# server understand them, and held against what `status` says. Needs root and BPF.

# Helpers set variables by name; bats runs each test in a subshell.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers

# The daemon in the background, with metrics on a free port: sets daemon_pid, port.
start_with_metrics() {
  local tries
  export HEAPSONDE_SOCKET=$PWD/control.sock
  for tries in {1..20}; do
    port=$((20000 + RANDOM % 10000))
    "$HEAPSONDE" daemon --socket "$HEAPSONDE_SOCKET" --metrics "127.0.0.1:$port" \
      >daemon.out 2>daemon.err </dev/null 3>&- &
    daemon_pid=$!
    children+=("$daemon_pid")
    wait_until "the daemon to listen" listens_or_ended "$daemon_pid"
    has_ended "$daemon_pid" || return 0
    grep -q 'in use' daemon.err || break
  done
  cat daemon.err
  fail "the daemon did not start in $tries tries"
}

listens_or_ended() {
  grep -q listening daemon.err || has_ended "$1"
}

# http REQUEST-LINE [HEADER…]: an answer, headers and all.
http() {
  printf '%s\r\n' "$@" 'Host: test' 'Connection: close' '' |
    socat -t "$DEADLINE" - "TCP:127.0.0.1:$port"
}

# scrape FILE: the metrics.
scrape() {
  http 'GET /metrics HTTP/1.1' | tr -d '\r' | sed '1,/^$/d' >"$1"
}

# metric SERIES: its value now; nothing if it is not there.
metric() {
  scrape metric.now
  awk -v series="$1" '$1 == series { printf "%.0f\n", $2 }' metric.now
}

metric_is() {
  [[ $(metric "$1") == "$2" ]]
}

metric_at_least() {
  local now
  now=$(metric "$1")
  [[ -n $now ]] && ((now >= $2))
}

# bytes_agree PROFILE SERIES: the output has as many bytes in status as in the metrics.
bytes_agree() {
  local bytes
  bytes=$("$HEAPSONDE" status --json "$1" | jq .output_bytes)
  ((bytes > 0)) && metric_is "$2" "$bytes"
}

# counter PROFILE DOMAIN NAME: one of the domain's counters, from `status`.
counter() {
  "$HEAPSONDE" status --json "$1" | jq ".domains[] | select(.domain == $2) | .$3"
}

# start_profile ARG…: a profile with its output in the file out.jsonl; its number is
# in $profile.
start_profile() {
  profile=$("$HEAPSONDE" start -o out.jsonl "$@")
}

# the series of a domain
minor() {
  echo "heapsonde_allocated_words_total{pid=\"$1\",domain=\"$2\",heap=\"minor\"}"
}

@test "metrics: the counters are those of status" {
  start_with_metrics
  start_target target lists 1000000 --wait
  start_profile -p "$target_pid" -r 2^-10
  tell target go
  said target '^done'
  # All is done and nothing moves any more: the numbers are the same.
  local minor promoted major pid=$target_pid
  minor=$(counter "$profile" 0 minor_words)
  promoted=$(counter "$profile" 0 promoted_words)
  major=$(counter "$profile" 0 major_words)
  ((minor > 100000))
  wait_until "the metrics to follow" metric_is "$(minor "$pid" 0)" "$minor"
  metric_is "heapsonde_allocated_words_total{pid=\"$pid\",domain=\"0\",heap=\"major\"}" \
    $((major - promoted))
  metric_is "heapsonde_promoted_words_total{pid=\"$pid\",domain=\"0\"}" "$promoted"
  metric_is "heapsonde_collections_total{pid=\"$pid\",domain=\"0\",kind=\"minor\"}" \
    "$(counter "$profile" 0 minor_collections)"
  metric_is "heapsonde_collections_total{pid=\"$pid\",domain=\"0\",kind=\"major\"}" \
    "$(counter "$profile" 0 major_collections)"
  # And those of the profile.
  local labels="{pid=\"$pid\",profile=\"$profile\"}" status
  status=$("$HEAPSONDE" status --json "$profile")
  (($(jq .samples <<<"$status") > 100))
  wait_until "the samples" metric_is "heapsonde_samples_total$labels" "$(jq .samples <<<"$status")"
  metric_is "heapsonde_records_total$labels" "$(jq .records <<<"$status")"
  # The last counters record may still be to come: it is a fifth of a second late.
  wait_until "the bytes" bytes_agree "$profile" "heapsonde_output_bytes_total$labels"
  metric_is "heapsonde_profile_state{pid=\"$pid\",profile=\"$profile\",state=\"sampling\"}" 1
  grep -q "^heapsonde_target_info{pid=\"$pid\",command=\".*lists 1000000 --wait\"} 1$" metric.now
  tell target end
  ended_with 0 "$target_pid" target.err
}

@test "metrics: promtool finds nothing to say, in any state of a profile" {
  start_with_metrics
  scrape none.prom
  start_target target busy --domains 3
  start_profile -p "$target_pid" -r 2^-12
  wait_until "counters" metric_at_least "$(minor "$target_pid" 2)" 1
  scrape sampling.prom
  "$HEAPSONDE" stop "$profile"
  wait_until "it to be stopped" metric_is 'heapsonde_profiles{state="stopped"}' 1
  scrape stopped.prom
  tell target stop
  ended_with 0 "$target_pid" target.err
  wait_until "the target to go" metric_is heapsonde_targets 0
  scrape gone.prom
  local file
  for file in *.prom; do
    (($(wc -l <"$file") > 20)) || fail "$file is short"
    promtool check metrics <"$file" >said 2>&1 || fail "$file: $(<said)"
    [[ ! -s said ]] || fail "$file: $(<said)"
  done
  # A profile that has finished is shown until it is discarded; its target is not.
  grep -q 'heapsonde_profile_state{.*state="finished"} 1$' gone.prom
  not grep -q 'heapsonde_target_info{' gone.prom
}

@test "metrics: Prometheus sees the counters rise as status does" {
  start_with_metrics
  start_target target busy --domains 2
  start_profile -p "$target_pid" -r 2^-14
  start_prometheus
  local series before first now after
  series=$(minor "$target_pid" 1)
  before=$(counter "$profile" 1 minor_words)
  wait_until "Prometheus to have a value" seen_at_least "$series" "$before"
  first=$(query "$series")
  wait_until "it to rise" seen_at_least "$series" $((first + 1))
  now=$(query "$series")
  after=$(counter "$profile" 1 minor_words)
  # Never ahead of what has happened.
  ((before <= first && first < now && now <= after)) ||
    fail "status $before, then Prometheus $first and $now, then status $after"
  wait_until "a rate" has_rate "$series"
  is_up() { [[ $(query 'up{job="heapsonde"}') == 1 ]]; }
  wait_until "Prometheus to be content" is_up
  # Not one scrape had anything wrong with it.
  not grep -i 'error' prometheus.err
  tell target stop
  ended_with 0 "$target_pid" target.err
  wait_until "Prometheus to see the target go" seen_nothing "$series"
}

# A Prometheus server that asks every 5 seconds, and waits as long for an answer; its port is $prometheus_port.
start_prometheus() {
  local tries
  cat >prometheus.yml <<EOF
global: {scrape_interval: 5s, scrape_timeout: 5s}
scrape_configs:
- job_name: heapsonde
  static_configs: [{targets: ['127.0.0.1:$port']}]
EOF
  promtool check config prometheus.yml >/dev/null
  for tries in {1..20}; do
    prometheus_port=$((30000 + RANDOM % 2000))
    prometheus --config.file=prometheus.yml --storage.tsdb.path="$PWD/tsdb" \
      --web.listen-address="127.0.0.1:$prometheus_port" --log.level=warn \
      >prometheus.out 2>prometheus.err </dev/null 3>&- &
    children+=($!)
    wait_until "Prometheus to answer" answers_or_ended $!
    has_ended $! || return 0
  done
  cat prometheus.err
  fail "Prometheus did not start in $tries tries"
}

answers_or_ended() {
  query 1 >/dev/null 2>&1 || has_ended "$1"
}

# query EXPRESSION: its value now, whole; nothing if there is none.
query() {
  promtool query instant -o json "http://127.0.0.1:$prometheus_port" "$1" |
    jq -r 'if type == "array" and (.[0] | type) == "object" then .[] | .value[1]
           elif type == "array" then .[1] // empty else empty end' |
    awk '{ printf "%.0f\n", $1 }'
}

seen_at_least() {
  local now
  now=$(query "$1")
  [[ -n $now ]] && ((now >= $2))
}

seen_nothing() {
  [[ -z $(query "$1") ]]
}

has_rate() {
  [[ $(query "rate($1[1m]) > bool 1000") == 1 ]]
}

@test "metrics: no counter falls while domains come and go" {
  start_with_metrics
  start_target target spawner 3000000 --domains 100 --wait
  start_profile -p "$target_pid" -r 2^-14
  wait_until "the target" metric_is heapsonde_targets 1
  tell target go
  local n=0
  : >scrapes
  until grep -q '^done' target.out && ((n >= 3)); do
    scrape now
    grep '_total{' now >>scrapes
    n=$((n + 1))
    sleep 0.25
  done
  said target '^done'
  wait_until "the domains to be summed up" metric_at_least \
    "heapsonde_other_domains{pid=\"$target_pid\"}" 100
  metric_is "heapsonde_domains{pid=\"$target_pid\"}" 1
  grep '_total{' metric.now >>scrapes
  awk '$2 + 0 < last[$1] + 0 { print $1, "fell from", last[$1], "to", $2; bad = 1 }
    { last[$1] = $2 } END { exit bad }' scrapes
  tell target end
  ended_with 0 "$target_pid" target.err
}

@test "metrics: other requests, and clients that do not speak or do not listen" {
  start_with_metrics
  http 'GET / HTTP/1.1' | grep -q 'href="/metrics"'
  [[ $(http 'GET /nothing HTTP/1.1' | head -n 1) == *' 404 '* ]]
  [[ $(http 'POST /metrics HTTP/1.1' 'Content-Length: 0' | head -n 1) == *' 405 '* ]]
  [[ $(http 'HEAD /metrics HTTP/1.1' | head -n 1) == *' 200 '* ]]
  # As many connections as there may be, and more; the daemon serves on.
  local i
  for i in {1..40}; do
    socat -u "TCP:127.0.0.1:$port" /dev/null 3>&- &
    children+=($!)
  done
  "$HEAPSONDE" status >status.out
  for i in "${children[@]:1}"; do
    kill "$i"
  done
  wait_until "it to answer again" metric_is heapsonde_targets 0
  kill -TERM "$daemon_pid"
  ended_with 0 "$daemon_pid" daemon.err
}

@test "metrics: an address that is none, or is taken" {
  start_with_metrics
  local address
  for address in "" 9000 localhost ::1:9000 "127.0.0.1:$port"; do
    local status=0
    timeout "$DEADLINE" "$HEAPSONDE" daemon --socket "$PWD/other.sock" --metrics "$address" \
      >other.out 2>other.err </dev/null 3>&- || status=$?
    ((status == 1 || status == 2)) || fail "'$address': status $status"
    [[ ! -s other.out && $(wc -l <other.err) == 1 ]] || fail "'$address': $(<other.err)"
  done
  metric_is heapsonde_targets 0
}

@test "metrics: none without --metrics" {
  export HEAPSONDE_SOCKET=$PWD/control.sock
  "$HEAPSONDE" daemon --socket "$HEAPSONDE_SOCKET" >daemon.out 2>daemon.err </dev/null 3>&- &
  daemon_pid=$!
  children+=("$daemon_pid")
  wait_until "the daemon to listen" listens_or_ended "$daemon_pid"
  # The inodes of its sockets: none is one of TCP's.
  find "/proc/$daemon_pid/fd" -lname 'socket:*' -printf '%l\n' | tr -dc '0-9\n' | sort >own
  cat "/proc/$daemon_pid/net/tcp" "/proc/$daemon_pid/net/tcp6" 2>/dev/null |
    awk '{ print $10 }' | sort >tcp
  [[ -s own && -z $(comm -12 own tcp) ]]
}
