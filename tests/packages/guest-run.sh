#!/usr/bin/env bash
# Boots bare Debian with systemd in a guest kernel, and runs guest.sh there. root, for the owners of files.
# usage: guest-run.sh ROOT.tar OLD.deb NEW.deb LOG
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tar=$1 old=$2 new=$3 log=$4
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
mkdir -p "$work/root" "$work/uml"
tar -C "$work/root" --numeric-owner -xf "$tar"
cp "$here/guest.sh" "$work/root/root/"
mkdir "$work/root/root/old" "$work/root/root/new"
mkdir "$work/root/root/pages"
cp "$here"/../../exporter/doc/{install,upgrade,troubleshooting}.md "$here"/../../exporter/serve/runbook/*.md "$work/root/root/pages/"
cp "$old" "$work/root/root/old/"
cp "$new" "$work/root/root/new/"
cat >"$work/root/root/start.sh" <<END
#!/bin/sh
mkdir -p /mnt && mount -t hostfs none /mnt -o $work
/root/guest.sh /root/old/${old##*/} /root/new/${new##*/} >/mnt/log 2>&1
umount /mnt
systemctl poweroff --force --force
END
cat >"$work/root/etc/systemd/system/guest.service" <<'END'
[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/root/start.sh
END
chmod +x "$work/root/root"/*.sh
mkdir -p "$work/root/etc/systemd/system/multi-user.target.wants"
ln -s ../guest.service "$work/root/etc/systemd/system/multi-user.target.wants/"
truncate -s 1500M "$work/disk"
mkfs.ext4 -q -d "$work/root" "$work/disk"
gcc -O2 -shared -fPIC -o "$work/wake.so" "$here/../vmlab/uml/wake.c"
LD_PRELOAD=$work/wake.so TMPDIR=/dev/shm timeout 600 linux.uml mem=512M "ubd0=$work/disk" root=/dev/ubda rw init=/lib/systemd/systemd \
  con=null con0=null,fd:1 quiet "umid=packages-$$" "uml_dir=$work/uml" </dev/null >"$work/console" 2>&1 || true
cp "$work/log" "$log" 2>/dev/null || {
  tail -30 "$work/console" >&2
  echo "guest-run: the guest wrote no log" >&2
  exit 1
}
tail -1 "$log" | grep -qx 'guest: all passed' || {
  tail -30 "$log" >&2
  exit 1
}
