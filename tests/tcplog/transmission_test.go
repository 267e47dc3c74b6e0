package tcplog

import (
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
)

// The second of three segments is lost, and what is sent again begins in its middle; the third one leaves late.
func TestByteHasItsSegmentsAndItsFirstArrival(t *testing.T) {
	var l logs
	l.send(t, 0, 0, 20*ms)
	l.send(t, 1000, 1*ms, 0)
	l.send(t, 2000, 2*ms, 90*ms)
	l.send(t, 1500, 60*ms, 80*ms)
	c := Connection{data: l.data}
	at := func(d time.Duration) instant.Time { return instant.Time(1).Add(d) }
	got := c.Bytes([]int64{1000, 1001, 1501, 2000, 2001, 2500, 2501, 3000, 3001})
	for i, want := range []struct {
		entries []time.Duration
		arrival time.Duration // 0: none
	}{
		{[]time.Duration{0}, 20 * ms},
		{[]time.Duration{ms}, 0},
		{[]time.Duration{ms, 60 * ms}, 80 * ms},
		{[]time.Duration{ms, 60 * ms}, 80 * ms},
		{[]time.Duration{2 * ms, 60 * ms}, 80 * ms},
		{[]time.Duration{2 * ms, 60 * ms}, 80 * ms},
		{[]time.Duration{2 * ms}, 90 * ms},
		{[]time.Duration{2 * ms}, 90 * ms},
		{nil, 0},
	} {
		b := got[i]
		if len(b.Entries) != len(want.entries) || b.Lost != (want.arrival == 0) || !b.Lost && b.Arrival.After != at(want.arrival) {
			t.Errorf("byte %d: %+v, want %+v", i, b, want)
			continue
		}
		for j, e := range want.entries {
			if b.Entries[j] != at(e) {
				t.Errorf("byte %d: entries %v, want %v", i, b.Entries, want.entries)
			}
		}
	}
}
