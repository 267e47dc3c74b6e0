package loadtest_test

import (
	"context"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/loadtesttest"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/link"
)

// goodClock is a clock.Monitor that is always synchronized.
type goodClock struct{}

func (goodClock) Quality(instant.Time) clock.Quality {
	return clock.Quality{State: clock.Synchronized, Bound: sample.Bound{Error: 10 * time.Microsecond, Reason: sample.OK}}
}
func (goodClock) Run(ctx context.Context) error { <-ctx.Done(); return nil }

// loadKind is a kind that sends 100 packets of 1000 bytes in 10 s, forward, and publishes how many arrived.
type loadKind struct {
	during  func(ctx context.Context, run int64) error // after the transfer; nil: nothing
	publish func(v *loadtest.Values, arrived int)
	runs    atomic.Int64
}

const loadBytes = 100 * 1000

func (*loadKind) Kind() string                                      { return "saturation" }
func (*loadKind) Traffic() loadsession.Traffic[*udptraffic.Session] { return udptraffic.Local{} }
func (*loadKind) Bytes(int64) int64                                 { return loadBytes }
func (*loadKind) Duration() time.Duration                           { return 10 * time.Second }

func (k *loadKind) Perform(ctx context.Context, s *udptraffic.Session, r *loadtest.Run) error {
	run := k.runs.Add(1)
	r.Phase("load")
	t, err := s.Transfer(ctx, sample.Forward, s.Plan(stream.Segment{
		PayloadBytes: 1000 - s.Overhead(), Interval: 100 * time.Millisecond, Burst: 1, Bursts: 100,
	}), nil)
	if err != nil {
		return err
	}
	r.Body = t.Counts.Arrived
	r.Summary = append(r.Summary, probe.Result{Quantity: "arrived", Direction: "forward", Value: "all"})
	if k.during != nil {
		return k.during(ctx, run)
	}
	return nil
}

func (k *loadKind) Publish(v *loadtest.Values, r *loadtest.Run) {
	if k.publish != nil {
		k.publish(v, r.Body.(int))
		return
	}
	v.Set(metric.UDPThroughput, float64(r.Body.(int)), "forward")
}

// bench is a prober with a simulated remote end.
type bench struct {
	t          *testing.T
	sink       *metrictest.Sink
	links      *link.Table
	link       *loadtesttest.Link
	kind       *loadKind
	opts       loadtest.Options
	env        probe.Env
	prober     *loadtest.Prober
	lost       chan struct{} // close it to end the session of the next run
	why        error
	dials      atomic.Int64
	refuse     func(n int64) error // of dial n, from 1; nil: none
	open       atomic.Int64        // sessions
	left       []int64             // of the quota, of each attempt
	directions []sample.Direction
	stopped    chan struct{}
	stop       context.CancelFunc
}

func newBench(t *testing.T, change func(*bench)) *bench {
	t.Helper()
	b := &bench{
		t: t, sink: &metrictest.Sink{}, link: &loadtesttest.Link{Sleep: true}, kind: &loadKind{},
		opts: option.Defaults[loadtest.Options](), lost: make(chan struct{}), stopped: make(chan struct{}),
	}
	b.opts.Every, b.directions = time.Hour, []sample.Direction{sample.Forward}
	b.links = links(t)
	if change != nil {
		change(b)
	}
	b.env = probe.Env{Log: slog.New(slog.DiscardHandler), Sink: b.sink, Clock: goodClock{}, Links: b.links, Reports: b.env.Reports, Recorder: b.env.Recorder}
	var err error
	if b.prober, err = loadtest.NewProber(b.env, target, b.opts, b.test()); err != nil {
		t.Fatal(err)
	}
	b.prober.Exactly()
	return b
}

var target = probe.Target{Path: "office", Probe: "saturation", Peer: "192.0.2.1"}

func links(t *testing.T, all ...link.Options) *link.Table {
	t.Helper()
	l := link.NewTable(nil)
	if err := l.SetLinks(all); err != nil {
		t.Fatal(err)
	}
	return l
}

// fakeTest is the test of a bench: a kind with sessions whose remote end is simulated.
type fakeTest struct {
	*loadKind
	b *bench
}

func (b *bench) test() loadtest.Test { return fakeTest{b.kind, b} }

func (fakeTest) Remote() (host string, port uint16) { return "192.0.2.1", 8620 }
func (x fakeTest) Directions() []sample.Direction   { return x.b.directions }
func (x fakeTest) Counters(netip.Addr) []loadtest.Counter {
	return x.Traffic().Counters()
}

func (x fakeTest) Bytes(left int64) int64 {
	x.b.left = append(x.b.left, left)
	return x.loadKind.Bytes(left)
}

func (x fakeTest) Open(_ context.Context, a *loadtest.Attempt) (loadtest.Session, error) {
	n := x.b.dials.Add(1)
	if x.b.refuse != nil {
		if err := x.b.refuse(n); err != nil {
			return nil, loadsession.Refused(err)
		}
	}
	x.b.open.Add(1)
	return fakeSession{udptraffic.NewSession(x.b.link, udptraffic.SessionOptions{Progress: a.Progress}), x.b}, nil
}

type fakeSession struct {
	*udptraffic.Session
	b *bench
}

func (fakeSession) Remote() string          { return "192.0.2.1:8620" }
func (s fakeSession) Done() <-chan struct{} { return s.b.lost }
func (s fakeSession) Err() error            { return s.b.why }
func (s fakeSession) Close()                { s.b.open.Add(-1) }
func (s fakeSession) Perform(ctx context.Context, r *loadtest.Run) error {
	return loadsession.Refused(s.b.kind.Perform(ctx, s.Session, r))
}

// start runs the prober; its first run is due at once.
func (b *bench) start() {
	ctx, cancel := context.WithCancel(b.t.Context())
	b.stop = cancel
	go func() {
		defer close(b.stopped)
		if err := b.prober.Run(ctx); err != nil {
			b.t.Errorf("Run = %v", err)
		}
	}()
}

// end stops the prober and checks that all resources are released.
func (b *bench) end() {
	b.t.Helper()
	b.stop()
	select {
	case <-b.stopped:
	case <-time.After(time.Minute):
		b.t.Fatal("Run has not returned a minute after the end of its context")
	}
	if n := b.sink.Open(); n != 0 {
		b.t.Errorf("%d series are still open", n)
	}
	if n := b.open.Load(); n != 0 {
		b.t.Errorf("%d sessions are still open", n)
	}
	if holder, _, held := b.links.Holder("office"); held {
		b.t.Errorf("the link is still held by %s", holder)
	}
	if u := b.links.Usage("office"); u.Reserved != 0 {
		b.t.Errorf("%d bytes of the quota are still reserved", u.Reserved)
	}
}

// runs returns metric.Runs by result and reason, without zeros.
func (b *bench) runs() map[string]float64 {
	all := map[string]float64{}
	for labels, n := range b.sink.All(metric.Runs) {
		if n > 0 {
			all[labels[len("office,saturation,"):]] = n
		}
	}
	return all
}

func (b *bench) running() float64 {
	v, _ := b.sink.Value(metric.TestRunning, "office", "saturation", "office")
	return v
}
