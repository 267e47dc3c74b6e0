#!/bin/sh
# Not before an upgrade. dpkg: "remove". rpm: no version remains.
set -e
case $1 in
remove | 0) ;;
*) exit 0 ;;
esac
units='oneway-agent.service oneway-reflect.service oneway-load-server.service'
[ ! -d /run/systemd/system ] || systemctl stop $units
! command -v systemctl >/dev/null || systemctl --quiet disable $units
