package stamp

import (
	"sync"
	"testing"
	"time"

	"oneway.example/exporter/probe"
	"oneway.example/exporter/reflector"
)

// TestRepliesThatWaitToBeReadAreInTime: the goroutine that reads the replies stalls for three loss timeouts, as on a
// busy host. The kernel received them in time.
func TestRepliesThatWaitToBeReadAreInTime(t *testing.T) {
	b, kind := newTestbed(t, reflector.Options{}), New()
	p, err := kind.NewProber(b.env, probe.Target{Path: "p", Probe: "stamp", Peer: b.peer}, quick())
	if err != nil {
		t.Fatal(err)
	}
	var stall sync.Once
	r, err := p.Measure(t.Context(), 500, func(Report) {
		stall.Do(func() {
			for _, h := range kind.hubs {
				h.mu.Lock() // delivering a packet needs it, sending does not
				defer h.mu.Unlock()
			}
			time.Sleep(3 * quick().LossTimeout) // the stall, in which the last packets are sent
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.RoundTrip.Lost != 0 || r.RoundTrip.Received != 500 || *r.Forward.Lost+*r.Reverse.Lost != 0 {
		t.Errorf("got %d round trips, %d lost; %d lost forward, %d in reverse; want 500 and none lost",
			r.RoundTrip.Received, r.RoundTrip.Lost, *r.Forward.Lost, *r.Reverse.Lost)
	}
}
