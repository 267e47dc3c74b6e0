#!/usr/bin/env bash
# Makes the packages for OpenWrt in a directory, with the build slim of the program. The same commit gives the same bytes.
# usage: deploy/openwrt/build.sh DIRECTORY [ARCHITECTURE ...]    (OpenWrt's names, the cases below)
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${1:?usage: deploy/openwrt/build.sh DIRECTORY [ARCHITECTURE ...]}
shift
[[ $# -gt 0 ]] || set -- aarch64_generic arm_cortex-a7_neon-vfpv4 mips_24kc mipsel_24kc x86_64
go=${GO:-go}
. deploy/release/version.sh
. deploy/release/packages.sh

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir -p "$out"
out=$(realpath "$out")
# text/template calls methods by name, for which the linker keeps every exported method of every type: 0.8 MB of a package. No
# template of this build calls a method, so that its lookup is replaced.
template=$("$go" env GOROOT)/src/text/template/exec.go
sed 's/method := ptr\.MethodByName(fieldName); method/method := (reflect.Value{}); method/' "$template" >"$stage/exec.go"
! cmp -s "$template" "$stage/exec.go" || {
  echo "openwrt: $template has another text than expected" >&2
  exit 1
}
printf '{"Replace": {"%s": "%s"}}' "$template" "$stage/exec.go" >"$stage/overlay.json"

unset GOARM GOMIPS
export STAGE=$stage GOOS=linux CGO_ENABLED=0
for OPENWRT; do
  case $OPENWRT in
  aarch64_*) export GOARCH=arm64 ;;
  arm_cortex-a*) export GOARCH=arm GOARM=7 ;;
  mips_*) export GOARCH=mips GOMIPS=softfloat ;;
  mipsel_*) export GOARCH=mipsle GOMIPS=softfloat ;;
  x86_64) export GOARCH=amd64 ;;
  *)
    echo "openwrt: no Go architecture is known for $OPENWRT" >&2
    exit 2
    ;;
  esac
  echo "openwrt: $VERSION for $OPENWRT" >&2
  export OPENWRT BINARY=$stage/$OPENWRT/oneway
  make --no-print-directory -s slim BUILD="$stage/$OPENWRT" VERSION="$VERSION" OVERLAY="$stage/overlay.json"
  bill "$BINARY" "$out/oneway-$VERSION-$OPENWRT.cdx.json" "$stage/licenses.txt"
  gzip -9nc "$stage/licenses.txt" >"$stage/licenses.txt.gz"
  find "$stage" -exec touch -hd "@$SOURCE_DATE_EPOCH" {} +
  nfpm --config deploy/openwrt/nfpm.yaml --packager ipk --target "$out"
done
