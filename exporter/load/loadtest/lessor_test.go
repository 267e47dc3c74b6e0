package loadtest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/load/loadtest"
)

// leased is a Lessor that records its calls.
type leased struct {
	b             *bench
	events        []string
	denied, quota error
}

func (l *leased) record(format string, args ...any) {
	l.events = append(l.events, fmt.Sprintf(format, args...))
}

func (l *leased) Lease(_ context.Context, wait time.Duration) (loadtest.Lease, error) {
	if l.denied != nil {
		return nil, l.denied
	}
	l.record("lease within %v", wait)
	return l, nil
}

func (l *leased) Reserve(bytes int64) error {
	l.record("reserve %d", bytes)
	return l.quota
}

func (l *leased) BeginSending() { l.record("sending %v", l.b.running()) }

func (l *leased) Return(forward, reverse int64) {
	l.record("return %d %d, %d sessions open", forward, reverse, l.b.open.Load())
}

func TestLeasedLinkIsReturnedAfterEveryOutcome(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*bench)
		leased leased
		want   []string
		runs   string
	}{
		"completed": {
			want: []string{"lease within 5m0s", "reserve 100000", "sending 0", "return 100000 0, 0 sessions open"}, runs: "completed,ok",
		},
		"panics": {
			change: func(b *bench) { b.kind.during = func(context.Context, int64) error { panic("as the test wants") } },
			want:   []string{"lease within 5m0s", "reserve 100000", "sending 0", "return 100000 0, 0 sessions open"}, runs: "incomplete,internal",
		},
		"unreachable": {
			change: func(b *bench) { b.refuse = func(int64) error { return errors.New("no route") } },
			want:   []string{"lease within 5m0s", "reserve 100000", "return 0 0, 0 sessions open"}, runs: "failed,internal",
		},
		"over quota": {
			leased: leased{quota: errors.New("nothing is left")},
			want:   []string{"lease within 5m0s", "reserve 100000", "return 0 0, 0 sessions open"}, runs: "skipped,quota",
		},
		"busy": {leased: leased{denied: &loadtest.Failure{Reason: runreason.LinkBusy, Err: errors.New("somebody has it")}}, runs: "skipped,link_busy"},
		"remote end busy": { // the link is returned during the wait: decision 8
			change: func(b *bench) {
				b.refuse = func(n int64) error {
					if n == 1 {
						return busy(2 * time.Minute)
					}
					return nil
				}
			},
			want: []string{
				"lease within 5m0s", "reserve 100000", "return 0 0, 0 sessions open",
				"lease within less", "reserve 100000", "sending 0", "return 100000 0, 0 sessions open",
			},
			runs: "completed,ok",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T) {
				b := newBench(t, c.change)
				l := c.leased
				l.b = b
				b.prober.SetLessor(&l)
				b.start()
				time.Sleep(10 * time.Minute) // simulated time (synctest)
				b.expectRuns(map[string]float64{c.runs: 1})
				b.end()
				if len(l.events) > 4 {
					l.events[3] = "lease within less" // the random part of the wait is subtracted
				}
				if diff := cmp.Diff(c.want, l.events); diff != "" {
					t.Errorf("calls of the lessor (-want +got):\n%s", diff)
				}
			})
		})
	}
}
