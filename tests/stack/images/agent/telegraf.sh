# Runs Telegraf, and starts it again when it has ended, as systemd does.
trap 'kill "$telegraf"; exit 143' TERM
while :; do
  /stack/telegraf --config /stack/telegraf.conf &
  telegraf=$!
  wait "$telegraf"
  sleep 1 # systemd waits, too
done
