#!/usr/bin/env bash
# Runs every test of the repository. A skip is not a pass: one that is not in
# tests/expected-skips.txt fails the run. What failed stands at the end of the output
# (tests/results); all that was said is in build/test.json.
set -uo pipefail
cd "$(dirname "$0")/.."
mkdir -p build
log=build/test.json
results=build/test-results
: >"$log"
status=0 failed=()
go build -o "$results" ./tests/results || exit 1

run() { # title, command...
  echo "== $1"
  "${@:2}" 2>&1 | tee -a "$log" | "$results" show
  [[ ${PIPESTATUS[0]} -eq 0 ]] || failed+=("$1")
}

# Two things at once: beside what needs processors, what waits. The second is shown when both are over.
# It has a process group of its own, which ends with this script.
beside() { # title, command...; then run what it is beside, and call both
  title=$1 part=build/test-beside.json
  shift
  set -m
  "$@" >"$part" 2>&1 &
  other=$!
  set +m
  trap 'kill -- "-$other" 2>/dev/null' EXIT
}

both() {
  wait "$other" || failed+=("$title")
  trap - EXIT
  echo "== $title"
  "$results" show <"$part"
  cat "$part" >>"$log"
}

# Of the system tests, those in one list wait for real time and measure none of it, those in the
# other compute. The rest, whatever is added, measure time: one package after another, without the race
# detector's load on the clock, and with no more beside them than a process that gives way.
# tests/bench has benchmarks alone, which make bench-peers runs.
waiting=(./tests/abuse ./tests/chronyconfig)
computing=(./tests/links ./tests/rules)
benchmarks=(./tests/bench)
system=$(go list ./tests/...) || exit 1
mapfile -t measuring < <(sed 's#^oneway.example#.#' <<<"$system" | grep -vxF -f <(printf '%s\n' "${waiting[@]}" "${computing[@]}" "${benchmarks[@]}"))
# Whatever is neither in exporter/ nor in tests/ would not run.
others=$(go list ./... | grep -vE '^oneway\.example/(exporter|tests)(/|$)')
if [[ -n $others ]]; then
  echo "no stage runs these packages: $others"
  status=1
fi

test=(go test -json)
beside "tests: system, those that wait" "${test[@]}" -p 1 -count=1 -timeout 15m "${waiting[@]}"
run "exporter: unit tests, race detector" env CGO_ENABLED=1 "${test[@]}" -race -shuffle=on -timeout 10m ./exporter/...
# Under the race detector the simulated days are taken in coarse strides.
run "clock: simulated days" "${test[@]}" -count=1 -run 'TestBoundCovers|TestCoverage|TestSender|TestNothingIs' ./exporter/clock/chrony
both
beside "tests: system, those that compute" nice -n 19 env GOMAXPROCS=1 "${test[@]}" -p 1 -count=1 -timeout 20m "${computing[@]}"
run "tests: system, those that measure time" "${test[@]}" -p 1 -count=1 -timeout 15m "${measuring[@]}"
both
run "dashboards" go test -C grafana-dashboards -json -count=1 ./...

echo "== results"
"$results" tell "$log" tests/expected-skips.txt || status=1
for title in "${failed[@]}"; do
  echo "failed: stage $title"
  status=1
done
[[ $status -eq 0 ]] || echo "FAIL"
exit $status
