// Package loadtest runs load tests between real processes over an emulated link, and compares their results with the packet log
// of the link, which is the reference for what was sent, and when. tests/faults has the faults of such processes.
package loadtest

import (
	"os"
	"testing"

	"oneway.example/tests/lab"
	"oneway.example/tests/loadsite"
	"oneway.example/tests/program"
)

// binary is the program under test, built once; empty without a lab.
var binary string

func TestMain(m *testing.M) {
	os.Exit(program.Main(m.Run, func(built string) { binary = built }))
}

// site is a site of this test's binary.
type site struct{ *loadsite.Site }

func newSite(t *testing.T, o lab.Options) *site {
	t.Helper()
	return &site{loadsite.New(t, binary, o)}
}
