#!/usr/bin/env bash
# Makes the packages in a directory: deb and rpm of each architecture. The same commit gives the same bytes.
# usage: deploy/packages/build.sh DIRECTORY [ARCHITECTURE ...]    (amd64 arm64 arm7)
set -euo pipefail
cd "$(dirname "$0")/../.."
. deploy/release/arguments.sh
. deploy/release/version.sh
. deploy/release/packages.sh
. deploy/release/tracked.sh

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir "$stage/source"
export STAGE=$stage
mkdir -p "$out"
out=$(realpath "$out")
tracked "$stage/source" chrony-config deploy exporter/doc exporter/serve/runbook grafana-dashboards telegraf-plugins ':(glob)*.md'
gzip -9nc CHANGELOG.md >"$stage/changelog.gz"
gzip -9nc >"$stage/changelog.Debian.gz" <<END
oneway ($VERSION-$RELEASE) unstable; urgency=medium

  * The changes are in changelog.gz.

 -- $MAINTAINER  $(TZ=UTC git show -s --date=format-local:'%a, %d %b %Y %T +0000' --format=%cd)
END
for ARCH; do
  export ARCH BINARY=$stage/$ARCH/oneway
  deploy/release/program.sh "$stage/$ARCH" "$ARCH"
  gzip -9nc "$stage/$ARCH/oneway.1" >"$stage/oneway.1.gz"
  find "$stage" -exec touch -hd "@$SOURCE_DATE_EPOCH" {} +
  for format in deb rpm; do
    (cd "$stage/source" && nfpm --config deploy/packages/nfpm.yaml --packager $format --target "$out")
  done
done
