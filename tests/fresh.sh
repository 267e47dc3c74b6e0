#!/usr/bin/env bash
# Runs the README's commands and .ci/run as on a new machine:
# in a root file system with only Debian's base, make, git, ca-certificates and Go,
# from a clean clone of HEAD. A package missing from the list, or a file that only the
# author's machine has, fails here.
#
#   make fresh                       demo and ci, which runs make test; needs root, and 10 GB below build/fresh
#   make fresh FRESH_STEPS=test      some of: demo test ci
#   FRESH_SUITE=trixie               another Debian than bookworm
#
# Every step begins with the bare base, an empty Go build cache and a new clone. build/fresh keeps for
# the next run: the base as a tar file, downloaded packages and Go modules (downloads are not
# tested), each step's log, and the root of a failed step. `make clean` removes all of it.
# A step has its own mounts and processes, which end with it; it uses this machine's kernel and network.
set -euo pipefail
suite=${FRESH_SUITE:-bookworm}
base_packages=make,git,ca-certificates
declare -A commands=([demo]='make demo DEMO_EXIT=1' [test]='make test' [ci]='.ci/run')

# inside is process 1 of a step: it completes the root file system, enters it and runs the command.
inside() { # root, cache, Go's root, command...
  local root=$1 cache=$2 go=$3
  shift 3
  mount --bind "$root" "$root"
  mount -t proc proc "$root/proc"
  mount -t sysfs sysfs "$root/sys"
  mount --rbind /dev "$root/dev"
  mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
  mount -t tmpfs -o mode=755 tmpfs "$root/run"
  mkdir -p "$root"/{root/go/pkg/mod,usr/local/go,.host}
  mount --bind "$cache/packages" "$root/var/cache/apt/archives"
  mount --bind "$cache/modules" "$root/root/go/pkg/mod"
  mount --bind "$go" "$root/usr/local/go"
  mount -o remount,bind,ro "$root/usr/local/go"
  cd "$root"
  pivot_root . .host
  umount -l /.host && rmdir /.host
  cd /root/oneway
  "$@"
}

if [[ ${1:-} == --inside ]]; then
  shift
  inside "$@"
  exit
fi

say() { printf 'fresh: %s, %d:%02d after the start\n' "$1" $((SECONDS / 60)) $((SECONDS % 60)); }
fail() {
  echo "fresh: $1" >&2
  exit 1
}

cd "$(dirname "$0")/.."
[[ $(id -u) -eq 0 ]] || fail "user $(id -un): mounts and a root file system need root: sudo make fresh"
read -ra steps <<<"${FRESH_STEPS:-demo ci}"
for step in "${steps[@]}"; do
  [[ -n ${commands[$step]:-} ]] || fail "FRESH_STEPS: '$step' is none of: demo test ci"
done
tests/deps.sh fresh
go=$(go env GOROOT)
cache=$PWD/build/fresh
mkdir -p "$cache"/{packages,modules,log}
echo "module fresh" >"$cache/go.mod" # so that ./... does not include it
exec 9>"$cache/lock"
flock -n 9 || fail "$cache/lock is held: another run uses this directory"
[[ -z $(git status --porcelain) ]] || echo "fresh: this directory has changes that are not committed; HEAD is what runs"

# Debian's source: that of this machine, else Debian itself.
sources=$(apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian' 2>/dev/null |
  grep -E " $suite(-updates|-security)? main$" | sort -u) || sources="deb http://deb.debian.org/debian $suite main"
mirror=$(awk -v s="$suite" '$3 == s {print $2; exit}' <<<"$sources")
network=$(apt-config dump 2>/dev/null | grep -E '^Acquire::(https?::(Proxy|CaInfo|Verify)|Check-|Retries)' | grep -v Auto-Detect) || true
if proxy=$(apt-config shell proxy Acquire::http::Proxy 2>/dev/null) && eval "$proxy" && [[ -n ${proxy:-} ]]; then
  export http_proxy=${http_proxy:-$proxy}
fi
environment=(HOME=/root LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/go/bin)
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
  [[ -z ${!name:-} ]] || environment+=("$name=${!name}")
done
for name in GOPROXY GONOPROXY GOSUMDB GONOSUMDB GOPRIVATE GOINSECURE; do
  environment+=("$name=$(go env "$name")")
done

running= output=
# end leaves no process, and so no mount: they are in the job's namespaces.
end() {
  [[ -z $running ]] || kill -KILL "$running" 2>/dev/null || true
  [[ -z $output ]] || exec {output}>&-
  wait
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
set -m # the job has its own process group: an interrupt reaches only this script

# apart runs a command in separate namespaces and also writes its output to a log.
apart() { # log, command...
  local log=$1 status=0 tee
  shift
  exec {output}> >(exec tee -i "$log")
  tee=$!
  unshare --mount --pid --fork --kill-child -- "$@" </dev/null >&"$output" 2>&1 {output}>&- 9>&- &
  running=$!
  wait "$running" || status=$?
  running=
  exec {output}>&-
  output=
  wait "$tee" || true
  return "$status"
}

base=$cache/$suite.tar
if [[ ! -e $base ]]; then
  say "the base begins: debootstrap of $suite with $base_packages"
  rm -rf --one-file-system "$cache/base"
  apart "$cache/log/base.log" debootstrap --variant=minbase --include="$base_packages" --cache-dir="$cache/packages" \
    "$suite" "$cache/base" "$mirror" || fail "no base: $cache/log/base.log"
  tar -C "$cache/base" --numeric-owner --xattrs --exclude='./var/cache/apt/archives/*.deb' -cf "$base.new" . && mv "$base.new" "$base"
  rm -rf --one-file-system "$cache/base"
  say "the base is made: $(du -h "$base" | cut -f1)"
fi

results=() status=0
for step in "${steps[@]}"; do
  root=$cache/root-$step begin=$SECONDS
  say "$step begins: ${commands[$step]}"
  rm -rf --one-file-system "$root"
  mkdir "$root"
  tar -C "$root" --numeric-owner --xattrs -xpf "$base"
  rm -f "$root"/etc/apt/sources.list.d/*
  printf '%s\n' "$sources" >"$root/etc/apt/sources.list"
  printf '%s\n' "$network" >"$root/etc/apt/apt.conf.d/90host"
  cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
  find /usr/local/share/ca-certificates -name '*.crt' -exec cp {} "$root/usr/local/share/ca-certificates/" \; 2>/dev/null || true
  chroot "$root" update-ca-certificates >/dev/null 2>&1
  git clone -q --no-hardlinks . "$root/root/oneway"
  read -ra command <<<"${commands[$step]}"
  result=passed
  apart "$cache/log/$step.log" env -i "${environment[@]}" "$BASH" "$PWD/tests/fresh.sh" --inside "$root" "$cache" "$go" "${command[@]}" || result="FAILED ($?)" status=1
  took=$((SECONDS - begin))
  results+=("$(printf '%s %s in %d:%02d' "$step" "$result" $((took / 60)) $((took % 60)))")
  say "$step $result"
  if [[ $result == passed ]]; then
    rm -rf --one-file-system "$root"
  else
    echo "fresh: its log: $cache/log/$step.log; its root file system is kept: $root"
  fi
done
printf 'fresh: %s' "${results[0]}"
printf ', %s' "${results[@]:1}"
echo
exit $status
