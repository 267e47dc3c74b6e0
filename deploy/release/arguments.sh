# Sourced with the arguments of a script: DIRECTORY [ARCHITECTURE ...], by default all architectures. The directory is out; the
# architectures remain as the arguments.
out=${1:?usage: $0 DIRECTORY [ARCHITECTURE ...]}
shift
[[ $# -gt 0 ]] || set -- amd64 arm64 arm7
