# CLIENT_NET and SERVER_NET are the subnets of both networks, PROFILE is the name or file of the first profile.
set -eu
interface() { ip -o route show "$1" | sed -n 's/.* dev \([^ ]*\) .*/\1/p'; }
client=$(interface "$CLIENT_NET") server=$(interface "$SERVER_NET")
for i in "$client" "$server"; do ethtool -K "$i" tx off tso off gso off gro off >/dev/null; done
exec /stack/link "$PROFILE" "$client" "$server"
