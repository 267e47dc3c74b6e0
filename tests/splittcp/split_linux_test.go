// Package splittcp runs the program's TCP test over paths on which something splits TCP connections, and over others, and
// compares the verdicts with what the paths are.
//
// `go test ./tests/splittcp -args -split.runs=6` runs each kind of path six times, and prints the verdicts.
package splittcp

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"oneway.example/tests/lab"
	"oneway.example/tests/loadsite"
	"oneway.example/tests/middlebox"
	"oneway.example/tests/program"
)

var (
	runs = flag.Int("split.runs", 0, "runs over each kind of path; 0: one over some of them")
	only = flag.String("split.only", "", "only the kinds whose names have this text")
)

// binary is the program under test, built once; empty without a lab.
var binary string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(program.Main(m.Run, func(built string) { binary = built }))
}

// A verdict is never wrong, and nearly all runs have one.
func TestVerdictIsThatOfThePath(t *testing.T) {
	var all tally
	t.Run("kinds", func(t *testing.T) {
		for _, k := range kinds() {
			for i := range max(1, *runs) {
				if *runs == 0 && !k.inCI || !strings.Contains(k.name, *only) {
					continue
				}
				t.Run(fmt.Sprintf("%s/%d", k.name, i), func(t *testing.T) {
					t.Parallel()
					all.judge(t, &k, run(t, &k, uint64(1+i)))
				})
			}
		}
	})
	all.report(t)
}

// run runs the test once over a path of a kind.
func run(t *testing.T, k *kind, seed uint64) loadsite.TCPOutcome {
	t.Helper()
	p := middlebox.New(t, k.at, lab.Options{Profile: k.link(), Seed: seed})
	k.box(t, p)
	s := loadsite.Between(t, binary, p.Client, p.Server, middlebox.Server)
	return s.StartTCP(t, "--duration=2500ms", "--omit=0s", "--congestion-control=cubic").FinishTCP(t, 0)
}
