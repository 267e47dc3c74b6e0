package reflector

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
)

// fakeCard counts open cards.
type fakeCard struct{ open atomic.Int32 }

func (f *fakeCard) start(name string, _ *slog.Logger) (card, error) {
	if name != "eth0" {
		return nil, errors.New("phc: unknown card")
	}
	f.open.Add(1)
	return f, nil
}

func (f *fakeCard) System(instant.Time) (instant.Time, bool) { return 0, false }

func (f *fakeCard) Close() { f.open.Add(-1) }

// withCard makes a reflector with a card. It does not run yet.
func withCard(t *testing.T, f *fakeCard, listen ...string) *Reflector {
	t.Helper()
	o := Options{Hardware: "eth0"}
	for _, l := range listen {
		o.Listen = append(o.Listen, netip.MustParseAddrPort(l))
	}
	r, err := New(o, Env{Sink: metric.Discard{}, Clock: goodClock()})
	if err != nil {
		t.Fatal(err)
	}
	r.openCard = f.start
	return r
}

func TestCardIsOpenWhileTheReflectorRuns(t *testing.T) {
	var f fakeCard
	r := withCard(t, &f, "127.0.0.1:0", "[::1]:0")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	select {
	case <-r.Started():
	case err := <-ended:
		t.Fatal(err)
	}
	if n := f.open.Load(); n != 1 {
		t.Errorf("%d cards are open", n)
	}
	k := newLab(t, nil).poller("192.0.2.1:1", 5)
	k.exchange(dial(t, r.Addrs()[0]), k.request(0, nil))
	cancel()
	if err := <-ended; err != nil || f.open.Load() != 0 {
		t.Errorf("Run: %v; %d cards are open after it, want 0", err, f.open.Load())
	}
}

func TestCardIsClosedIfNoSocketCanBeOpened(t *testing.T) {
	var f fakeCard
	r := withCard(t, &f, "192.0.2.1:0", "198.51.100.1:0") // no addresses of this host
	if err := r.Run(t.Context()); err == nil || f.open.Load() != 0 {
		t.Errorf("Run: %v; %d cards are open after it, want 0", err, f.open.Load())
	}
}

func TestInterfaceWithoutACardIsExplained(t *testing.T) {
	r, err := New(Options{Hardware: "lo", Listen: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}},
		Env{Sink: metric.Discard{}, Clock: goodClock()})
	if err != nil {
		t.Fatalf("New opened the card: %v", err)
	}
	err = r.Run(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "reflector: ") || !strings.Contains(err.Error(), "interface lo has no PTP clock") {
		t.Error(err)
	}
}
