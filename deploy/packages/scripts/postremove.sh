#!/bin/sh
set -e
[ ! -d /run/systemd/system ] || systemctl daemon-reload
# dpkg alone knows a purge. Of rpm, state and user stay, as with other packages.
[ "$1" = purge ] || exit 0
rm -rf /var/lib/oneway /var/lib/oneway-load-server
rmdir /etc/oneway 2>/dev/null || true
# A later user could get the number of this one, and read its keys.
if [ -d /etc/oneway ]; then
  echo "oneway: /etc/oneway has files that no package owns (keys, tokens?); the user oneway stays, because it may read them" >&2
elif getent passwd oneway >/dev/null; then
  userdel oneway
fi
