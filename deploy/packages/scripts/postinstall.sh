#!/bin/sh
# dpkg: "configure" and the version before, if any. rpm: how many versions there are now.
set -e
case $1 in
configure) before=$2 ;;
1) before= ;;
[2-9]) before=yes ;;
*) exit 0 ;;
esac
systemd-sysusers oneway.conf
systemd-tmpfiles --create oneway.conf
# As the README installs it; the services look there too.
[ ! -x /usr/local/bin/oneway ] ||
  echo "oneway: /usr/local/bin/oneway comes before the package's /usr/bin/oneway, also in its services: remove it" >&2
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
# A unit runs only where an operator has started it: the first installation opens no port.
# One that does not start again, as a configuration has an error or a port is in use, leaves the package installed: dpkg would
# take it for broken, and refuse to install others.
[ -z "$before" ] || systemctl try-restart oneway-agent.service oneway-reflect.service oneway-load-server.service ||
  echo "oneway: installed, but a service did not start again: systemctl status 'oneway-*' shows which and why" >&2
