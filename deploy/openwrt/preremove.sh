#!/bin/sh
# What packages of OpenWrt's own build have: default_prerm disables and stops /etc/init.d/oneway.
[ "${IPKG_NO_SCRIPT:-}" = 1 ] && exit 0
[ -s "${IPKG_INSTROOT:-}/lib/functions.sh" ] || exit 0
. "${IPKG_INSTROOT:-}/lib/functions.sh"
default_prerm "$0" "$@"
