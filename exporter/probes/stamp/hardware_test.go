package stamp

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"oneway.example/exporter/clock/phc"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/stamp/ledger"
	"oneway.example/exporter/reflector"
	"oneway.example/tests/await"
)

// slot is a place for cards; it counts those in use.
type slot struct {
	mu           sync.Mutex
	failures     int // how many more times opening fails
	opened, open int
	uncertainty  time.Duration // 0: unknown
}

var errSlotEmpty = errors.New("interface eth0 has no PTP clock")

func (s *slot) openCard(string, *slog.Logger) (card, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failures--; s.failures >= 0 {
		return nil, errSlotEmpty
	}
	s.opened++
	s.open++
	return s, nil
}

func (s *slot) System(instant.Time) (instant.Time, bool) { return 0, false }

func (s *slot) Uncertainty() (time.Duration, bool) { return s.uncertainty, s.uncertainty > 0 }

func (s *slot) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
}

func (s *slot) counts() (opened, open int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened, s.open
}

func TestProbersShareASocketOnlyWithTheSameCard(t *testing.T) {
	b := newTestbed(t, reflector.Options{})
	s := &slot{}
	kind := NewType()
	kind.openCard = s.openCard
	local := netip.MustParseAddrPort("127.0.0.1:0")
	plain, eth0, eth1 := hubKey{local: local}, hubKey{local: local, hardware: "eth0"}, hubKey{local: local, hardware: "eth1"}
	hubs := map[*hub]bool{}
	for _, key := range []hubKey{plain, plain, eth0, eth0, eth1} {
		h, err := kind.acquire(key, b.env)
		if err != nil {
			t.Fatal(err)
		}
		defer kind.release(h)
		if hubs[h] = true; (h.card != nil) != (key.hardware != "") {
			t.Errorf("%+v: card %v", key, h.card)
		}
	}
	if opened, open := s.counts(); len(hubs) != 3 || opened != 2 || open != 2 {
		t.Errorf("%d sockets, %d cards opened, %d open", len(hubs), opened, open)
	}
}

func TestCardIsClosedIfThereIsNoSocketForIt(t *testing.T) {
	s := &slot{}
	kind := NewType()
	kind.openCard = s.openCard
	elsewhere := hubKey{local: netip.MustParseAddrPort("192.0.2.1:0"), hardware: "eth0"} // TEST-NET-1: no address of this host
	_, err := kind.acquire(elsewhere, probe.Env{Log: slog.New(slog.DiscardHandler), Sink: metric.Discard{}})
	if opened, open := s.counts(); err == nil || opened != 1 || open != 0 {
		t.Errorf("%v; %d opened, %d open", err, opened, open)
	}
}

// An unavailable card is retried like a name that does not resolve.
func TestProberWaitsForItsCard(t *testing.T) {
	b := newTestbed(t, reflector.Options{})
	s := &slot{failures: 1}
	kind := NewType()
	kind.openCard = s.openCard
	o := quick()
	o.Hardware = "eth0"
	p, err := kind.NewProber(b.env, probe.Target{Path: "p", Probe: "stamp", Peer: b.peer}, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	shows := func(what string, done func(probe.Status) bool) {
		t.Helper()
		if !await.Within(await.Timeout, func() bool { return done(p.Status()) }) {
			t.Fatalf("%s: %+v", what, p.Status())
		}
	}
	shows("the reason in the status", func(s probe.Status) bool {
		return !s.Up && s.State == "waiting" && strings.Contains(s.Reason, errSlotEmpty.Error())
	})
	shows("a reply once there is a card", func(s probe.Status) bool { return s.Up })
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if opened, open := s.counts(); opened != 1 || open != 0 {
		t.Errorf("%d opened, %d open", opened, open)
	}
}

// A value of the previous address is not one of the next.
func TestPathWithoutASessionHasNoGauges(t *testing.T) {
	server, b := serveNames(t), newTestbed(t, reflector.Options{})
	server.known.Store(true)
	sink, s := &metrictest.Sink{}, &slot{}
	b.env.Sink = sink
	kind := NewType()
	kind.openCard = s.openCard
	o := quick()
	o.Hardware, o.ResolveInterval = "eth0", time.Second
	_, port, _ := net.SplitHostPort(b.peer)
	p, err := kind.NewProber(b.env, probe.Target{Path: "p", Probe: "stamp", Peer: net.JoinHostPort("peer.test", port)}, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	gauges := []*metric.Desc{metric.ProbeUp, metric.Jitter, metric.Hops, metric.TimestampErrorBound, metric.PathInfo}
	await.That(t, "gauges of the first address", func() bool {
		return !slices.ContainsFunc(gauges, func(d *metric.Desc) bool { return len(sink.All(d)) == 0 })
	})
	s.mu.Lock()
	s.failures = math.MaxInt // from now on there is no card
	s.mu.Unlock()
	server.host.Store(2)
	await.That(t, "the card is missing at the second address", func() bool {
		return p.session.Load() == nil && strings.Contains(p.Status().Reason, errSlotEmpty.Error())
	})
	await.That(t, "the path is down", func() bool {
		up, known := sink.Value(metric.ProbeUp, "p", "stamp")
		return known && up == 0
	})
	for _, d := range gauges[1:] {
		if all := sink.All(d); len(all) > 0 {
			t.Errorf("%s of a path without a session: %v", d.Name, all)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestTerminalIsToldWhatTheInterfaceLacks(t *testing.T) {
	b := newTestbed(t, reflector.Options{})
	o := quick()
	o.Hardware = "lo"
	p, err := NewType().NewProber(b.env, probe.Target{Path: "p", Probe: "stamp", Peer: b.peer}, o)
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Measure(t.Context(), 1, func(Report) {})
	if err == nil || !strings.Contains(err.Error(), `interface lo has no PTP clock`) || !strings.Contains(err.Error(), `leave "hardware" out`) {
		t.Error(err)
	}
}

func TestErrorOfACardsStampIsThatOfItsRelation(t *testing.T) {
	for name, c := range map[string]struct {
		card card
		want time.Duration
	}{
		"known":      {&slot{uncertainty: 3 * time.Microsecond}, 3 * time.Microsecond},
		"lost since": {&slot{}, phc.MaxUncertainty},
		"none":       {nil, phc.MaxUncertainty},
	} {
		if got := (&estimator{card: c.card}).conversion(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// The bound of a delay uses the local card's uncertainty for the local end's timestamp.
func TestBoundOfADelayKnowsWhichEndIsNear(t *testing.T) {
	c := newSessionFixture(t, 0, nil)
	c.estimator.card = &slot{uncertainty: 3 * time.Microsecond}
	card, kernel := sample.Stamp{At: 1, Origin: sample.Hardware}, sample.Stamp{At: 1, Origin: sample.Kernel}
	p := sample.Packet{Local: sample.Bound{Reason: sample.OK}, Remote: sample.Bound{Reason: sample.OK}}
	const local, remote, software = 4 * time.Microsecond, time.Microsecond + phc.MaxUncertainty, 25 * time.Microsecond
	for _, w := range []struct {
		t1, t2, t3, t4   sample.Stamp
		forward, reverse time.Duration
	}{
		{card, kernel, kernel, card, local + software, software + local},
		{kernel, card, card, kernel, software + remote, remote + software},
	} {
		p.T1, p.T2, p.T3, p.T4 = w.t1, w.t2, w.t3, w.t4
		c.estimator.conclude(&ledger.PendingReply{Clock: ledger.ThenOf(c.clock.Quality(0)), Packet: p})
		if forward, reverse := c.judged[0], c.judged[1]; forward.Bound != w.forward || reverse.Bound != w.reverse {
			t.Errorf("bounds %v and %v, want %v and %v", forward.Bound, reverse.Bound, w.forward, w.reverse)
		}
	}
}
