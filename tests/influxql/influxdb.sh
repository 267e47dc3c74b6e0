#!/usr/bin/env bash
# Builds InfluxDB 1.8 from its Go module into build/influxdb-1.8.10, where the tests look for it. It takes some minutes.
# usage: tests/influxql/influxdb.sh
set -euo pipefail

version=1.8.10
out=$(cd "$(dirname "$0")/../.." && pwd)/build/influxdb-$version
mkdir -p "$out"
GOBIN=$out go install "github.com/influxdata/influxdb/cmd/influxd@v$version"
