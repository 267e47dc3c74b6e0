#!/usr/bin/env bash
# Creates the database of the output influxdb, with retention and downsampling. It may be repeated with versions 1 and 2.
# usage: deploy/influxdb/create.sh 1 http://localhost:8086      InfluxDB 1.8; INFLUX_USERNAME and INFLUX_PASSWORD if it requires them
#        deploy/influxdb/create.sh 2 ORG                        InfluxDB 2, by its program influx, which has the address and the token
#        deploy/influxdb/create.sh 3                            InfluxDB 3 Core, by its program influxdb3, as above
set -euo pipefail

cd "$(dirname "$0")"
usage() { sed -n '3,5s/^# //p' create.sh >&2; exit 2; }

# Executes a statement of InfluxQL, and fails with the server's message.
execute() {
  local auth='' reply
  # The password is passed in a file descriptor, since every user sees the arguments of a process.
  [[ -n ${INFLUX_USERNAME:-} ]] && auth="user = \"$INFLUX_USERNAME:${INFLUX_PASSWORD:-}\""
  reply=$(curl --silent --show-error --config <(echo "$auth") --data-urlencode "q=$2" "$1/query")
  # Another server, or another path of this one, replies without results.
  if [[ $reply != *'"results"'* || $reply == *'"error"'* ]]; then
    echo "create.sh: $1: $2: ${reply:0:300}" >&2
    return 1
  fi
}

case ${1:-} in
1)
  url=${2:-}
  [[ $url ]] || usage
  while read -r statement; do
    [[ -z $statement || $statement == --* ]] && continue
    execute "${url%/}" "$statement"
  done <influxdb1.iql
  echo "create.sh: $url has the database oneway, with raw (30 days) and long (2 years)"
  ;;
2)
  org=${2:-}
  [[ $org ]] || usage
  for bucket in oneway:30d oneway_long:104w; do
    influx bucket list --org "$org" --hide-headers | awk '{print $2}' | grep -qx "${bucket%:*}" ||
      influx bucket create --org "$org" --name "${bucket%:*}" --retention "${bucket#*:}"
  done
  influx task list --org "$org" | grep -q oneway_5m || influx task create --org "$org" --file downsample.flux
  influx task list --org "$org" | grep -q oneway_hours || influx task create --org "$org" --file hours.flux
  ;;
3)
  influxdb3 create database oneway --retention-period 30d
  influxdb3 create database oneway_long --retention-period 2y
  ;;
*) usage ;;
esac
