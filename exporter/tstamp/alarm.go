package tstamp

import (
	"sync"
	"time"
)

// alarm wakes a Receive that waits, at a set time, by the file's read deadline.
type alarm struct {
	mu   sync.Mutex
	file interface{ SetReadDeadline(time.Time) error }
	set  bool
}

// armIfIdle sets it for when the stamps of packets sent now are overdue,
// unless it is set already. So a steady sender costs one wake-up every wait,
// and an idle one none.
func (a *alarm) armIfIdle(wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.set {
		a.set = a.file.SetReadDeadline(time.Now().Add(wait)) == nil
	}
}

// ring wakes Receive now.
func (a *alarm) ring() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.set = a.file.SetReadDeadline(time.Unix(1, 0)) == nil
}

// stop ends a ringing alarm. What it rang for must be looked after afterwards.
func (a *alarm) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.set = false
	_ = a.file.SetReadDeadline(time.Time{}) // fails only after Close
}
