// Package bench does the same work with oneway and with irtt, iperf3 and stamp-suite in one run on one machine: over
// the veth pair between two network namespaces. It reports ratios; no figure fails a run. See `make bench-peers`.
//
// Every program under test is a process of its own: those of oneway are this test binary, started in a role. CPU time
// is the process's user and system time from the kernel.
package bench

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"text/tabwriter"

	"oneway.example/tests/lab"
	"oneway.example/tests/program"
)

// roleVariable starts this binary in a role instead of as a test.
const roleVariable = "ONEWAY_BENCH_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(play(role, os.Args[1:]))
	}
	os.Exit(program.Main(func() int {
		status := m.Run()
		comparison.print()
		return status
	}, func(built string) { binary = built }))
}

// binary is the program `oneway`.
var binary string

// comparison collects the rows of the final table. Benchmarks run sequentially.
var comparison rows

type rows struct{ all []row }

// row is one quantity of oneway and of peers; 0: none.
type row struct {
	what, unit string
	ours       float64
	peers      []peer
	lower      bool // lower is better
}

type peer struct {
	name  string
	value float64
}

func (r *rows) add(b *testing.B, one row) {
	b.Helper()
	b.ReportMetric(one.ours, metricName("oneway", one))
	for _, p := range one.peers {
		b.ReportMetric(p.value, metricName(p.name, one))
	}
	r.all = append(r.all, one)
}

// metricName is a unit in the form that package testing requires: without spaces.
func metricName(who string, r row) string { return fmt.Sprintf("%s:%s", who, r.unit) }

func (r *rows) print() {
	if len(r.all) == 0 {
		return
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	defer w.Flush()
	fmt.Fprintln(w, "\nquantity\tunit\toneway\tpeer\tpeer's value\toneway is better by")
	for _, one := range r.all {
		if len(one.peers) == 0 {
			fmt.Fprintf(w, "%s\t%s\t%.4g\t-\t-\t-\n", one.what, one.unit, one.ours)
		}
		for _, p := range one.peers {
			fmt.Fprintf(w, "%s\t%s\t%.4g\t%s\t%.4g\t%s\n", one.what, one.unit, one.ours, p.name, p.value, one.ratio(p.value))
		}
	}
}

func (r row) ratio(theirs float64) string {
	better, worse := r.ours, theirs
	if r.lower {
		better, worse = theirs, r.ours
	}
	if worse == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f x", better/worse)
}

// have reports whether a peer is installed, and logs it if not.
func have(b *testing.B, program string) (path string, ok bool) {
	b.Helper()
	if program == "stamp-suite" && os.Getenv("STAMP_SUITE") != "" {
		program = os.Getenv("STAMP_SUITE")
	}
	path, err := exec.LookPath(program)
	if err != nil {
		if path, err = exec.LookPath("../../build/tools/bin/" + program); err != nil {
			b.Logf("NOT COMPARED with %s: %v", program, err)
		}
	}
	return path, err == nil
}

func newLab(b *testing.B) *lab.Lab {
	b.Helper()
	return lab.Start(b, lab.Options{Profile: lab.Profile{Name: "bench"}})
}
