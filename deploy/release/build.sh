#!/usr/bin/env bash
# Makes a release in a directory: packages, without ARCHITECTURE also for OpenWrt, images, the Helm chart, bills of materials, the licenses, the changes, SHA256SUMS and its signature. The same commit gives the same bytes, but for the signature.
# usage: deploy/release/build.sh DIRECTORY [ARCHITECTURE ...]    (amd64 arm64 arm7)
# MINISIGN_KEY is the file of the secret key; without it there is no signature. minisign asks for its password.
set -euo pipefail
cd "$(dirname "$0")/../.."
[[ $# -gt 1 ]] || whole=1
. deploy/release/arguments.sh
. deploy/release/version.sh
[[ -z $(git status --porcelain) ]] || {
  echo "release: these files are not as in the commit that the release names:" >&2
  git status --short >&2
  exit 1
}
[[ -e $out/SHA256SUMS || -z $(ls -A "$out" 2>/dev/null) ]] || {
  echo "release: $out: it has files and no SHA256SUMS: not a release, which this one would replace" >&2
  exit 1
}
rm -rf "$out"
mkdir -p "$out"
touch "$out/SHA256SUMS" # the next run replaces an interrupted one
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
for architecture; do
  deploy/release/program.sh "$stage/$architecture" "$architecture"
  cp "$stage/$architecture/oneway.cdx.json" "$out/oneway-$VERSION-$architecture.cdx.json"
done
PROGRAMS=$stage deploy/packages/build.sh "$out" "$@"
PROGRAMS=$stage deploy/images/build.sh "$out" "$@"
deploy/kubernetes/build.sh "$out"
[[ -z ${whole:-} ]] || deploy/openwrt/build.sh "$out"
cp "$stage/$1/licenses.txt" "$out/LICENSES.txt"
# From the heading of the first version to the next one.
awk '/^## /{n++} n == 1' CHANGELOG.md >"$out/CHANGES.md"
rm "$out/SHA256SUMS"
(cd "$out" && sha256sum -- *) >"$stage/SHA256SUMS"
cp "$stage/SHA256SUMS" "$out/"
if [[ -n ${MINISIGN_KEY:-} ]]; then
  "${GO:-go}" run aead.dev/minisign/cmd/minisign -S -s "$MINISIGN_KEY" -t "oneway $VERSION" -m "$out/SHA256SUMS"
else
  echo "release: not signed: MINISIGN_KEY is not set" >&2
fi
