#!/usr/bin/env bash
# Builds Docker Compose from its Go module into build/docker-compose-VERSION, unless it is there. Debian 12 has version 1 only. It takes
# four minutes.
# usage: tests/compose/compose.sh; prints the file name
set -euo pipefail

version=2.40.3
cd "$(dirname "$0")/../.."
out=$PWD/build/docker-compose-$version
mkdir -p build
exec 8>"$out.lock" # one build at a time
flock 8
if [[ ! -x $out/docker-compose ]]; then
  work=$(mktemp -d)
  trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
  # The module excludes versions, which a module that requires it does not: it is built at its own place.
  source=$(cd "$work" && go mod init compose-of-tests 2>/dev/null && go mod download -json "github.com/docker/compose/v2@v$version" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p')
  cp -r "$source" "$work/source"
  chmod -R u+w "$work/source"
  mkdir -p "$out"
  GOFLAGS=-mod=mod CGO_ENABLED=0 go build -C "$work/source" -trimpath -ldflags "-s -w -X github.com/docker/compose/v2/internal.Version=v$version" \
    -o "$out/docker-compose" ./cmd >"$work/log" 2>&1 || {
    cat "$work/log" >&2
    exit 1
  }
fi
echo "$out/docker-compose"
