#!/usr/bin/env bash
# Runs every test of the repository, and at the end each failed test once more, alone (tests/results): one that passes
# then is flaky, unless the machine stood still meanwhile, and build/flaky has its first output. More than three flaky tests fail the run, as does a skip that is
# not in tests/expected-skips.txt. The failures are at the end of the output; build/test.json has the complete output.
set -uo pipefail
cd "$(dirname "$0")/.."
mkdir -p build
log=build/test.json
results=build/test-results
: >"$log"
status=0 times=()
go build -o "$results" ./tests/results || exit 1

took() { # title, begin, end: in seconds of this script
  times+=("$(printf '%3d:%02d %s' $((($3 - $2) / 60)) $((($3 - $2) % 60)) "$1")")
}

run() { # title, command, --, packages
  local begin=$SECONDS
  "$results" run "$log" "$@"
  [[ $? -lt 2 ]] || status=1 # report names failed tests
  took "$1" "$begin" "$SECONDS"
}

# Runs a stage in the background, in a process group of its own, which ends with this script; finish waits for it and shows
# its output.
declare -A jobs=() titles=() begins=()
beside() { # name, title, command, --, packages
  local name=$1 part=build/test-$1.json
  titles[$name]=$2 begins[$name]=$SECONDS
  rm -f "$part"
  set -m
  {
    "$results" run "$part" "${@:2}" >"$part.txt" 2>&1 </dev/null
    code=$?
    echo "$SECONDS" >"$part.end"
    exit "$code"
  } &
  jobs[$name]=$!
  set +m
}

finish() { # name
  local part=build/test-$1.json
  wait "${jobs[$1]}"
  [[ $? -lt 2 ]] || status=1
  unset "jobs[$1]"
  took "${titles[$1]}, in the background" "${begins[$1]}" "$(<"$part.end")"
  cat "$part.txt"
  cat "$part" >>"$log"
}

end() {
  for job in "${jobs[@]}"; do
    kill -- "-$job" 2>/dev/null
  done
}
trap end EXIT

# Tests that measure time: two packages at once, which mostly wait, without the race detector, and with only the processes of low
# priority in the background. No step of .ci/run that shares the lock build/quiet runs beside them. make busy runs them beside others.
. tests/stages.sh
mapfile -t concurrent < <(go list ./exporter/... | grep -v '^oneway.example/exporter/estimate/')
# A package outside of exporter/ and tests/ would not run.
others=$(go list ./... | grep -vE '^oneway\.example/(exporter|tests)(/|$)')
if [[ -n $others ]]; then
  echo "no stage runs these packages: $others"
  status=1
fi

# Compiled before any test runs: on a machine with an empty cache compilers would take the processors from the tests for
# minutes. The system tests share one build of the program.
export ONEWAY_PROGRAM=$PWD/build/test-oneway CGO_ENABLED=${CGO_ENABLED:-0}
begin=$SECONDS
go build ./... && CGO_ENABLED=1 go build -race ./exporter/... && go build -o "$ONEWAY_PROGRAM" ./exporter/cmd/oneway || exit 1
took "build" "$begin" "$SECONDS"
# The store of tests/influx; they skip without it, and report the skip.
tests/influx/influxdb1.sh || { echo "build of InfluxDB 1.8 failed"; status=1; }
beside waiting "tests: system, waiting" "${test[@]}" -p 4 -parallel 6 -count=1 -timeout 15m -- "${waiting[@]}"
# The plugins wait for Telegraf.
beside telegraf "telegraf plugins" go test -C telegraf-plugins -json -count=1 -timeout 15m -- ./...
# Estimators have neither goroutines nor locks (.golangci.yml): the race detector would only make their simulations slow.
run "exporter: unit tests, race detector" env CGO_ENABLED=1 "${test[@]}" -p 4 -parallel 8 -race -shuffle=on -timeout 15m -- "${concurrent[@]}"
run "exporter: estimators" "${test[@]}" -p 2 -shuffle=on -timeout 15m -- ./exporter/estimate/...
# Under the race detector the simulated days have coarse steps.
run "clock: simulated days" "${test[@]}" -count=1 -run 'TestBoundCovers|TestCoverage|TestSender|TestNothingIs' -- ./exporter/clocks/chrony
run "dashboards" go test -C grafana-dashboards -json -count=1 -- ./...
beside computing "tests: system, computing" nice -n 19 env GOMAXPROCS=1 "${test[@]}" -p 2 -count=1 -timeout 30m -- "${computing[@]}"
beside history "history" nice -n 19 env GOMAXPROCS=1 go test -C tests/history -json -count=1 -timeout 15m -- ./...
beside victoriametrics "victoriametrics" nice -n 19 env GOMAXPROCS=1 go test -C deploy/victoriametrics -json -count=1 -timeout 15m -- ./...
finish telegraf
finish waiting
exec 9>build/quiet
flock 9
run "tests: system, measuring time" "${measure[@]}" -- "${measuring[@]}"
exec 9>&-
finish computing
finish history
finish victoriametrics

echo "== minutes"
printf '%s\n' "${times[@]}"
echo "== results"
"$results" report "$log" tests/expected-skips.txt build/flaky || status=1
[[ $status -eq 0 ]] || echo "FAIL"
exit $status
