#!/usr/bin/env bash
# Builds the program of one architecture, and its man page, in a directory.
# usage: deploy/release/program.sh DIRECTORY ARCHITECTURE    (amd64 arm64 arm7)
# PROGRAMS, a directory with both for each architecture, is copied from instead.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${1:?usage: deploy/release/program.sh DIRECTORY ARCHITECTURE}
architecture=${2:?usage: deploy/release/program.sh DIRECTORY ARCHITECTURE}
. deploy/release/version.sh
mkdir -p "$out"
if [[ -n ${PROGRAMS:-} ]]; then
  cp "$PROGRAMS/$architecture/oneway" "$PROGRAMS/$architecture/oneway.1" "$out/"
  exit
fi
echo "release: $VERSION for $architecture" >&2
unset GOARM
[[ $architecture != arm7 ]] || export GOARM=7
GOOS=linux GOARCH=${architecture%7} make --no-print-directory -s program BUILD="$(realpath "$out")" VERSION="$VERSION"
