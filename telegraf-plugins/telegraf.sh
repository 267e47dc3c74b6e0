#!/usr/bin/env bash
# Builds Telegraf from its Go module into build/telegraf-VERSION, where the tests look for it, with the few plugins that they
# use. It takes a minute, and does nothing if the program exists. A complete Telegraf needs many more modules.
# usage: telegraf-plugins/telegraf.sh; prints the file name
set -euo pipefail

version=1.39.0
cd "$(dirname "$0")/.."
out=$PWD/build/telegraf-$version
mkdir -p build
exec 8>"$out.lock" # one build at a time
flock 8
if [[ ! -x $out/telegraf ]]; then
  tags=custom,inputs.execd,inputs.influxdb_v2_listener,outputs.file,outputs.influxdb,outputs.discard,parsers.influx,serializers.influx
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  cd "$work"
  {
    go mod init telegraf-of-tests
    go get "github.com/influxdata/telegraf@v$version"
    mkdir -p "$out"
    # Built beside its place: an interrupted build leaves no program.
    GOFLAGS=-mod=mod CGO_ENABLED=0 go build -tags "$tags" -ldflags "-s -w -X github.com/influxdata/telegraf/internal.Version=$version" \
      -o "$out/telegraf.new" github.com/influxdata/telegraf/cmd/telegraf
    mv "$out/telegraf.new" "$out/telegraf"
  } >"$work/log" 2>&1 || {
    cat "$work/log" >&2
    exit 1
  }
fi
echo "$out/telegraf"
