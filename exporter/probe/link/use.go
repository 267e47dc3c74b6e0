package link

import (
	"net/netip"
	"sync"
	"time"
)

// Use is what a load test fills, as far as its holder knows.
type Use struct {
	// Link is the link that the test holds.
	Link string
	// Path is the configured path of the test; empty: unknown.
	Path string
	// Peer is the address of the remote end, of a test that it has requested; the zero Addr: unknown.
	Peer netip.Addr
}

// use is the state of a Use; tests on two links may be equal otherwise.
type use struct {
	running int
	ended   time.Time // of the last one
}

// usesKept is how long a use is known after its end: longer than the interval at which a reader of Uses reads, so that it
// finds the shortest test.
const usesKept = 10 * time.Second

// Fill records that a test fills a link until end is called. A test that holds its link (Acquire) but does not send yet does not
// fill it. end may be called repeatedly.
func (t *Table) Fill(u Use) (end func()) {
	u.Peer = u.Peer.Unmap().WithZone("")
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget(time.Now())
	one := t.uses[u]
	if one == nil {
		one = &use{}
		t.uses[u] = one
	}
	one.running++
	return sync.OnceFunc(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		one.running--
		one.ended = time.Now()
	})
}

// Uses returns the uses of the last seconds, and when each was last seen: now, while the test runs.
func (t *Table) Uses() map[Use]time.Time {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget(now)
	if len(t.uses) == 0 {
		return nil
	}
	all := make(map[Use]time.Time, len(t.uses))
	for u, one := range t.uses {
		if all[u] = one.ended; one.running > 0 {
			all[u] = now
		}
	}
	return all
}

// forget deletes uses that ended long ago; mu must be held.
func (t *Table) forget(now time.Time) {
	for u, one := range t.uses {
		if one.running == 0 && now.Sub(one.ended) > usesKept {
			delete(t.uses, u)
		}
	}
}
