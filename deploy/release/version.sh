# Sourced: VERSION, TAG, REVISION and SOURCE_DATE_EPOCH of a release, from CHANGELOG.md and the commit; and what else would come from the environment.
export GOAMD64=v1 GOARM64=v8.0 # for every processor of the architecture, whatever the one that builds has
unset GOEXPERIMENT
umask 022 # packages have the modes of the files that are packed
# The first version in CHANGELOG.md; before its release, with the time of the commit, so that later ones are upgrades.
read -r VERSION state < <(sed -n 's/^## \([0-9][0-9.]*\)\(.*\)/\1\2/p;T;q' CHANGELOG.md)
REVISION=$(git rev-parse HEAD)
[[ -z $state ]] || VERSION+=~git$(TZ=UTC git show -s --date=format-local:%Y%m%d%H%M%S --format=%cd).${REVISION:0:8}
VERSION=${RELEASE_VERSION:-$VERSION} # tests of upgrades set it
TAG=${VERSION//\~/-} # of images and of the chart, which must not have "~"
SOURCE_DATE_EPOCH=$(git show -s --format=%ct)
export VERSION TAG REVISION SOURCE_DATE_EPOCH
