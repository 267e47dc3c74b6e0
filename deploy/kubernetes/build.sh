#!/usr/bin/env bash
# Makes the Helm chart in a directory: oneway-TAG.tgz. The same commit gives the same bytes.
# usage: deploy/kubernetes/build.sh DIRECTORY
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${1:?usage: deploy/kubernetes/build.sh DIRECTORY}
. deploy/release/version.sh
. deploy/release/tracked.sh
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
tracked "$stage" deploy/kubernetes/oneway deploy/prometheus/rules exporter/doc/schema grafana-dashboards/dashboards
mkdir -p "$out"
"${GO:-go}" run -C deploy/kubernetes . -root "$stage" -out "$(realpath "$out")" -version "$TAG" -date "$SOURCE_DATE_EPOCH"
