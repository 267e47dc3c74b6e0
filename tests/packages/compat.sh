#!/usr/bin/env bash
# Runs two versions of the program against each other on loopback, in both roles, and one after the other on one state directory: part of
# make deploy-test.
# usage: tests/packages/compat.sh OLD-PROGRAM NEW-PROGRAM
set -euo pipefail
[[ ${OWN_NETWORK:-} == 1 ]] || OWN_NETWORK=1 exec unshare --net "$0" "$@" # its ports are in use by nobody else
ip link set lo up
old=$(realpath "$1") new=$(realpath "$2")
work=$(mktemp -d)
started=()
end() {
  for p in "${started[@]}"; do kill "$p" 2>/dev/null || true; done
  rm -rf "$work"
}
trap end EXIT
cd "$work"
fail() {
  echo "compat: $1" >&2
  exit 1
}
of() { [[ $1 == "$old" ]] && echo old || echo new; }
# begin starts a program in the background, until the next stop.
begin() {
  "$@" >"$work/log" 2>&1 &
  started+=($!)
}
stop() {
  kill "${started[@]}"
  wait "${started[@]}" 2>/dev/null || true
  started=()
}
# holds tries a command for 10 s.
holds() {
  local words=$1 n
  shift
  for n in $(seq 20); do
    "$@" >"$work/out" 2>&1 && return
    sleep 0.5 # a program of its own starts
  done
  cat "$work/out" "$work/log" >&2
  fail "$words"
}

# outcome is completed, or that both ends say why they do not test.
outcome() {
  if [[ $(jq -r '.. | .result? // empty | strings' "$work/out" | head -1) == completed ]]; then
    echo completed
  elif grep -q 'run the same version' "$work/error" "$work/out"; then
    echo "refused, the versions of the protocol differ"
  else
    cat "$work/out" "$work/error" >&2
    fail "$name: saturation is neither completed nor refused by its version"
  fi
}

for pair in "$old $new" "$new $old"; do
  read -r near far <<<"$pair"
  name="$(of "$near") to $(of "$far")"
  begin "$far" reflect --listen 127.0.0.1:18862 --clock=static
  holds "$name: probe" "$near" probe 127.0.0.1:18862 --clock=static --count 20 --interval 20ms --json
  [[ $(jq .round_trips.received_packets "$work/out") == 20 ]] || fail "$name: probe: $(cat "$work/out")"
  stop

  rm -f tokens token
  "$far" token new --file tokens --name a --out token --rate 20Mbit --per-day 1GB >/dev/null 2>&1
  begin "$far" load-server --tokens-file tokens --listen 127.0.0.1:18620 --state-dir state --clock=static
  holds "$name: the load server has a key" grep -o 'sha256:[0-9a-f]\{64\}' "$work/log"
  pin=$(head -1 "$work/out")
  timeout 60 "$near" test saturation 127.0.0.1:18620 --token-file token --pin "$pin" --clock=static --no-agent --rate-forward 2Mbit --rate-reverse 2Mbit --duration 2s --json >"$work/out" 2>"$work/error" || true
  stop
  echo "compat: $name: probe; saturation: $(outcome)"
done

# One state directory: usage of a quota and reports stay, up and down again.
agent() {
  begin "$1" agent --config.file=agent.yml --web.listen-address=127.0.0.1:19862 --test.socket=
  holds "the agent of $(of "$1") serves" curl -sf http://127.0.0.1:19862/-/ready
}
cat >agent.yml <<'END'
version: 1
clock: {source: static, bound: 1ms}
state_dir: agent-state
links: [{name: uplink, quota_bytes: 1GB}]
paths:
  - name: self
    peer: "127.0.0.1:18862"
    probes:
      - {type: stamp, interval: 50ms}
      - {type: saturation, link: uplink, load_server: "127.0.0.1:18620", token_file: token, pin: "PIN", every: 10s, duration: 1s, rate: {forward: 1Mbit, reverse: 1Mbit}, skip: 200ms, idle: {duration: 200ms, interval: 20ms}, drain_timeout: 1s}
END
"$old" token new --file tokens2 --name b --out token2 --rate 20Mbit >/dev/null 2>&1 && mv tokens2 tokens && mv token2 token
sed -i "s/PIN/$pin/" agent.yml # the load server keeps its key in its state directory
used() { curl -sf http://127.0.0.1:19862/metrics | awk '/^oneway_data_quota_used_bytes\{.*uplink/ {print int($2)}'; }
reports() { curl -sf http://127.0.0.1:19862/runs | jq -r '.runs[].id' | sort; }
before=0
: >"$work/reports"
for program in "$old" "$new" "$old" "$new"; do
  begin "$program" load-server --tokens-file tokens --listen 127.0.0.1:18620 --state-dir state --clock=static
  begin "$program" reflect --listen 127.0.0.1:18862 --clock=static
  agent "$program"
  stored() { ! comm -23 "$work/reports" <(reports) | grep .; }
  holds "$(of "$program") has the reports of the versions before" stored
  kept=$(used)
  [[ ${kept:-0} -ge $before ]] || fail "$(of "$program"): $kept bytes of the quota are used, and were $before"
  ran() { [[ $(used) -gt $kept ]]; }
  for _ in $(seq 60); do ran && break; sleep 0.5; done # a run each 10 s
  ran || fail "$(of "$program"): no run: $(cat "$work/log")"
  sleep 1 # the run is settled
  before=$(used)
  reports >"$work/reports"
  stop
  echo "compat: $(of "$program") on this state directory: $kept bytes used before, $before after, $(wc -l <"$work/reports") reports"
done
