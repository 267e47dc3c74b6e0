#!/bin/sh
# What packages of OpenWrt's own build have: default_postinst enables and starts /etc/init.d/oneway, which starts nothing before
# UCI enables it.
[ "${IPKG_NO_SCRIPT:-}" = 1 ] && exit 0
[ -s "${IPKG_INSTROOT:-}/lib/functions.sh" ] || exit 0
. "${IPKG_INSTROOT:-}/lib/functions.sh"
default_postinst "$0" "$@"
