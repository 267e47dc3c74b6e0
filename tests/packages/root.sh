#!/usr/bin/env bash
# Makes the root file system of bare Debian with systemd, as a tar file that is kept: for a guest, and to change into.
# usage: root.sh SUITE FILE.tar
set -euo pipefail
suite=$1 tar=$2
[[ ! -e $tar ]] || exit 0
root=$(mktemp -d "$tar.XXXXXX")
trap 'rm -rf --one-file-system "$root"' EXIT
# The source of this machine, else Debian itself.
mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' 'Origin: Debian' 2>/dev/null |
  awk -v s=bookworm '$2 == s {print $1; exit}')
if proxy=$(apt-config shell proxy Acquire::http::Proxy 2>/dev/null) && eval "$proxy" && [[ -n ${proxy:-} ]]; then
  export http_proxy=${http_proxy:-$proxy}
fi
debootstrap --variant=minbase --include=systemd-sysv,dbus,chrony,iproute2 "$suite" "$root/root" "${mirror:-http://deb.debian.org/debian}" >"$tar.log" 2>&1 || {
  tail -20 "$tar.log" >&2
  echo "root: no root file system of $suite; its log: $tar.log" >&2
  exit 1
}
tar -C "$root/root" --numeric-owner --exclude='./var/cache/apt/archives/*.deb' -cf "$tar.new" .
mv "$tar.new" "$tar"
