package ledger

import (
	"testing"
	"time"
)

// TestPauseOfThisHostIsNoSilenceOfThePeer: after a pause a path is up or down as it was before, until replies could be taken for
// a while.
func TestPauseOfThisHostIsNoSilenceOfThePeer(t *testing.T) {
	const pause = 20 * time.Second
	start := 100 * time.Second
	a := New(Options{Interval: time.Second, LossTimeout: time.Second}, start, func(Verdict) {}, nil)
	now := start
	run := func(seconds int) {
		for range seconds {
			now += TickInterval
			a.Tick(now, now)
		}
	}
	leap := func() { now += pause; a.Tick(now, now) }
	expect := func(what string, up, decided bool) {
		t.Helper()
		if u, d := a.Up(); u != up || d != decided {
			t.Errorf("%s: up %v, decided %v, want %v, %v", what, u, d, up, decided)
		}
	}
	leap()
	expect("a pause before the first reply", false, false)
	for _, heard := range []time.Duration{0, now - 4*time.Second} { // packets may wait to be read
		a.Tick(now, heard)
	}
	run(2)
	expect("soon after the pause", false, false)
	run(3)
	expect("without a first reply", false, true)
	a.lastReply, a.awaited = now, now
	expect("a reply", true, true)
	leap()
	leap()
	expect("after two pauses", true, true)
	run(2)
	expect("soon after them", true, true)
	run(3)
	expect("without replies", false, true)
	leap()
	expect("a pause while it is down", false, true)
	if silent, unheard := a.Silent(), a.Unheard(); silent < 3*pause || unheard > 10*time.Second {
		t.Errorf("silent for %v, of which %v count", silent, unheard)
	}
	a.Refuse(DiscardNoKey, now)
	if unheard := a.Unheard(); unheard != 0 {
		t.Errorf("unheard for %v after a packet of the peer", unheard)
	}
}
