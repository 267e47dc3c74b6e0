#!/usr/bin/env bash
# Runs inside.sh in a root of busybox, in namespaces of its own.
set -euo pipefail
ip link set lo up
mount -t proc proc "$1/proc"
mount --bind /dev "$1/dev"
exec chroot "$1" /bin/sh /tmp/inside.sh "$2"
