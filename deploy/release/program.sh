#!/usr/bin/env bash
# Builds the program of one architecture in a directory, with its man page, its bill of materials and the licenses.
# usage: deploy/release/program.sh DIRECTORY ARCHITECTURE    (amd64 arm64 arm7)
# PROGRAMS, a directory with all four for each architecture, is copied from instead.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${1:?usage: deploy/release/program.sh DIRECTORY ARCHITECTURE}
architecture=${2:?usage: deploy/release/program.sh DIRECTORY ARCHITECTURE}
. deploy/release/version.sh
. deploy/release/packages.sh
mkdir -p "$out"
if [[ -n ${PROGRAMS:-} ]]; then
  cp "$PROGRAMS/$architecture/"{oneway,oneway.1,oneway.cdx.json,licenses.txt} "$out/"
  exit
fi
echo "release: $VERSION for $architecture" >&2
unset GOARM
[[ $architecture != arm7 ]] || export GOARM=7
GOOS=linux GOARCH=${architecture%7} make --no-print-directory -s program BUILD="$(realpath "$out")" VERSION="$VERSION"
out=$(realpath "$out")
bill "$out/oneway" "$out/oneway.cdx.json" "$out/licenses.txt" -notes "$PWD/deploy/images/licenses.txt"
