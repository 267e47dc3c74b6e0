package stream

import (
	"testing"
	"time"

	"oneway.example/exporter/net/sched"
)

// The number of packets sent arrives over another connection, after the last packet and the end of the plan.
func TestReceptionWaitsForTheNumberOfPacketsSent(t *testing.T) {
	r, err := newEnds(t).there.Expect(1, Plan{Segments: []Segment{{PayloadBytes: 100, Interval: time.Millisecond, Burst: 1, Bursts: 10}}})
	if err != nil {
		t.Fatal(err)
	}
	r.last = sched.Now() + time.Second // the last packet arrived after the end of the plan
	if left, done := r.remaining(0, time.Second, 2*time.Second); done || left < 3900*time.Millisecond || left > 4*time.Second {
		t.Errorf("unreported: %v left, done %v, want 4s", left, done)
	}
	r.SetSent(10)
	if left, done := r.remaining(0, time.Second, 2*time.Second); done || left < 1900*time.Millisecond || left > 2*time.Second {
		t.Errorf("reported: %v left, done %v, want 2s", left, done)
	}
	r.Finish(t.Context(), 0, 0)
}
