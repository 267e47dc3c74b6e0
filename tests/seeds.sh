#!/usr/bin/env bash
# Runs the tests with random numbers from testseed, each package with a random seed, for about the
# given time (10m), or a part of it (5: a fifth). It prints the command that repeats each run, and ends with the
# first failure. ONEWAY_SEED=number: all once, with that seed.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-10m}
[[ $time =~ ^([0-9]+[hms])+$ ]] || { echo "duration $time: want whole hours, minutes and seconds, such as 1h30m" >&2; exit 1; }
end=$((SECONDS + ($(sed 's/h/*3600+/; s/m/*60+/; s/s/+/; s/$/0/' <<<"$time")) / ${2:-1}))
given=${ONEWAY_SEED:-random}

# seeded prints the tests in files that call testseed.Of, directly or through functions there.
seeded() {
  awk '
    /^func / { name = $0; sub(/^func (\([^)]*\) )?/, "", name); sub(/[^A-Za-z0-9_].*/, "", name) }
    { body[name] = body[name] " " $0 }
    /testseed\.Of\(/ { of[name] = 1 }
    END {
      do {
        more = 0
        for (f in body) for (s in of) if (!(f in of) && body[f] ~ "[^A-Za-z0-9_]" s "\\(") { of[f] = 1; more = 1 }
      } while (more)
      for (f in of) if (f ~ /^Test/) print f
    }' "$@" | sort | paste -sd'|'
}

# tests/soak has its own duration.
mapfile -t packages < <(git grep -l '"oneway.example/tests/testseed"' -- '*_test.go' ':!tests/soak' ':!tests/testseed' | xargs -n1 dirname | sort -u)
[[ ${#packages[@]} -gt 0 ]] || { echo "no package takes its seed from testseed: is this a git repository?" >&2; exit 1; }
while :; do
  for package in $(shuf -e "${packages[@]}"); do
    [[ $given != random || $SECONDS -lt $end ]] || exit 0
    seed=$given
    [[ $seed != random ]] || seed=$(od -An -N8 -tu8 /dev/urandom | tr -d ' ')
    tests=$(seeded "$package"/*_test.go)
    echo "ONEWAY_SEED=$seed go test -count=1 -run '^($tests)\$' ./$package"
    ONEWAY_SEED=$seed go test -count=1 -timeout 20m -run "^($tests)\$" "./$package"
  done
  [[ $given == random ]] || exit 0
done
