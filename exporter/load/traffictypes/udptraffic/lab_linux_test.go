package udptraffic_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/loadtesttest"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/exporter/probe"
	"oneway.example/tests/lab"
)

func TestMain(m *testing.M) { os.Exit(lab.Main(m.Run)) }

// overload sends streams at a rate in both directions at once.
type overload struct {
	rate option.Rate
	last time.Duration

	mu   sync.Mutex
	seen [2]*udptraffic.Transfer
}

func (*overload) Kind() string                                      { return "saturation" }
func (*overload) Traffic() loadsession.Traffic[*udptraffic.Session] { return udptraffic.Local{} }
func (o *overload) Bytes(int64) int64                               { return int64(2.2 * float64(o.rate) * o.last.Seconds()) }
func (o *overload) Duration() time.Duration                         { return 2 * o.last }
func (*overload) Publish(*loadtest.Values, *loadtest.Run)           {}

func (o *overload) Perform(ctx context.Context, s *udptraffic.Session, _ *loadtest.Run) error {
	var both sync.WaitGroup
	errs := make([]error, 2)
	for i, d := range sample.Directions() {
		both.Go(func() {
			var x *udptraffic.Transfer
			x, errs[i] = s.Transfer(ctx, d, s.Plan(s.PacedSegment(1400, o.rate, o.last)), nil)
			o.mu.Lock()
			defer o.mu.Unlock()
			o.seen[i] = x
		})
	}
	both.Wait()
	return errors.Join(errs...)
}

// Both queues are full at once: hello packets, control messages and records wait in them or are dropped.
// The run must complete.
func TestSessionsUnderARealFullQueue(t *testing.T) {
	for _, c := range []struct {
		name  string
		rate  int64 // of the link, in bits per second
		queue time.Duration
		load  int64 // multiple of rate
		last  time.Duration
	}{
		{"a queue of 4 s", 5_000_000, 4 * time.Second, 3, 4 * time.Second},
		{"ten times the link's rate", 2_000_000, 500 * time.Millisecond, 10, 5 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			link := lab.Link{Rate: c.rate, Delay: 10 * time.Millisecond, Queue: int(float64(c.rate) / 8 * c.queue.Seconds())}
			l := lab.Start(t, lab.Options{Profile: lab.Profile{Name: c.name, Forward: link, Reverse: link}, Seed: 1})
			opts := loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{Address: l.Server.Addr4, Do: l.Server.Do})
			opts.DrainTimeout = 8 * time.Second
			k := &overload{rate: option.Rate(c.rate*c.load) / 8, last: c.last}
			env := probe.Env{Log: slog.New(slog.DiscardHandler), Sink: metric.Discard{}, Clock: static.New(time.Millisecond, metric.Discard{})}
			var out *loadtest.Outcome
			begin := time.Now()
			err := l.Client.Do(func() (err error) {
				out, err = loadtesttest.RunKind(t.Context(), env, probe.Target{Path: "lab", Probe: "saturation"}, opts, k, nil)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s after %v", out.Result, time.Since(begin).Round(time.Second))
			for i, d := range sample.Directions() {
				x := k.seen[i]
				if x.Cut != "" || x.Counts.Withheld > 0 || x.Counts.NotTried > 0 {
					t.Errorf("%s: cut %q, %+v", d, x.Cut, x.Counts)
				}
				// The link delivers its rate during the streams, and then its queue.
				passes := float64(c.rate) / 8 / 1400 * (c.last + c.queue).Seconds()
				if n := float64(x.Counts.Arrived); n < 0.8*passes || n > 1.05*passes {
					t.Errorf("%s: %.0f packets arrived; the link delivers %.0f", d, n, passes)
				}
				var most time.Duration
				for i := range x.Packets {
					if v := x.Delay(i); v.OK() {
						most = max(most, v.Value)
					}
				}
				if most < c.queue*9/10 {
					t.Errorf("%s: the longest delay is %v; the queue is %v", d, most, c.queue)
				}
			}
		})
	}
}
