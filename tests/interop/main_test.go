// Package interop tests oneway with other implementations of STAMP and of TWAMP-Light.
//
// The sender and the reflector of TWAMP-Light are of this package, from the text of RFC 5357, with each padding that it permits
// and of the lengths of Nokia's twampy, which no package registry has.
//
// stamp-suite (crates.io) is taken from STAMP_SUITE, from PATH or from build/tools; with ONEWAY_INTEROP=1 it is built
// there if it is missing.
package interop

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"text/tabwriter"

	"oneway.example/tests/lab"
)

func TestMain(m *testing.M) {
	os.Exit(lab.Main(func() int {
		status := m.Run()
		results.print()
		return status
	}))
}

// results are the lines of the final table.
var results table

type table struct {
	mu    sync.Mutex
	lines []line
}

// line is the result of one case; delays are those of the sender's report.
type line struct{ asks, replies, what, sent, answered, forward, reverse, verdict string }

// add adds the line once t has ended and its verdict is known.
func (b *table) add(t *testing.T, l line) {
	t.Helper()
	t.Cleanup(func() {
		l.verdict = "ok"
		if t.Failed() {
			l.verdict = "FAILED"
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.lines = append(b.lines, l)
	})
}

func (b *table) print() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.lines) == 0 {
		return
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	defer w.Flush()
	fmt.Fprintln(w, "\nsender\treflector\tcase\tsent\treceived\tforward\treverse\tverdict")
	for _, l := range b.lines {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			l.asks, l.replies, l.what, l.sent, l.answered, l.forward, l.reverse, l.verdict)
	}
}
