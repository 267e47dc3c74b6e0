#!/usr/bin/env bash
# Installs and removes both packages in a root file system without a running systemd, and starts the program of the image.
# It has mounts, processes and a network of its own.
# usage: inside.sh ROOT.tar PACKAGE.deb PACKAGE.rpm IMAGE.oci.tar
set -euo pipefail
tar=$1 deb=$2 rpm=$3 image=$4
fail() {
  echo "inside: $1" >&2
  exit 1
}
work=$(mktemp -d)
trap 'umount "$root/proc" 2>/dev/null; rm -rf --one-file-system "$work"' EXIT
root=$work/root
mkdir "$root"
tar -C "$root" --numeric-owner -xf "$tar"
mount -t proc proc "$root/proc"
ip link set lo up
in_root=(chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive)
run() { "${in_root[@]}" "$@" </dev/null; }
end() { # a process started in the background
  kill "$1"
  wait "$1" 2>/dev/null || true
}
files() { (cd "$root" && find . -xdev \( -path ./proc -o -path ./root -o -path ./tmp -o -path ./var/lib/dpkg -o -path ./var/lib/apt -o -path ./var/lib/rpm -o -path ./var/log -o -path ./var/cache \) -prune -o -print | sort); }
accounts() { cat "$root/etc/passwd" "$root/etc/group" | sort; }
# works checks what each kind of installation has.
works() {
  run oneway check-config /etc/oneway/oneway.yml
  run id oneway
  [[ $(run stat -c '%a %U %G' /etc/oneway) == '750 root oneway' ]] || fail "/etc/oneway is $(run stat -c '%a %U %G' /etc/oneway)"
  run systemctl --quiet enable oneway-agent
  "${in_root[@]}" oneway reflect --clock=none --listen=127.0.0.1:9000 >/dev/null &
  for _ in {1..50}; do
    ! run oneway probe 127.0.0.1:9000 --clock=none --count=1 >/dev/null 2>&1 || break
    sleep 0.1 # until it listens
  done
  run oneway probe 127.0.0.1:9000 --clock=none --count=20 --interval=20ms | grep -E '^  lost +0 +0 +0$' || fail "the path has loss, or no reply"
  end $!
}

files >"$work/files"
accounts >"$work/accounts"
echo "-- deb"
[[ $(dpkg-deb -f "$deb" Recommends) == "chrony | time-daemon" ]] || fail "apt would replace the time daemon of a host by chrony"
cp "$deb" "$root/root/oneway.deb"
run apt-get install -y -qq /root/oneway.deb >/dev/null
works
# An upgrade whose services do not start again is complete nevertheless.
mkdir -p "$root/root/bin" "$root/run/systemd/system"
printf '#!/bin/sh\n[ "$1" != try-restart ]\n' >"$root/root/bin/systemctl"
chmod +x "$root/root/bin/systemctl"
install -D "$root/root/bin/systemctl" "$root/usr/local/bin/oneway"
said=$(chroot "$root" env -i PATH=/root/bin:/usr/sbin:/usr/bin:/sbin:/bin /var/lib/dpkg/info/oneway.postinst configure 0.0.1-1 2>&1) || fail "a service that does not start fails the upgrade: $said"
[[ $said == *"did not start again"* ]] || fail "the upgrade does not say that a service did not start: '$said'"
[[ $said == *"/usr/local/bin/oneway comes before"* ]] || fail "the upgrade does not say that another program is in use: '$said'"
rm -r "$root/root/bin" "$root/run/systemd/system" "$root/usr/local/bin/oneway"
run apt-get purge -y -qq oneway >/dev/null
files | diff "$work/files" - || fail "a purge left these files"
accounts | diff "$work/accounts" - || fail "a purge left these accounts"

echo "-- rpm"
mkdir -p "$root"/usr/share/fish/vendor_completions.d "$root"/usr/share/zsh/site-functions # of fish and zsh
files >"$work/files"
rpm --root "$root" --nodeps -i "$rpm"
works
echo '# changed' >>"$root/etc/oneway/oneway.yml"
rpm --root "$root" --nodeps -U --force "$rpm"
grep -qx '# changed' "$root/etc/oneway/oneway.yml" || fail "an upgrade of the RPM replaced the configuration"
rpm --root "$root" -e oneway
files | grep -vE './etc/oneway|./var/lib/oneway' | diff "$work/files" - || fail "a removal of the RPM left these files"

echo "-- image"
skopeo copy -q "oci-archive:$image" "oci:$work/layout:x"
skopeo inspect --config "oci:$work/layout:x" | grep -q '"User": "65532:65532"' || fail "the image has another user"
# The bill of materials refers to the image, also in a copy of all platforms.
skopeo copy -q --all "oci-archive:$image" "dir:$work/all"
of_image() { jq -r '.manifests[] | select(.platform.os == "linux").digest' "$work/all/manifest.json" | sort; }
of_bills() {
  local attestation statement
  jq -r '.manifests[] | select(.platform.os == "unknown").digest' "$work/all/manifest.json" | while read -r attestation; do
    attestation=$work/all/${attestation#sha256:}.manifest.json
    statement=$work/all/$(jq -r '.layers[0].digest' "$attestation" | cut -d: -f2)
    [[ $(jq -r .predicate.bomFormat "$statement") == CycloneDX && sha256:$(jq -r '.subject[0].digest.sha256' "$statement") == $(jq -r .subject.digest "$attestation") ]] || fail "$attestation is not of one image"
    jq -r .subject.digest "$attestation"
  done | sort
}
[[ -n $(of_image) && $(of_image) == "$(of_bills)" ]] || fail "the images are $(of_image), the bills of materials of $(of_bills)"
# Programs in Go read a tar file without its end, others do not.
tar -tf "$image" >/dev/null || fail "the archive of the images is no whole tar file"
jq -r '.layers[].digest' "$work/layout/blobs/sha256/$(jq -r '.manifests[0].digest' "$work/layout/index.json" | cut -d: -f2)" | while read -r layer; do
  tar -tzf "$work/layout/blobs/sha256/${layer#sha256:}" >/dev/null || fail "layer $layer is no whole tar file"
done
umoci unpack --image "$work/layout:x" "$work/bundle" 2>/dev/null
image=$work/bundle/rootfs
mount --bind "$image" "$image"
mount -o remount,bind,ro "$image"
contained=(chroot --userspec=65532:65532 "$image" /usr/bin/oneway)
"${contained[@]}" agent --config.file=/etc/oneway/oneway.yml --web.listen-address=127.0.0.1:9862 >/dev/null 2>"$work/agent.log" &
for _ in {1..50}; do
  ! "${contained[@]}" healthy 2>/dev/null || break
  sleep 0.1 # until it serves
done
"${contained[@]}" healthy || fail "the agent of the image does not reply: $(cat "$work/agent.log")"
end $!
umount "$image"
du -sh "$work/layout" | cut -f1
