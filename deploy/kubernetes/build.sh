#!/usr/bin/env bash
# Makes the Helm chart in a directory: oneway-VERSION.tgz. The same commit gives the same bytes.
# usage: deploy/kubernetes/build.sh DIRECTORY
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${1:?usage: deploy/kubernetes/build.sh DIRECTORY}
. deploy/release/version.sh
mkdir -p "$out"
"${GO:-go}" run -C deploy/kubernetes . -root "$PWD" -out "$(realpath "$out")" -version "$VERSION" -date "$SOURCE_DATE_EPOCH"
