# Sourced by the builds of packages: what packages of every format have, and the commands that make them.
export RELEASE=1 MAINTAINER='the authors of oneway <oneway@oneway.example>' HOMEPAGE=https://oneway.example

nfpm() { # arguments of nfpm package
  native github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2 package "$@" >/dev/null
}

native() { # arguments of go run; for this machine, whatever the program is for
  env -u GOOS -u GOARCH -u GOARM -u GOMIPS "${GO:-go}" run "$@"
}

# bill writes what a program is made of.
bill() { # program, bill of materials, licenses: absolute paths; more flags of deploy/sbom
  native -C deploy/sbom . -program "$1" -bill "$2" -licenses "$3" -version "$VERSION" -revision "$REVISION" -date "$SOURCE_DATE_EPOCH" "${@:4}"
}
