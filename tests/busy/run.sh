#!/usr/bin/env bash
# Runs the tests that measure time RUNS times (3) in a row on a busy machine: beside three processes that spin, and stopped as a
# whole for 200 ms now and then (tests/busy). tests/busy/log.txt, which is committed, has each run: what failed, what could not tell
# since the host stood still, and which tests were flaky. A test that failed is not excused by a second run: the script fails.
#
# PACKAGES='./tests/grid ./tests/lab' runs those instead, and leaves the log alone.
set -uo pipefail
cd "$(dirname "$0")/../.."
runs=${1:-3}
[[ $runs =~ ^[1-9][0-9]*$ ]] || { echo "runs $runs: want a number from 1" >&2; exit 1; }
mkdir -p build
. tests/stages.sh
log=tests/busy/log.txt
if [[ -n ${PACKAGES:-} ]]; then
  read -ra measuring <<<"$PACKAGES"
  log=build/busy.txt
fi
export ONEWAY_PROGRAM=$PWD/build/test-oneway CGO_ENABLED=0
go build -o build/ ./tests/results ./tests/busy && go build -o "$ONEWAY_PROGRAM" ./exporter/cmd/oneway || exit 1
go test -count=1 -vet=off -ldflags=-w -run '^$' "${measuring[@]}" >build/busy-build.txt || exit 1 # compilers would take the processors

{
  echo "# make busy RUNS=$runs: $(nproc) processors, Linux $(uname -r), revision $(git rev-parse --short HEAD), $(date -u +%F)"
  for ((run = 1; run <= runs; run++)); do
    : >build/busy.json
    begin=$SECONDS
    build/busy build/results run build/busy.json "run $run: system tests that measure time, busy" "${measure[@]}" -- "${measuring[@]}" >build/busy-run.txt 2>&1
    stops=$(grep '^busy: ' build/busy-run.txt)
    result=$(build/results report build/busy.json tests/expected-skips.txt build/flaky)
    printf '\nrun %d, %d s, load %s; %s\n' "$run" $((SECONDS - begin)) "$(cut -d' ' -f1-3 /proc/loadavg)" "$stops"
    sed 's#/tmp/[^ ]*/##g' <<<"$result"
  done
} | tee build/busy-log.txt
status=${PIPESTATUS[0]}
! grep -qE '^[0-9]+ passed, .*([1-9][0-9]* flaky|[1-9][0-9]* failed)' build/busy-log.txt || status=1
cp build/busy-log.txt "$log"
exit "$status"
