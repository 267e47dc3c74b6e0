#!/usr/bin/env bash
# Builds victoria-metrics and vmalert of the version in go.mod into build/victoriametrics-VERSION, where the
# tests of this directory look for them. It takes about a minute.
# usage: deploy/victoriametrics/build.sh
set -euo pipefail

cd "$(dirname "$0")/../.."
version=$(sed -n 's|.*VictoriaMetrics/VictoriaMetrics v||p' deploy/victoriametrics/go.mod)
out=$PWD/build/victoriametrics-$version
if [[ ! -x $out/victoria-metrics || ! -x $out/vmalert ]]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  mkdir -p "$out"
  cd "$work"
  go mod init victoriametrics 2>/dev/null
  go get "github.com/VictoriaMetrics/VictoriaMetrics@v$version"
  for program in victoria-metrics vmalert; do
    GOFLAGS=-mod=mod CGO_ENABLED=0 go build -o "$out" "github.com/VictoriaMetrics/VictoriaMetrics/app/$program"
  done
fi
printf '%s\n' "$out"
