#!/usr/bin/env bash
# Builds a user-mode-linux kernel with a pulse per second of the host's clock
# (pps-host.c) from Debian's linux-source, some minutes. The result is kept
# until this directory or the source package changes:
#
#   tests/vmlab/kernel/build.sh DIRECTORY   prints the kernel's path
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${1:?the directory for the kernel and its build is missing}
mkdir -p "$out"
out=$(cd "$out" && pwd)
source=/usr/src/linux-source-6.1.tar.xz
if [[ ! -e $source ]]; then
  echo "$source is missing: apt-get install linux-source-6.1 bc bison flex libelf-dev" >&2
  exit 1
fi
key=$({ cat "$here"/*; stat -c '%s %Y' "$source"; } | sha256sum | cut -c1-16)
kernel=$out/linux-$key
if [[ -x $kernel ]]; then
  echo "$kernel"
  exit
fi
tree=$out/tree
{
  echo "building a guest kernel from $source, some minutes"
  rm -rf "$tree"
  mkdir -p "$tree"
  tar -C "$tree" --strip-components=1 -xf "$source"
  clients=$tree/drivers/pps/clients
  cp "$here/pps-host.c" "$clients/"
  printf '\nobj-$(CONFIG_PPS_CLIENT_HOST)\t+= pps-host.o\n' >>"$clients/Makefile"
  printf '\nconfig PPS_CLIENT_HOST\n\tbool "A pulse at each second of the user-mode-linux host"\n\tdepends on UML\n' >>"$clients/Kconfig"
  cd "$tree"
  make ARCH=um defconfig
  scripts/kconfig/merge_config.sh -m .config "$here/fragment.config"
  make ARCH=um olddefconfig
  # What the fragment asks for and the source does not know is a mistake here.
  while read -r line; do
    case $line in
      CONFIG_*=n) ! grep -q "^${line%=n}=" .config || { echo "$line was not taken"; exit 1; } ;;
      CONFIG_*) grep -qx "$line" .config || { echo "$line was not taken"; exit 1; } ;;
    esac
  done <"$here/fragment.config"
  make ARCH=um -j"$(nproc)" linux
  strip -o "$kernel.new" linux
  mv "$kernel.new" "$kernel"
  rm -rf "$tree"
} >"$out/build.log" 2>&1 || { tail -20 "$out/build.log" >&2; echo "the whole log: $out/build.log" >&2; exit 1; }
echo "$kernel"
