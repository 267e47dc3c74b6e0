#!/usr/bin/env bash
# Builds InfluxDB 1.8.10 from its Go module into build/influxdb-1.8.10, where the tests of this directory look for it, unless it is
# there. It takes about a minute. Debian's package is version 1.6.7, which has neither /api/v2/write nor Flux.
# usage: tests/influx/influxdb1.sh
set -euo pipefail

cd "$(dirname "$0")/../.."
out=$PWD/build/influxdb-1.8.10
mkdir -p build
exec 8>"$out.lock" # one build at a time
flock 8
[[ -x $out/influxd && -x $out/influx ]] && exit 0
cd /
GOBIN=$out GOFLAGS= go install github.com/influxdata/influxdb/cmd/influxd@v1.8.10 github.com/influxdata/influxdb/cmd/influx@v1.8.10
