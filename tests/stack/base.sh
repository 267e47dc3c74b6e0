#!/usr/bin/env bash
# Makes the image oneway-stack/base: Debian 12 with Debian's programs of the stack. debootstrap installs them, so that
# no container needs a way to the internet. The root file system is kept in build/stack for the next engine.
set -euo pipefail
cd "$(dirname "$0")/../.."
export PATH=$PATH:/usr/sbin:/sbin
suite=bookworm # Prometheus 2.42
packages=ca-certificates,chrony,ethtool,gpsd,iproute2,procps,prometheus,prometheus-alertmanager
image=oneway-stack/base
key=$(sha256sum "$0" | cut -c1-12)
cache=$PWD/build/stack
tar=$cache/base-$key.tar

[[ $(docker image inspect --format '{{index .Config.Labels "oneway.key"}}' "$image" 2>/dev/null) != "$key" ]] || exit 0
if [[ ! -e $tar ]]; then
  echo "base: debootstrap of $suite with $packages" >&2
  root=$cache/base
  mkdir -p "$cache/packages"
  rm -rf --one-file-system "$root"
  # Debian's source: that of this machine, else Debian itself.
  mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' 'Origin: Debian' 2>/dev/null |
    awk -v s="$suite" '$2 == s {print $1; exit}')
  if proxy=$(apt-config shell proxy Acquire::http::Proxy 2>/dev/null) && eval "$proxy" && [[ -n ${proxy:-} ]]; then
    export http_proxy=${http_proxy:-$proxy}
  fi
  debootstrap --variant=minbase --include="$packages" --cache-dir="$cache/packages" "$suite" "$root" \
    "${mirror:-http://deb.debian.org/debian}" >"$cache/base.log" 2>&1 || {
    tail -20 "$cache/base.log" >&2
    echo "base: no base; its log: $cache/base.log" >&2
    exit 1
  }
  tar -C "$root" --numeric-owner --exclude='./var/cache/apt/archives/*.deb' --exclude='./var/lib/apt/lists/*' \
    --exclude='./usr/share/doc/*' --exclude='./dev/*' -cf "$tar.new" .
  mv "$tar.new" "$tar"
  rm -rf --one-file-system "$root"
fi
docker import --change "LABEL oneway.key=$key" "$tar" "$image" >/dev/null
