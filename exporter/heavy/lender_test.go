package heavy_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/heavy"
)

// lent is a Lender that remembers what was asked of it.
type lent struct {
	b              *bench
	events         []string
	denied, budget error
}

func (l *lent) say(format string, args ...any) {
	l.events = append(l.events, fmt.Sprintf(format, args...))
}

func (l *lent) Lend(_ context.Context, wait time.Duration) (heavy.Loan, error) {
	if l.denied != nil {
		return nil, l.denied
	}
	l.say("lend within %v", wait)
	return l, nil
}

func (l *lent) Reserve(bytes int64) error {
	l.say("reserve %d", bytes)
	return l.budget
}

func (l *lent) Sending() { l.say("sending %v", l.b.running()) }

func (l *lent) Return(forward, reverse int64) {
	l.say("return %d %d, %d sessions open", forward, reverse, l.b.open.Load())
}

func TestLinkThatIsLentIsReturnedWhateverBecomesOfTheRun(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*bench)
		lent   lent
		want   []string
		runs   string
	}{
		"completed": {
			want: []string{"lend within 5m0s", "reserve 100000", "sending 0", "return 100000 0, 0 sessions open"}, runs: "completed,ok",
		},
		"panics": {
			change: func(b *bench) { b.kind.during = func(context.Context, int64) error { panic("as the test wants") } },
			want:   []string{"lend within 5m0s", "reserve 100000", "sending 0", "return 100000 0, 0 sessions open"}, runs: "incomplete,internal",
		},
		"unreachable": {
			change: func(b *bench) { b.refuse = func(int64) error { return errors.New("no route") } },
			want:   []string{"lend within 5m0s", "reserve 100000", "return 0 0, 0 sessions open"}, runs: "failed,internal",
		},
		"over budget": {
			lent: lent{budget: errors.New("nothing is left")},
			want: []string{"lend within 5m0s", "reserve 100000", "return 0 0, 0 sessions open"}, runs: "skipped,budget",
		},
		"busy": {lent: lent{denied: &heavy.Failure{Reason: heavy.ReasonLinkBusy, Err: errors.New("somebody has it")}}, runs: "skipped,link_busy"},
		"far end busy": { // the link is not held while that is waited for: decision 8
			change: func(b *bench) {
				b.refuse = func(n int64) error {
					if n == 1 {
						return busy(2 * time.Minute)
					}
					return nil
				}
			},
			want: []string{
				"lend within 5m0s", "reserve 100000", "return 0 0, 0 sessions open",
				"lend within less", "reserve 100000", "sending 0", "return 100000 0, 0 sessions open",
			},
			runs: "completed,ok",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T) {
				b := newBench(t, c.change)
				l := c.lent
				l.b = b
				b.prober.SetLender(&l)
				b.start()
				time.Sleep(10 * time.Minute) // synctest's time: no real time passes
				b.expectRuns(map[string]float64{c.runs: 1})
				b.end()
				if len(l.events) > 4 {
					l.events[3] = "lend within less" // some random part less
				}
				if diff := cmp.Diff(c.want, l.events); diff != "" {
					t.Errorf("asked of the lender (-want +got):\n%s", diff)
				}
			})
		})
	}
}
