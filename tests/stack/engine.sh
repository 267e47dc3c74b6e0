#!/usr/bin/env bash
# Starts a Docker engine below build/stack/engine if none responds, and stops only that one. Where an engine responds on
# DOCKER_HOST, or on the default socket, it is used as it is.
# usage: eval "$(tests/stack/engine.sh up)"    prints the DOCKER_HOST to use, and ONEWAY_STACK_STARTED=1 if it was started
#        tests/stack/engine.sh down
set -euo pipefail
cd "$(dirname "$0")/../.."
export PATH=$PATH:/usr/sbin:/sbin
state=$PWD/build/stack/engine
# The path of a UNIX socket has at most 107 characters, so it is not below the checkout. Each checkout has an engine of its own: a
# run that ends does not stop that of another one.
run=/run/oneway-stack/$(cksum <<<"$PWD" | cut -d' ' -f1)
socket=unix://$run/docker.sock

responds() { docker -H "$1" version >/dev/null 2>&1; }

fail() {
  echo "engine: $1" >&2
  exit 1
}

# Docker needs control groups; a root file system of its own (make fresh) has none.
mount_groups() {
  grep -q ' /sys/fs/cgroup' /proc/mounts && return
  if awk 'NR > 1 && $2 != 0 {found = 1} END {exit !found}' /proc/cgroups; then
    mount -t tmpfs -o mode=755 oneway-stack /sys/fs/cgroup
    awk 'NR > 1 && $2 != 0 {print $1}' /proc/cgroups | while read -r group; do
      mkdir "/sys/fs/cgroup/$group"
      mount -t cgroup -o "$group" oneway-stack "/sys/fs/cgroup/$group" || rmdir "/sys/fs/cgroup/$group"
    done
  else
    mount -t cgroup2 oneway-stack /sys/fs/cgroup
  fi
}

unmount_groups() {
  awk '$1 == "oneway-stack" && $2 ~ "^/sys/fs/cgroup" {print $2}' /proc/mounts | sort -r | while read -r at; do
    umount "$at" || true
  done
}

up() {
  local at
  for at in ${DOCKER_HOST:-unix:///var/run/docker.sock} "$socket"; do
    if responds "$at"; then
      echo "export DOCKER_HOST=$at"
      return
    fi
  done
  [[ $(id -u) -eq 0 ]] || fail "no Docker engine responds, and user $(id -un) cannot start one: run as root"
  mkdir -p "$state" "$run"
  mount_groups
  # Where bridges pass the firewall and it drops what they forward, as after another Docker, rules of our own are necessary.
  local rules=false
  if [[ $(cat /proc/sys/net/bridge/bridge-nf-call-iptables 2>/dev/null) == 1 ]] && iptables -S FORWARD 2>/dev/null | grep -q '^-P FORWARD DROP'; then
    echo "engine: the firewall drops forwarded packets: dockerd adds its rules" >&2
    rules=true
  fi
  # Only networks of our own, which need no rule of a firewall and no forwarding: this machine's stay as they are.
  setsid dockerd --data-root "$state/data" --exec-root "$run/exec" --pidfile "$run/docker.pid" -H "$socket" \
    --bridge=none --iptables=$rules --ip6tables=false --ip-forward=false --ip-masq=false \
    >"$state/dockerd.log" 2>&1 </dev/null 9>&- &
  for _ in {1..600}; do
    if responds "$socket"; then
      echo "engine: started dockerd, its data is in ${state#"$PWD"/}" >&2
      echo "export DOCKER_HOST=$socket ONEWAY_STACK_STARTED=1"
      return
    fi
    kill -0 $! 2>/dev/null || break
    sleep 0.1 # until dockerd listens, or has ended
  done
  tail -20 "$state/dockerd.log" >&2
  fail "dockerd does not respond; its log: $state/dockerd.log"
}

down() {
  [[ -e $run/docker.pid ]] || return 0
  local pid
  # A network's bridge would remain, also that of testcontainers' own.
  docker -H "$socket" network prune -f >/dev/null 2>&1 || true
  pid=$(<"$run/docker.pid")
  # After a crash of the engine the number can be that of another program.
  ours() { tr '\0' '\n' 2>/dev/null <"/proc/$pid/cmdline" | grep -qxF "$run/docker.pid"; } 2>/dev/null
  ! ours || kill "$pid" || true
  for _ in {1..300}; do
    ours || break
    sleep 0.1 # until it has ended its containers
  done
  ! ours || kill -KILL "$pid" || true
  unmount_groups
  # A container with the network of this host leaves its mount.
  ! mountpoint -q "$run/exec/netns/default" || umount "$run/exec/netns/default"
  rm -rf --one-file-system "$run"
}

case ${1:-} in
up) up ;;
down) down ;;
*) fail "usage: tests/stack/engine.sh up|down" ;;
esac
