#!/usr/bin/env bash
# Makes the container images in a directory. The same commit gives the same bytes.
# usage: deploy/images/build.sh DIRECTORY [ARCHITECTURE ...]    (amd64 arm64 arm7)
set -euo pipefail
cd "$(dirname "$0")/../.."
. deploy/release/arguments.sh
go=${GO:-go}
. deploy/release/version.sh
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir -p "$out"
programs=()
for architecture; do
  deploy/release/program.sh "$stage/$architecture" "$architecture"
  programs+=("$architecture=$stage/$architecture/oneway")
done
"$go" run -C deploy/images . -version "$VERSION" -tag "$TAG" -revision "$REVISION" -date "$SOURCE_DATE_EPOCH" -out "$(realpath "$out")" \
  -config "$PWD/deploy/packages/oneway.yml" -zoneinfo "$("$go" env GOROOT)/lib/time/zoneinfo.zip" "${programs[@]}"
