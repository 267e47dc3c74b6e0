#!/usr/bin/env bash
# Installs the packages and starts the images of this commit, for this machine's architecture, in bare Debian: make packages-test.
set -euo pipefail
cd "$(dirname "$0")/../.."
export PATH=$PATH:/usr/sbin:/sbin
here=tests/packages work=build/packages-test go=${GO:-go}
[[ $(id -u) -eq 0 ]] || {
  echo "packages: user $(id -un): a root file system needs root: sudo make packages-test" >&2
  exit 1
}
architecture=$(dpkg --print-architecture)
. deploy/release/version.sh
say() { printf '== %s, %d:%02d after the start\n' "$1" $((SECONDS / 60)) $((SECONDS % 60)); }

mkdir -p "$work"
copy=$(mktemp -d)
trap 'rm -rf --one-file-system "$copy"' EXIT
say "two builds"
"$go" run aead.dev/minisign/cmd/minisign -G -W -p "$copy/public.key" -s "$copy/secret.key" >/dev/null
git clone -q . "$copy/one" # this directory may have changes, such as the result of make cluster-test
(umask 077 && git clone -q . "$copy/two")
# Secrets of whoever runs Compose or Ansible there are in no package.
touch "$copy/two/deploy/compose/secrets/grafana_password" "$copy/two/deploy/ansible/files/stamp.key"
# The guests are part of make deploy-test, which has time for all architectures, with OpenWrt, each program compiled twice.
all=("$architecture") cache=$("$go" env GOCACHE)
[[ ${GUESTS:-} != 1 ]] || all=() cache=$copy/cache
rm -rf "${work:?}"/{one,two}
build() { MINISIGN_KEY=$copy/secret.key "$copy/$1/deploy/release/build.sh" "$PWD/$work/$1" "${all[@]}"; }
build one
(umask 077 && GOCACHE=$cache GOAMD64=v3 GOARM64=v8.1 build two)
cmp "$work/one/SHA256SUMS" "$work/two/SHA256SUMS" || {
  echo "packages: two builds differ" >&2
  exit 1
}
touch "$copy/two/deploy/kubernetes/oneway/mine.yaml"
! said=$(build two 2>&1) && [[ $said == *mine.yaml* ]] || {
  echo "packages: a file that is not of the commit does not prevent a release: $said" >&2
  exit 1
}
"$copy/two/deploy/kubernetes/build.sh" "$copy"
tar -tzf "$copy"/oneway-*.tgz >"$copy/chart"
! grep mine.yaml "$copy/chart" || {
  echo "packages: the chart has a file that is not of the repository" >&2
  exit 1
}
deb=$(ls "$work"/one/*_"$architecture".deb) rpm=$(ls "$work"/one/*."$(uname -m)".rpm)
"$go" build -o "$copy/oneway-program" ./exporter/cmd/oneway
"$copy/oneway-program" verify --public-key="$copy/public.key" "$work"/one/oneway* "$work/one/CHANGES.md" "$work/one/LICENSES.txt"
ls "$work/one" | sed 's/^/packages: of both builds: /'

say "bills of materials"
"$go" test -C deploy/sbom -count=1 .

say "compose"
"$go" test -C tests/compose -count=1 .
"$copy/oneway-program" check-config deploy/compose/*/oneway.yml 2>&1 | grep -v state_dir

say "Helm chart"
"$go" test -C deploy/kubernetes -count=1 -timeout 30m -v -skip "^TestClusterTakesTheChart$" . | sed '/^===/d' # make cluster-test runs that one; not beside tests that measure time

say "lintian"
lintian --fail-on error "$deb" 2>&1 | sed '/running with root/d'

say "bare Debian 12"
"$here/root.sh" bookworm "$work/bookworm.tar"
unshare --mount --pid --net --fork "$here/inside.sh" "$work/bookworm.tar" "$deb" "$rpm" "$work/one/oneway-$VERSION.oci.tar"

if [[ ${GUESTS:-} == 1 ]]; then
  say "the version before, of d6cfb92b"
  git worktree add -qf "$copy/old" d6cfb92b
  trap 'git worktree remove --force "$copy/old"; rm -rf --one-file-system "$copy"' EXIT
  make -s -C "$copy/old" build BUILD="$copy/built" >/dev/null
  mkdir -p "$copy/programs"
  mv "$copy/built" "$copy/programs/$architecture"
  touch "$copy/programs/$architecture/"{licenses.txt,oneway.cdx.json} # that version wrote no such files
  say "both versions against each other"
  "$here/compat.sh" "$copy/programs/$architecture/oneway" "$copy/oneway-program"
  say "Ansible"
  "$here/ansible.sh" "$work/bookworm.tar" "$deb"
  RELEASE_VERSION=0.0.9 PROGRAMS=$copy/programs deploy/packages/build.sh "$work/old" "$architecture"
  for suite in bookworm trixie; do
    say "$suite with systemd in a guest"
    "$here/root.sh" $suite "$work/$suite.tar"
    "$here/guest-run.sh" "$work/$suite.tar" "$work"/old/*.deb "$deb" "$work/$suite.log"
  done
fi
say "passed"
