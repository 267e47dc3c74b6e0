#!/usr/bin/env bash
# Runs the tests of tests/stack: builds the programs of the images, starts an engine if none responds, and removes
# the containers, networks and the engine that it has started, also after a failure or an interrupt. A failed test runs once
# more, alone, as in tests/run.sh.
# usage: [SMOKE=1] [KEEP=1] tests/stack/run.sh [arguments of go test]
#        tests/stack/run.sh clean       removes what KEEP=1 has left
set -euo pipefail
cd "$(dirname "$0")/../.."
export PATH=$PATH:/usr/local/go/bin:/usr/sbin:/sbin
out=$PWD/build/stack
mkdir -p "$out"
export TESTCONTAINERS_RYUK_DISABLED=true TESTCONTAINERS_HOST_OVERRIDE=127.0.0.1
export ONEWAY_STACK_SMOKE=${SMOKE:-0} ONEWAY_STACK_KEEP=${KEEP:-0}

# remove ends the containers and networks with a value of the label.
remove() { # label
  local ids
  mapfile -t ids < <(docker ps -aq --filter "label=$1")
  [[ ${#ids[@]} -eq 0 ]] || docker rm -f "${ids[@]}" >/dev/null
  mapfile -t ids < <(docker network ls -q --filter "label=$1")
  [[ ${#ids[@]} -eq 0 ]] || docker network rm "${ids[@]}" >/dev/null
}

if [[ ${1:-} == clean ]]; then
  eval "$(tests/stack/engine.sh up)"
  remove oneway.stack
  exec tests/stack/engine.sh down
fi

base= tests=
end() {
  [[ -z $tests ]] || kill -- "-$tests" 2>/dev/null || true
  [[ -z $base ]] || kill "$base" 2>/dev/null || true
  if [[ $ONEWAY_STACK_KEEP == 1 ]]; then
    echo "stack: the containers are kept: DOCKER_HOST=$DOCKER_HOST docker ps; tests/stack/run.sh clean removes them"
    return
  fi
  remove "oneway.stack=$ONEWAY_STACK_RUN" || true
  [[ $ONEWAY_STACK_STARTED != 1 ]] || tests/stack/engine.sh down
}

tests/deps.sh stack
export ONEWAY_STACK_RUN=$$ ONEWAY_STACK_STARTED=0 CGO_ENABLED=0
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
eval "$(tests/stack/engine.sh up)"
tests/stack/base.sh & # it waits for downloads, the builds for the processors
base=$!
go build -o "$out/../oneway" ./exporter/cmd/oneway
go build -o "$out/" ./tests/pulse/cmd/oneway-pulse ./tests/results
go build -C tests/stack -o "$out/link" ./link
go build -C telegraf-plugins -o "$out/" ./cmd/...
telegraf-plugins/telegraf.sh >/dev/null
tests/influx/influxdb1.sh >/dev/null
prometheus=3.16.0
if [[ $ONEWAY_STACK_SMOKE != 1 && ! -x build/prometheus-$prometheus/prometheus ]]; then
  tests/rules/prometheus3.sh $prometheus
fi
deploy/images/build.sh "$out/images" "$(dpkg --print-architecture)"
wait "$base"
base=
# The hosts run the program of this image.
docker load --quiet --input "$(ls -t "$out"/images/*.docker.tar | head -1)" | sed 's/^Loaded image: //' | xargs -I{} docker tag {} oneway-stack/oneway
set -m # the tests have their own process group, which ends with this script
rm -f build/stack.json
{
  "$out/results" run build/stack.json "stack" go test -C tests/stack -json -count=1 -timeout 50m "$@" -- . || true # report names the failures
  "$out/results" report build/stack.json /dev/null build/flaky
} &
tests=$!
set +m
status=0
wait "$tests" || status=$?
tests=
exit $status
