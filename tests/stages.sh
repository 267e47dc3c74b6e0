# Sourced by tests/run.sh and tests/busy/run.sh: the stages of the system tests.
#
# Of the system tests, those in one list wait for real time without measuring it: more of them at once than there are
# processors. Those in the other list compute, at a low priority. All others, also new ones, measure time.
# tests/bench has only benchmarks, which make bench-peers runs.
waiting=(./tests/abuse ./tests/chronyconfig ./tests/commands ./tests/demo ./tests/faults ./tests/influx ./tests/mesh ./tests/pulse ./tests/pulse/host ./tests/receiver)
computing=(./tests/links ./tests/docs ./tests/documents ./tests/grafana ./tests/historyreport ./tests/imports ./tests/oneway ./tests/pages ./tests/results ./tests/rules ./tests/slareport ./tests/words)
benchmarks=(./tests/bench)
system=$(go list ./tests/...) || exit 1
mapfile -t measuring < <(sed 's#^oneway.example#.#' <<<"$system" | grep -vxF -f <(printf '%s\n' "${waiting[@]}" "${computing[@]}" "${benchmarks[@]}"))
test=(go test -json -vet=off -ldflags=-w) # make lint runs vet; no test reads debugging information
measure=("${test[@]}" -p 2 -parallel 4 -count=1 -timeout 25m)
