#!/usr/bin/env bash
# Runs every test of the repository. A skip is not a pass: one that is not in
# tests/expected-skips.txt fails the run.
set -uo pipefail
cd "$(dirname "$0")/.."
mkdir -p build
log=build/test.log
: >"$log"
status=0

run() { # title, command...
  echo "== $1"
  shift
  "$@" 2>&1 | tee -a "$log" | { grep -Ev '^(=== (RUN|PAUSE|CONT|NAME)|    --- (PASS|SKIP)|--- PASS|PASS$|\?  |        --- PASS)' || true; }
  [[ ${PIPESTATUS[0]} -eq 0 ]] || status=1
}

run "exporter: unit tests, race detector" env CGO_ENABLED=1 go test -race -shuffle=on -timeout 10m -v ./exporter/...
# Under the race detector the simulated days are taken in coarse strides.
run "clock: simulated days" go test -count=1 -v -run 'TestBoundCovers|TestCoverage|TestSender|TestNothingIs' ./exporter/clock/chrony
# System tests measure time: one package after another, without the race
# detector's load on the clock.
run "tests: system" go test -p 1 -count=1 -timeout 15m -v ./tests/...
run "dashboards" bash -c 'cd grafana-dashboards && go test -count=1 -v ./...'

skips=$(grep -oE '^ *--- SKIP: [^ ]+' "$log" | awk '{print $3}' | sort -u)
unexpected=$(comm -23 <(printf '%s\n' "$skips" | sed '/^$/d') <(grep -v '^#' tests/expected-skips.txt | awk '{print $1}' | sort -u))
if [[ -n $unexpected ]]; then
  echo "FAIL: skipped, and not expected to be (tests/expected-skips.txt):"
  printf '  %s\n' $unexpected
  status=1
fi
passed=$(grep -cE '^--- PASS' "$log")
failed=$(grep -cE '^--- FAIL' "$log")
skipped=$(grep -cE '^--- SKIP' "$log")
echo "$passed passed, $failed failed, $skipped skipped"
exit $status
