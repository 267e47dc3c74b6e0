package stamp

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/clocks/none"
	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/keyfile"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/sched"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/reflector"
)

// testbed is a reflector and a prober's environment, on loopback.
type testbed struct {
	env  probe.Env
	peer string
}

func newTestbed(t *testing.T, o reflector.Options) testbed {
	t.Helper()
	if len(o.Listen) == 0 {
		o.Listen = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}
	}
	env, peer, stop := openTestbed(t, o)
	t.Cleanup(stop)
	return testbed{env: env, peer: peer}
}

func openTestbed(t testing.TB, o reflector.Options) (env probe.Env, peer string, stop func()) {
	t.Helper()
	monitor := static.New(50*time.Microsecond, metric.Discard{})
	log := slog.New(slog.DiscardHandler)
	r, err := reflector.New(o, reflector.Env{Log: log, Sink: metric.Discard{}, Clock: monitor})
	if err != nil {
		t.Fatal(err)
	}
	pacer, err := sched.NewPacer()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 3)
	go func() { done <- monitor.Run(ctx) }()
	go func() { done <- r.Run(ctx) }()
	go func() { done <- pacer.Run(ctx) }()
	<-r.Started()
	return probe.Env{Log: log, Sink: metric.Discard{}, Clock: monitor, Pacer: pacer}, r.Addrs()[0].String(), func() {
		cancel()
		for range 3 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
}

func (b testbed) measure(t *testing.T, o Options, count uint64) Report {
	t.Helper()
	p, err := NewType().NewProber(b.env, probe.Target{Path: "p", Probe: "stamp", Peer: b.peer}, o)
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Measure(t.Context(), count, func(Report) {})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func quick() Options {
	o := DefaultOptions()
	o.Interval, o.LossTimeout = 2*time.Millisecond, 500*time.Millisecond
	return o
}

func TestMeasuresBothDirectionsExactlyWithOurReflector(t *testing.T) {
	r := newTestbed(t, reflector.Options{}).measure(t, quick(), 200)
	checkClean(t, r, 200)
}

// quickWithKey is quick in authenticated mode, and the secret.
func quickWithKey(t *testing.T) (o Options, secret []byte) {
	t.Helper()
	o = quick()
	o.KeyFile = filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(o.KeyFile, []byte("a shared secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	secrets, err := keyfile.Load(o.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	return o, secrets[0]
}

func TestMeasuresInAuthenticatedMode(t *testing.T) {
	o, secret := quickWithKey(t)
	b := newTestbed(t, reflector.Options{Keys: []*stampfmt.Key{stampfmt.NewKey(secret)}, RequireKey: true})
	checkClean(t, b.measure(t, o, 200), 200)
}

func TestMeasuresWithPTPStampsAndEverySizeThatFits(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, reflector.Options{})
	for _, size := range []int{44, 48, 64, 68, 120, 124, 128, 140, 143, 172, 173, 176, 500, 1472} {
		o := quick()
		o.Size, o.TimestampFormat = size, "ptp"
		r := b.measure(t, o, 20)
		if *r.Forward.Sent != 20 || r.RoundTrip.Received != 20 {
			t.Errorf("size %d: %v", size, asJSON(t, r))
		}
		if r.Forward.Lost == nil || *r.Forward.Lost != 0 || *r.Forward.Received != 20 {
			t.Errorf("size %d: forward %v", size, asJSON(t, r.Forward))
		}
	}
}

func checkClean(t *testing.T, r Report, n uint64) {
	t.Helper()
	for name, d := range map[string]DirectionReport{"forward": r.Forward, "reverse": r.Reverse} {
		if d.Lost == nil || d.Delay == nil {
			t.Fatalf("%s is incomplete: %s", name, asJSON(t, r))
		}
		if *d.Sent != n || *d.Received != n || *d.Lost != 0 || *d.Outstanding != 0 || *d.Corrupted != 0 || *d.Duplicated != 0 {
			t.Errorf("%s: %s", name, asJSON(t, d))
		}
		if d.Negative != 0 || *d.Delay.Min < 0 || *d.Delay.P50 > 0.01 {
			t.Errorf("%s delay: %s", name, asJSON(t, d.Delay))
		}
	}
	for event, want := range map[string]string{"t1": "kernel", "t2": "kernel", "t3": "follow_up", "t4": "kernel"} {
		if got := r.Stamps[event][want]; got*1000 < n*999 {
			t.Errorf("%s: %v, want 99.9 %% of %d from %s", event, r.Stamps[event], n, want)
		}
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// anyHub returns a hub of the type.
func (t *Type) anyHub() *hub {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range t.hubs {
		return h
	}
	return nil
}

func TestOneKernelNeedsNoDisciplinedClock(t *testing.T) {
	b := newTestbed(t, reflector.Options{})
	silent := silentClock{}
	b.env.Clock = silent
	r := b.measure(t, quick(), 50)
	if !r.SharedClock || r.Forward.Delay == nil || r.Reverse.Delay == nil || *r.Forward.Delay.ErrorBound > 0.01 {
		t.Errorf("%s", asJSON(t, r))
	}
	b.env.Clock = none.New(metric.Discard{})
	if r = b.measure(t, quick(), 50); r.SharedClock || r.Forward.Delay != nil || r.Forward.Invalid["no_clock"] != 50 {
		t.Errorf("delays despite a configuration without a clock: %s", asJSON(t, r))
	}
}

// silentClock is a daemon that has never replied.
type silentClock struct{}

func (silentClock) Quality(instant.Time) clock.Quality {
	return clock.Quality{Bound: sample.Bound{Reason: sample.ClockSilent}}
}

func (silentClock) Run(context.Context) error { return nil }
