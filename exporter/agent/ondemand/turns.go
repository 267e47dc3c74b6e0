package ondemand

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"oneway.example/exporter/core/ctxtime"
)

// maxWaiting is the number of requests that may wait for their turn, by measurement that may run; one client has half.
const maxWaiting = 8

// ofClient is the number of measurements of one client: one is left for the others, if there are two.
func ofClient(most int) int { return max(most-1, 1) }

// turns limits the measurements at the same time, and how often a target is measured. The zero value is ready.
type turns struct {
	mu      sync.Mutex
	running int
	clients map[netip.Addr]int // running measurements of each
	waiting []waiter           // in the order of arrival
	next    map[netip.Addr]*spacing
}

// waiter is a request that waits; turn is closed when it may run.
type waiter struct {
	turn   chan struct{}
	client netip.Addr
}

// enter waits until fewer than most run, and fewer than ofClient of this client, and reports whether that was before ctx ended.
// The caller then calls leave. A client without an address has no limit of its own.
func (t *turns) enter(ctx context.Context, client netip.Addr, most int) bool {
	t.mu.Lock()
	if t.begin(client, most) {
		t.mu.Unlock()
		return true
	}
	own := 0
	for _, w := range t.waiting {
		if w.client == client && client.IsValid() {
			own++
		}
	}
	if len(t.waiting) >= maxWaiting*most || own >= maxWaiting*most/2 {
		t.mu.Unlock()
		return false
	}
	turn := make(chan struct{})
	t.waiting = append(t.waiting, waiter{turn, client})
	t.mu.Unlock()
	select {
	case <-turn:
		return true
	case <-ctx.Done():
	}
	t.mu.Lock()
	i := slices.IndexFunc(t.waiting, func(w waiter) bool { return w.turn == turn })
	if i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	}
	t.mu.Unlock()
	if i < 0 {
		t.leave(client, most) // its turn came at the same time
	}
	return false
}

// begin takes a turn if there is one, with mu held.
func (t *turns) begin(client netip.Addr, most int) bool {
	if t.running >= most || client.IsValid() && t.clients[client] >= ofClient(most) {
		return false
	}
	if t.clients == nil {
		t.clients = map[netip.Addr]int{}
	}
	t.running++
	t.clients[client]++
	return true
}

// leave ends a measurement; most may have changed since it began.
func (t *turns) leave(client netip.Addr, most int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running--
	if t.clients[client]--; t.clients[client] == 0 {
		delete(t.clients, client)
	}
	t.waiting = slices.DeleteFunc(t.waiting, func(w waiter) bool {
		ready := t.begin(w.client, most)
		if ready {
			close(w.turn)
		}
		return ready
	})
}

// spacing is when a target may be measured again, and how many requests wait for it.
type spacing struct {
	free    time.Time
	waiting int
}

// pause waits until pause has passed since the last begin of a measurement of this address. If that is after latest, or ctx
// ends, it returns how much longer the caller would have to wait. Only a measurement that begins keeps the target from the
// next one: of requests that wait, clients may go.
func (t *turns) pause(ctx context.Context, a netip.Addr, pause time.Duration, latest time.Time) (longer time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(t.next, func(_ netip.Addr, s *spacing) bool { return s.waiting == 0 && !s.free.After(now) })
	s := t.next[a]
	if s == nil {
		s = &spacing{free: now}
		if t.next == nil {
			t.next = map[netip.Addr]*spacing{}
		}
		t.next[a] = s
	}
	if begin := s.free.Add(time.Duration(s.waiting) * pause); begin.After(now) && begin.After(latest) {
		return begin.Sub(latest)
	}
	s.waiting++
	defer func() { s.waiting-- }()
	for wait := time.Until(s.free); wait > 0; wait = time.Until(s.free) {
		if s.free.After(latest) { // another request was first
			return s.free.Sub(latest)
		}
		t.mu.Unlock()
		passed := ctxtime.Sleep(ctx, wait) // the pause between measurements of a target
		t.mu.Lock()
		if !passed {
			return pause
		}
	}
	s.free = time.Now().Add(pause)
	return 0
}
