#!/usr/bin/env bash
# Runs deploy/compose on this machine, from images that are built here under names of their own: make stack, make compose-test.
# usage: tests/compose/run.sh up      starts it and says where it is
#        tests/compose/run.sh down    removes containers, networks, volumes, and the engine if up has started it
#        tests/compose/run.sh test    up, what must hold, down
# GRAFANA_IMAGE is an image of Grafana on this machine; without it Grafana does not run.
set -euo pipefail
cd "$(dirname "$0")/../.."
export PATH=$PATH:/usr/local/go/bin:/usr/sbin:/sbin
out=$PWD/build/compose
mkdir -p "$out"
prometheus=3.16.0
say() { echo "compose: $*" >&2; }

fail() {
  say "$*"
  exit 1
}

# build makes an image from a file of tests/compose/images and programs.
build() { # name, programs
  local name=$1 context
  shift
  context=$(mktemp -d)
  cp "tests/compose/images/$name.Dockerfile" "$context/Dockerfile"
  [[ $# -eq 0 ]] || cp "$@" "$context/"
  docker build --quiet --tag "oneway-compose/$name" "$context" >/dev/null
  rm -r "$context"
}

images() {
  local base program
  tests/deps.sh stack
  tests/stack/base.sh &
  base=$!
  tests/influx/influxdb1.sh
  program=$(telegraf-plugins/telegraf.sh)
  [[ -x build/prometheus-$prometheus/prometheus ]] || tests/rules/prometheus3.sh $prometheus
  deploy/images/build.sh "$out" "$(dpkg --print-architecture)"
  wait "$base"
  build prometheus build/prometheus-$prometheus/prometheus
  build alertmanager
  build influxdb build/influxdb-1.8.10/influxd build/influxdb-1.8.10/influx
  build telegraf "$program"
  cat >"$out/env" <<END
COMPOSE_PROFILES=prometheus,influxdb${GRAFANA_IMAGE:+,grafana}
ONEWAY_IMAGE=$(docker load --quiet --input "$(ls -t "$out"/*.docker.tar | head -1)" | sed 's/^Loaded image: //')
PROMETHEUS_IMAGE=oneway-compose/prometheus
ALERTMANAGER_IMAGE=oneway-compose/alertmanager
INFLUXDB_IMAGE=oneway-compose/influxdb
TELEGRAF_IMAGE=oneway-compose/telegraf
GRAFANA_IMAGE=${GRAFANA_IMAGE:-grafana-has-no-image-here}
END
  [[ -n ${GRAFANA_IMAGE:-} ]] || say "SKIPPED, NOT RUN: Grafana: GRAFANA_IMAGE is not set"
}

compose() {
  "$program_compose" --env-file deploy/compose/.env --env-file "$out/env" --file deploy/compose/compose.yaml --file tests/compose/local.yaml "$@"
}

up() {
  images
  password=deploy/compose/secrets/grafana_password
  [[ -e $password ]] || head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$password"
  compose up --detach --no-build --quiet-pull
}

down() {
  compose down --volumes --timeout 5
  [[ ${ONEWAY_STACK_STARTED:-0} != 1 && ! -e $out/started ]] || {
    tests/stack/engine.sh down
    rm -f "$out/started"
  }
}

# query is the number that Prometheus has for an expression; empty: none.
query() { curl --silent --fail --get --data-urlencode "query=$1" http://127.0.0.1:9090/api/v1/query | sed -n 's/.*"value":\[[^,]*,"\([^"]*\)"\].*/\1/p'; }

# influx is the reply of InfluxDB to a statement.
influx() { curl --silent --fail --get --data-urlencode "q=$1" --data-urlencode db=oneway http://127.0.0.1:8086/query; }

# until tries a condition for 120 s.
until_holds() { # words, command
  local words=$1 begin=$SECONDS
  shift
  until "$@" >/dev/null 2>&1; do
    [[ $((SECONDS - begin)) -lt 120 ]] || {
      compose ps --all >&2
      compose logs --tail 30 >&2
      fail "after 120 s: not: $words"
    }
    sleep 1 # a program of its own is asked
  done
  say "$((SECONDS - started)) s: $words"
}

healthy() { [[ $(docker inspect --format '{{.State.Health.Status}}' "oneway-$1-1") == healthy ]]; }
scraped() { [[ $(query 'sum(up{job="oneway"})') == 2 ]]; }
delays() { [[ $(query 'count(oneway:delay_seconds:quantile5m)') -gt 0 && $(query 'count(oneway_delay_error_bound_seconds{path=~".+"})') -ge 2 ]]; }
alerting() { curl --silent --fail http://127.0.0.1:9090/api/v1/alertmanagers | grep -q '"activeAlertmanagers":\[{'; }
points() { [[ $(influx "SELECT count(*) FROM oneway_packets WHERE path = '$1'") == *'"values"'* ]]; }
retention() { [[ $(influx 'SHOW RETENTION POLICIES ON oneway') == *raw*long* ]]; }

check() {
  local a name
  for name in agent peer; do until_holds "$name is healthy" healthy $name; done
  until_holds "Prometheus scrapes both agents" scraped
  until_holds "both paths have delays with a bound" delays
  until_holds "Prometheus knows Alertmanager" alerting
  until_holds "InfluxDB has the retention of deploy/influxdb" retention
  until_holds "InfluxDB has the agent's points" points agent-to-peer
  until_holds "InfluxDB has the peer's points, by Telegraf" points peer-to-agent
  a=$(query 'count(ALERTS{alertstate="firing"})')
  [[ -z $a ]] || fail "$a alerts fire: $(curl --silent http://127.0.0.1:9090/api/v1/alerts)"
  # Published beyond this host: the reflector alone.
  a=$(docker ps --filter label=com.docker.compose.project=oneway --format '{{.Ports}}' | tr ',' '\n' | grep -- '->' | grep -v '127\.0\.0\.1:' | grep -v '8862/udp' || true)
  [[ -z $a ]] || fail "published beyond this host: $a"
  for name in agent peer; do
    [[ $(docker inspect --format '{{.HostConfig.ReadonlyRootfs}} {{.HostConfig.CapDrop}}' "oneway-$name-1") == "true [ALL]" ]] || fail "$name is not read-only without capabilities"
  done
}

# page runs what page exporter/doc/install.md says of the image, as its reader types it, beside a changed port of the reflector.
page() {
  local container command config
  config=$(mktemp -d)
  sed 's/^reflector:.*/reflector: {listen: [":18862"]}/' deploy/packages/oneway.yml >"$config/oneway.yml"
  grep -q 18862 "$config/oneway.yml" || fail "deploy/packages/oneway.yml has no line of the reflector"
  chown -R 65532 "$config"
  chmod 700 "$config"
  ln -s "$(ls -t "$out"/*.docker.tar | head -1)" "$config/"
  while read -r command; do
    command=${command//--volume=\/etc\/oneway:/--volume=$config:}
    command=${command//oneway:TAG/$(sed -n 's/^ONEWAY_IMAGE=//p' "$out/env") agent --config.file=/etc/oneway/oneway.yml --web.listen-address=127.0.0.1:19862}
    say "# $command"
    container=$(cd "$config" && eval "${command/docker run/docker run --detach}" </dev/null)
  done < <(sed -n 's/^    docker/docker/p' exporter/doc/install.md)
  until_holds "the agent of the image serves on the network of this host" curl --silent --fail http://127.0.0.1:19862/-/healthy
  docker rm --force "$container" >/dev/null
  docker volume rm oneway >/dev/null
  rm -r "$config"
}

case ${1:-} in
up | test | down) ;;
*)
  sed -n 's/^# usage: //p; s/^#   *tests/tests/p' "$0" >&2
  exit 2
  ;;
esac
tests/deps.sh stack
eval "$(tests/stack/engine.sh up)"
[[ ${ONEWAY_STACK_STARTED:-0} != 1 ]] || touch "$out/started"
program_compose=$(tests/compose/compose.sh)
case $1 in
up)
  up
  echo "Prometheus: http://127.0.0.1:9090   the agent: http://127.0.0.1:9862   Alertmanager: http://127.0.0.1:9093   InfluxDB: 127.0.0.1:8086"
  echo "DOCKER_HOST=$DOCKER_HOST; tests/compose/run.sh down removes all of it"
  ;;
down) down ;;
test)
  trap 'down >/dev/null 2>&1' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  images
  password=deploy/compose/secrets/grafana_password
  [[ -e $password ]] || head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$password"
  started=$SECONDS
  compose up --detach --no-build
  check
  compose down --volumes --timeout 5
  page
  left=$(docker ps --all --quiet --filter label=com.docker.compose.project=oneway; docker volume ls --quiet --filter label=com.docker.compose.project=oneway; docker network ls --quiet --filter label=com.docker.compose.project=oneway)
  [[ -z $left ]] || fail "left after down: $left"
  say passed
  ;;
esac
