# Sourced by the builds of packages: what packages of every format have, and the command that makes one.
export RELEASE=1 MAINTAINER='the authors of oneway <oneway@oneway.example>' HOMEPAGE=https://oneway.example

nfpm() { # arguments of nfpm package; for this machine, whatever the program is for
  env -u GOOS -u GOARCH -u GOARM -u GOMIPS "${GO:-go}" run github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2 package "$@" >/dev/null
}
