#!/bin/bash
# Runs in a guest with systemd, from bare Debian without the package: install, upgrade, downgrade, remove, purge.
# usage: guest.sh OLD.deb NEW.deb
set -eu
old=$1 new=$2
export DEBIAN_FRONTEND=noninteractive

fail() {
  echo "guest: $1" >&2
  journalctl --no-pager -u 'oneway-*' | tail -30 >&2
  exit 1
}
# files lists what is on the disk, without what the package manager and the journal write.
files() {
  find / -xdev \( -path /var/lib/dpkg -o -path /var/lib/apt -o -path /var/log -o -path /var/cache -o -path /tmp -o -path /root \) -prune -o -print | sort
}
accounts() { cat /etc/passwd /etc/group; }
# get reads a page of the agent.
get() {
  exec 3<>/dev/tcp/127.0.0.1/9862 || return
  printf 'GET %s HTTP/1.0\r\n\r\n' "$1" >&3
  cat <&3
}
value() { get /metrics | sed -n "s/^$1 //p"; }
# measures waits until the agent has received replies on its path in each direction.
measures() {
  for _ in {1..60}; do
    received=$(value 'oneway_packets_received_total{direction="reverse",.*}' 2>/dev/null || true)
    [ -z "$received" ] || [ "${received%.*}" -lt 10 ] || return 0
    sleep 1 # until then
  done
  fail "no replies on the path within 60 s: received '$received'"
}
apt() { apt-get -y -qq -o Dpkg::Use-Pty=0 -o Dpkg::Options::=--force-confold "$@" </dev/null; }

# page types the commands of a page that fit a pattern, as its reader does, in a directory.
page() { # file, pattern, directory
  sed -n 's/^    //p' "/root/pages/$1" | sed 's/  *# .*//' | grep -E "$2" >/root/commands
  while read -r command; do
    echo "# $command"
    (cd "$3" && eval "$command" </dev/null) || fail "$1: $command"
  done </root/commands
}

ip link set lo up
files >/root/files.before
accounts >/root/accounts.before

echo "== the commands of the page Installation"
begin=$SECONDS
page install.md '^(apt-get|oneway|systemctl)' "${old%/*}"
systemctl is-active oneway-agent
oneway probe 127.0.0.1 --count 20 --interval 20ms

echo "== a changed configuration"
cat >>/etc/oneway/oneway.yml <<'END'
paths:
  - {name: a-to-b, peer: 127.0.0.1, probes: [{type: stamp, interval: 100ms}]}
END
cp /etc/oneway/oneway.yml /root/changed.yml
systemctl restart oneway-agent
measures
echo "guest: replies in both directions $((SECONDS - begin)) s after the begin of the installation"
[ $((SECONDS - begin)) -le 60 ] || fail "the first replies took more than 60 s"
process=$(systemctl show -p MainPID --value oneway-agent)
systemctl reload oneway-agent
measures
[ "$process" = "$(systemctl show -p MainPID --value oneway-agent)" ] || fail "a reload started another process"
journalctl --no-pager -u oneway-agent | grep "Configuration reloaded" || fail "the agent logged no reload"

for package in "$new" "$old" "$new"; do
  echo "== ${package##*/} over $(dpkg-query -W oneway)"
  before=$(systemctl show -p MainPID --value oneway-agent)
  oneway probe 127.0.0.1 --count 6000 --interval 100ms >/root/probe 2>&1 &
  watch=$!
  sleep 2 # replies before it
  apt install --allow-downgrades "$package"
  cmp /etc/oneway/oneway.yml /root/changed.yml || fail "the configuration changed"
  after=$(systemctl show -p MainPID --value oneway-agent)
  [ "$before" != "$after" ] || fail "process $before runs still: the program before"
  systemctl is-active oneway-agent || fail "the agent does not run"
  measures
  kill $watch
  wait $watch || true
  lost=$(awk '$1 == "lost" {print $NF}' /root/probe)
  echo "guest: $lost of $(awk '$1 == "sent" {print $2}' /root/probe) requests, ten a second, had no reply"
  [ "${lost:-6000}" -le 50 ] || fail "the reflector did not reply for more than 5 s: $(cat /root/probe)"
done

echo "== a reload with a mistake"
process=$(systemctl show -p MainPID --value oneway-agent)
echo 'pathz: []' >>/etc/oneway/oneway.yml
! systemctl reload oneway-agent || fail "a reload takes a mistake"
journalctl --no-pager -u oneway-agent | grep 'pathz is unknown' || fail "the log has no reason of the refused reload"
[ "$process" = "$(systemctl show -p MainPID --value oneway-agent)" ] || fail "a refused reload ended the agent"
cp /root/changed.yml /etc/oneway/oneway.yml
systemctl reload oneway-agent

echo "== the commands of the pages Upgrade and Troubleshooting"
page upgrade.md '^(apt-get|oneway)' "${new%/*}"
page troubleshooting.md '^(oneway|journalctl)' /

echo "== the commands of the runbooks that need systemd"
sed -n 's/^    //p' /root/pages/Oneway*.md | sed -n -E 's/^(ssh HOST )?(systemctl|journalctl|dmesg)/\2/p' | sort -u >/root/commands
[ -s /root/commands ] || fail "the runbooks have no such command"
while read -r command; do
  echo "# $command"
  status=0
  (eval "$command" </dev/null) || status=$?
  # journalctl found no entry (1); a unit is not active (3) or does not exist (4): systemctl(1).
  case "$command $status" in *' 0' | journalctl*' 1' | 'systemctl status '*' '[34]) ;; *) fail "$command: exit status $status" ;; esac
done </root/commands

echo "== reflector and load server of their own"
systemctl stop oneway-agent
systemctl enable --now oneway-reflect
oneway probe 127.0.0.1 --count 20 --interval 20ms || fail "the reflector does not reply"
oneway token new --file /etc/oneway/tokens --name a --out /root/a.token --rate 10Mbit --duration 1m --per-day 1GB
chgrp oneway /etc/oneway/tokens
chmod 640 /etc/oneway/tokens
systemctl enable --now oneway-load-server
sleep 2 # it prints its pin
systemctl is-active oneway-load-server || fail "the load server does not run"
for unit in oneway-agent oneway-reflect oneway-load-server; do
  systemd-analyze security --no-pager --threshold=20 $unit.service >/root/exposure || fail "the exposure of $unit is above 2.0"
  tail -1 /root/exposure
done

echo "== remove"
apt-get remove -y -q oneway </dev/null
[ -e /etc/oneway/oneway.yml ] || fail "a removal took the configuration"
! ss -lntup | grep -E ':(862|8620|9862)\b' || fail "a port is open after the removal"
[ -z "$(find /etc/systemd -name 'oneway*')" ] || fail "a unit is enabled after the removal"

echo "== purge with tokens of the operator"
apt-get purge -y -q oneway </dev/null
[ -e /etc/oneway/tokens ] || fail "a purge took the operator's tokens"
id oneway || fail "the user is gone, and its tokens are not"

echo "== purge"
rm /etc/oneway/tokens
apt install "$new"
apt-get purge -y -q oneway </dev/null
files >/root/files.after
accounts >/root/accounts.after
diff /root/files.before /root/files.after || fail "a purge left these files"
diff /root/accounts.before /root/accounts.after || fail "a purge left these accounts"
echo "guest: all passed"
