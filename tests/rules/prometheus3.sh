#!/usr/bin/env bash
# Builds Prometheus and promtool of one version from its Go module into build/prometheus-VERSION, where the tests of
# this directory look for the versions that Debian does not have. It takes some minutes.
# usage: tests/rules/prometheus3.sh 3.16.0 (or another; 3.7.3 is the last that refuses scrape_native_histograms)
set -euo pipefail

version=${1:?usage: tests/rules/prometheus3.sh VERSION}
cd "$(dirname "$0")/../.."
out=$PWD/build/prometheus-$version
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
# The module of Prometheus 3.16.0 is v0.316.0.
IFS=. read -r _ minor patch <<<"$version"
go mod init prometheus3 2>/dev/null
go get "github.com/prometheus/prometheus@$(printf 'v0.3%02d.%d' "$minor" "$patch")"
mkdir -p "$out"
GOFLAGS=-mod=mod go build -tags remove_all_sd -o "$out" github.com/prometheus/prometheus/cmd/prometheus github.com/prometheus/prometheus/cmd/promtool
