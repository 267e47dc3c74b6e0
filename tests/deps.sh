#!/usr/bin/env bash
# Installs the Debian packages that one purpose lacks, and prints the reason.
# usage: tests/deps.sh test|demo|bench|interop|vmlab|vmlab-pps|stack|fresh|packages|openwrt|deploy
set -euo pipefail

purpose=${1:?usage: tests/deps.sh test|demo|bench|interop|vmlab|vmlab-pps|stack|fresh|packages|openwrt|deploy}
# command or file  package  purposes  why
# Not listed: packages of every Debian (bash, coreutils, mawk, util-linux), and make, git and Go, which start this script.
needs='
prometheus prometheus test,demo,vmlab the demo runs Prometheus, and promtool checks the rules
amtool     prometheus-alertmanager test checks the Alertmanager configuration
chronyd    chrony     test,vmlab the clock monitor is tested with chronyd
gpsd       gpsd       test,vmlab gpsd loads each file of chrony-config
gpspipe    gpsd-clients test     an independent client checks the replies of gpsd
tshark     tshark     test,interop an independent dissector checks our packets
systemd-analyze systemd test     checks the unit and the drop-ins
ip         iproute2   test,demo,bench,vmlab network namespaces
curl       curl       test       deploy/influxdb/create.sh sends its queries with it
nft        nftables   test       firewalls, NAT and transparent proxies on the host and on paths
linux.uml  user-mode-linux vmlab,packages  two guest kernels, each with its own clock
/usr/src/linux-source-6.1.tar.xz linux-source-6.1 vmlab-pps source of a guest kernel with pulses
gcc        gcc        test,vmlab,vmlab-pps,packages links the race detector, compiles the program that wakes the guests, and the kernel
/usr/include/stdio.h libc6-dev test,vmlab,vmlab-pps,packages headers for gcc
chromium   chromium   test       the pages of the agent are tested in a browser
/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf fonts-dejavu-core test the browser needs a font
make       make       vmlab-pps  builds that kernel
flex       flex       vmlab-pps  builds that kernel
bison      bison      vmlab-pps  builds that kernel
bc         bc         vmlab-pps  builds that kernel
xz         xz-utils   vmlab-pps  unpacks its source
irtt       irtt       bench      compared with oneway
iperf3     iperf3     bench      compared with oneway
prometheus-smokeping-prober prometheus-smokeping-prober bench compared with oneway
prometheus-blackbox-exporter prometheus-blackbox-exporter bench compared with oneway
dockerd    docker.io  stack      runs the containers of the stack
iptables   iptables   stack      dockerd looks for it when it starts
debootstrap debootstrap stack,fresh,packages creates a minimal Debian
lintian    lintian    packages   checks the Debian package
rpm        rpm        packages   installs the RPM package in a root file system of its own
skopeo     skopeo     packages   reads the container images
umoci      umoci      packages   unpacks a container image
jq         jq         test,packages,deploy  commands of the documentation, images, and the results of two versions
openssl    openssl    test       commands of the documentation
sysctl     procps     test       the same
ping       iputils-ping test     the same
tracepath  iputils-tracepath test the same
traceroute traceroute test       the same
mtr        mtr-tiny   test       the same
tcpdump    tcpdump    test       the same
ethtool    ethtool    test       the same
/usr/lib/python3.11/ensurepip/__init__.py python3-venv deploy Ansible is installed beside the system
busybox    busybox    openwrt    the shell of OpenWrt
qemu-mipsel-static qemu-user-static openwrt runs programs of other architectures
ip         iproute2   openwrt    a network namespace
'

missing=()
while read -r command package purposes why; do
  [[ -n $command && ,$purposes, == *,"$purpose",* ]] || continue
  PATH=$PATH:/usr/sbin:/sbin command -v "$command" >/dev/null && continue
  [[ -e $command ]] && continue
  echo "deps: $package is missing: $why" >&2
  missing+=("$package")
done <<<"$needs"
[[ ${#missing[@]} -eq 0 ]] && exit 0

if [[ $(id -u) -eq 0 ]]; then sudo=(); elif command -v sudo >/dev/null; then sudo=(sudo); else
  echo "deps: not root and no sudo; as root: apt-get install ${missing[*]}" >&2
  exit 1
fi
command -v apt-get >/dev/null || {
  echo "deps: no apt-get here; install by hand: ${missing[*]}" >&2
  exit 1
}
echo "deps: installing ${missing[*]}" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# policy-rc.d prevents the packages' own services from starting: tests start their own.
policy=/usr/sbin/policy-rc.d
if [[ ! -e $policy ]]; then
  printf '#!/bin/sh\nexit 101\n' | "${sudo[@]}" tee "$policy" >/dev/null
  "${sudo[@]}" chmod 755 "$policy"
  trap '"${sudo[@]}" rm -f "$policy"; rm -f "$log"' EXIT
fi
install() { "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}" >"$log" 2>&1; }
install || { "${sudo[@]}" apt-get update >"$log" 2>&1 && install; } || {
  cat "$log" >&2
  exit 1
}
