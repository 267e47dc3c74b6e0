# TELEGRAF: Telegraf runs, too. LINK_NET is the subnet of the network to the router, LINK_ADDRESS this host's address on the link, with its prefix.
# The link passes frames, so their checksums and segments must be those of a wire.
set -eu
link=$(ip -o route show "$LINK_NET" | sed -n 's/.* dev \([^ ]*\) .*/\1/p')
ethtool -K "$link" tx off tso off gso off gro off >/dev/null
ip address add "$LINK_ADDRESS" dev "$link"
export PULSE_CONTROL=:9863 PULSE_OPTIONS="-receiver.radius 100 -receiver.speed 5"
exec /bin/sh /pulse/start.sh /stack/oneway agent --config.file=/stack/oneway.yml --web.listen-address=:9862 \
  ${TELEGRAF:+-- /bin/sh /stack/telegraf.sh}
