#!/usr/bin/env bash
# Runs the role of deploy/ansible twice on three bare hosts, root file systems of Debian 12, and checks the configuration of each as the user
# oneway: part of make deploy-test.
# usage: tests/packages/ansible.sh ROOT.tar ONEWAY.deb
set -euo pipefail
[[ ${OWN_MOUNTS:-} == 1 ]] || OWN_MOUNTS=1 exec unshare --mount "$0" "$@" # what is mounted below goes with it
cd "$(dirname "$0")/../.."
tar=$(realpath "$1") deb=$(realpath "$2")
version=12.3.0
tool=$PWD/build/ansible-$version
[[ -x $tool/bin/ansible-playbook ]] || {
  python3 -m venv "$tool"
  "$tool/bin/pip" --quiet install ansible==$version
}
work=$(mktemp -d)
trap 'umount "$work"/*/proc; rm -rf --one-file-system "$work"' EXIT
fail() {
  echo "ansible: $1" >&2
  exit 1
}
cp -r deploy/ansible "$work/ansible"
cp "$deb" "$work/ansible/files/"
head -c 24 /dev/urandom | base64 >"$work/ansible/files/stamp.key"
{
  printf 'all:\n  children:\n    oneway:\n      hosts:\n'
  number=0
  for host in seoul-1 seoul-2 paris-1; do
    mkdir "$work/$host"
    tar -C "$work/$host" -xf "$tar"
    mount -t proc proc "$work/$host/proc"
    printf '        %s.example.net: {ansible_host: %s, oneway_site: %s, oneway_address: 127.0.0.%d}\n' $host "$work/$host" ${host%-*} $((++number))
  done
  printf '      vars: {ansible_connection: community.general.chroot, ansible_python_interpreter: /usr/bin/python3, ansible_become: false, oneway_package: "files/%s", oneway_key_file: files/stamp.key}\n' "$(basename "$deb")"
} >"$work/inventory.yml"
play() { (cd "$work/ansible" && HOME=$work PATH=$tool/bin:$PATH ansible-playbook --inventory "$work/${inventory:-inventory.yml}" site.yml "$@"); }
# refuses plays with a mistake, which an error must name before a host changes.
refuses() { # words of the error, arguments
  local want=$1
  shift
  ! play "$@" >"$work/refused.log" || fail "no error: $want"
  grep -qF "$want" "$work/refused.log" && ! grep -q 'changed=[1-9]' "$work/refused.log" || { cat "$work/refused.log" >&2; fail "another error than: $want"; }
}
for host in seoul-1 seoul-2 paris-1; do
  chroot "$work/$host" apt-get install -y -qq python3 python3-apt >/dev/null 2>&1 # Ansible's needs, beside the package's
done
refuses 'oneway_key_file is files/none.key, and no such file is on this machine' --extra-vars oneway_key_file=files/none.key
sed 's/ oneway_site: paris,//' "$work/inventory.yml" >"$work/siteless.yml"
inventory=siteless.yml refuses 'paris-1.example.net has no oneway_site' --limit seoul-1.example.net
play >"$work/first.log" || { cat "$work/first.log" >&2; fail "the first run failed"; }
play >"$work/second.log" || { cat "$work/second.log" >&2; fail "the second run failed"; }
[[ $(grep -c 'changed=0 .*failed=0' "$work/second.log") == 3 ]] || { tail -5 "$work/second.log" >&2; fail "a second run changes something"; }
cp "$work/seoul-1/etc/oneway/hosts.yml" "$work/hosts.yml"
cp "$work/inventory.yml" "$work/valid.yml"
sed -i 's/oneway_site: paris/oneway_site: "two\\nlines"/' "$work/inventory.yml"
! play >"$work/third.log" || fail "a label of two lines was accepted"
cmp "$work/hosts.yml" "$work/seoul-1/etc/oneway/hosts.yml" || fail "an invalid file of hosts replaced the valid one"
sed 's/\(seoul-1\|seoul-2\|paris-1\).example.net: {/\1: {oneway_name: 0123-\1, /; s/seoul-1: {/10.0.0.1: {/; s/oneway_name: 0123-seoul-1, //' "$work/valid.yml" >"$work/inventory.yml"
play >"$work/fourth.log" || { cat "$work/fourth.log" >&2; fail "names that are an IP address or begin with a number"; }
grep -q '{name: "10.0.0.1",' "$work/seoul-2/etc/oneway/hosts.yml" || fail "the name of a host that is an IP address"
cp "$work/valid.yml" "$work/inventory.yml"
play >"$work/fifth.log" || { cat "$work/fifth.log" >&2; fail "the fifth run failed"; }
for host in seoul-1 seoul-2 paris-1; do
  chroot "$work/$host" su -s /bin/sh oneway -c 'oneway check-config --paths /etc/oneway/oneway.yml' >"$work/paths" || { cat "$work/paths" >&2; fail "$host: the user oneway cannot use its configuration"; }
  grep -q "$host-to-" "$work/paths" || { cat "$work/paths"; fail "$host has no path of the mesh"; }
  [[ $(stat -c %a "$work/$host/etc/oneway/stamp.key") == 640 ]] || fail "$host: mode of the key"
done
echo "ansible: three hosts configured, a second run changed nothing"
