// Package faults runs load tests and agents over an emulated link that are started together, killed, cut off, stopped and reloaded,
// whose hosts refuse to send, or have no space. Its tests wait for real time; no
// truth of them depends on what else the machine does, so several run at once, beside other work. tests/loadtest has the results of load tests without faults.
package faults

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
