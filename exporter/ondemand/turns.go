package ondemand

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"oneway.example/exporter/ctxtime"
)

// maxWaiting is the number of requests that may wait for their turn, by measurement that may run.
const maxWaiting = 8

// turns limits the measurements at the same time, and how often a target is measured. The zero value is ready.
type turns struct {
	mu      sync.Mutex
	running int
	waiting []chan struct{} // closed when it is their turn; the first one is the next
	// next is the earliest begin of the next measurement of a target.
	next map[netip.Addr]time.Time
}

// enter waits until fewer than most run, and reports whether that was before ctx ended. The caller then calls leave.
func (t *turns) enter(ctx context.Context, most int) bool {
	t.mu.Lock()
	if t.running < most {
		t.running++
		t.mu.Unlock()
		return true
	}
	if len(t.waiting) >= maxWaiting*most {
		t.mu.Unlock()
		return false
	}
	turn := make(chan struct{})
	t.waiting = append(t.waiting, turn)
	t.mu.Unlock()
	select {
	case <-turn:
		return true
	case <-ctx.Done():
	}
	t.mu.Lock()
	i := slices.Index(t.waiting, turn)
	if i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	}
	t.mu.Unlock()
	if i < 0 {
		t.leave(most) // its turn came at the same time
	}
	return false
}

// leave ends a measurement; most may have changed since it began.
func (t *turns) leave(most int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running--
	for t.running < most && len(t.waiting) > 0 {
		close(t.waiting[0])
		t.waiting = t.waiting[1:]
		t.running++
	}
}

// pause waits until pause has passed since the last begin of a measurement of this address. If that is after latest, it
// returns how much longer the caller would have to wait.
func (t *turns) pause(ctx context.Context, a netip.Addr, pause time.Duration, latest time.Time) (longer time.Duration) {
	now := time.Now()
	t.mu.Lock()
	for one, at := range t.next {
		if !at.After(now) {
			delete(t.next, one)
		}
	}
	begin := now
	if at, recent := t.next[a]; recent {
		begin = at
	}
	if begin.After(now) && begin.After(latest) {
		t.mu.Unlock()
		return begin.Sub(latest)
	}
	if t.next == nil {
		t.next = map[netip.Addr]time.Time{}
	}
	t.next[a] = begin.Add(pause)
	t.mu.Unlock()
	if wait := begin.Sub(now); wait > 0 {
		ctxtime.Sleep(ctx, wait)
	}
	return 0
}
