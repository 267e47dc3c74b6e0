#!/usr/bin/env bash
# Makes packages for OpenWrt twice, and runs the program of each architecture in qemu, started by the package's scripts in a root
# file system of busybox: make openwrt-test. uci, functions.sh, rc.common and procd.sh of OpenWrt are stand-ins: no package of Debian
# has them.
# usage: tests/openwrt/run.sh [ARCHITECTURE ...]; without one the output of both that are tested becomes log.txt
set -euo pipefail
cd "$(dirname "$0")/../.."
export PATH=$PATH:/usr/sbin:/sbin
work=$PWD/build/openwrt-test here=$PWD/tests/openwrt
[[ $(id -u) -eq 0 ]] || {
  echo "openwrt: user $(id -un): a root file system needs root: sudo make openwrt-test" >&2
  exit 1
}
[[ $# -gt 0 ]] || result=$here/log.txt
[[ $# -gt 0 ]] || set -- mipsel_24kc arm_cortex-a7_neon-vfpv4
largest=$((6 * 1024 * 1024))
declare -A emulator=([mipsel_24kc]=mipsel [arm_cortex-a7_neon-vfpv4]=arm [mips_24kc]=mips [aarch64_generic]=aarch64 [x86_64]=x86_64)
say() { echo "== $*"; }
fail() { echo "openwrt: $*" >&2; exit 1; }

rm -rf --one-file-system "$work"
mkdir -p "$work"
copy=$(mktemp -d) # the second build is at another place
trap 'rm -rf --one-file-system "$copy"' EXIT
say "two builds"
git clone -q . "$copy/oneway"
deploy/openwrt/build.sh "$work/one" "$@"
"$copy/oneway/deploy/openwrt/build.sh" "$work/two" "$@"

{
  for architecture; do
    package=$(ls "$work"/one/*_"$architecture".ipk)
    cmp "$package" "$work/two/${package##*/}" || fail "two builds differ"
    size=$(stat -c %s "$package")
    say "$architecture: $size bytes"
    # The page has it in MB.
    awk -v size="$size" -v architecture="$architecture" '$2 == architecture {said = $4 * 1e6} END {exit !(said > 0.98 * size && said < 1.02 * size)}' exporter/doc/openwrt.md ||
      fail "exporter/doc/openwrt.md has another size of $architecture"
    [[ $size -le $largest ]] || fail "${package##*/} is larger than $largest bytes"

    root=$work/$architecture
    mkdir -p "$root"/{bin,etc/init.d,etc/config,lib/functions,tmp,var/lock,dev,proc,control}
    cp "$(command -v busybox)" "$root/bin/busybox"
    ldd "$root/bin/busybox" | grep -o "/[^ ]*" | grep -v ":" | xargs cp --parents -L -t "$root"
    chroot "$root" /bin/busybox --install -s /bin
    cp "$(command -v "qemu-${emulator[$architecture]}-static")" "$root/bin/qemu"
    cp "$package" "$root/tmp/oneway.ipk"
    cp "$here/stand-in/functions.sh" "$root/lib/functions.sh"
    cp "$here/stand-in/rc.common" "$root/etc/rc.common"
    cp "$here/stand-in/procd.sh" "$root/lib/functions/procd.sh"
    chmod +x "$root/etc/rc.common"
    cp "$here/inside.sh" "$root/tmp/inside.sh"
    unshare --mount --net --pid --fork "$here/enter.sh" "$root" "$architecture"
  done
  say passed
} | tee "$work/log.txt"
[[ -z ${result:-} ]] || cp "$work/log.txt" "$result"
