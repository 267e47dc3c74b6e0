package lab

import (
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/tests/bottleneck"
)

// TestRecordedLinkLetsThroughWhatItsTraceHas sends over a trace, on real sockets, and looks at the log:
// what found room was let in and nothing else, and what left had an opportunity.
func TestRecordedLinkLetsThroughWhatItsTraceHas(t *testing.T) {
	const queue, size = 30_000, 1000
	trace := bottleneck.Cellular(3, 2e6, 10*time.Second)
	link := Link{Trace: trace, Delay: 20 * time.Millisecond, Queue: queue}
	l := Start(t, Options{Profile: Profile{Name: "trace", Forward: link}, Classifier: keyed})
	s := newStation(t, l.Client, l.Server, false)
	s.stream(2000, size-28, 2*time.Millisecond) // 4 Mb/s
	arrivals := s.finish(l)
	log := l.Log(sample.Forward)
	left, refused := 0, 0
	opportunities := map[time.Duration]int{}
	for _, ms := range trace {
		opportunities[time.Duration(ms)*time.Millisecond] += bottleneck.Opportunity
	}
	first := log[0].Entry
	for _, r := range log {
		if space := r.Queued+r.Size <= queue; space != (r.Outcome == Delivered) {
			t.Fatalf("%d bytes waited when packet %d came: %v", r.Queued, r.Key, r.Outcome)
		}
		if r.Outcome != Delivered {
			refused++
			continue
		}
		left++
		at := r.Departure.Sub(first)
		if r.Due != r.Departure.Add(link.Delay) {
			t.Errorf("packet %d left the queue at %v and was due %v later", r.Key, at, r.Due.Sub(r.Departure))
		}
		// A packet may have begun in an opportunity before.
		if opportunities[at] -= r.Size; opportunities[at] < -bottleneck.Opportunity {
			t.Fatalf("packet %d left after %v: no such opportunity", r.Key, at)
		}
	}
	t.Logf("%d left, %d refused", left, refused)
	if refused == 0 || left != len(arrivals) {
		t.Errorf("%d left, %d arrived, %d refused; want all that left to arrive, and some refused", left, len(arrivals), refused)
	}
}

// TestPacketsThatTheQueueDropsLaterAreInTheLog: CoDel decides when a packet is about to leave.
func TestPacketsThatTheQueueDropsLaterAreInTheLog(t *testing.T) {
	link := Link{Rate: 2_000_000, Delay: 20 * time.Millisecond, Discipline: bottleneck.CoDel, QueuePackets: 1000, Others: 200_000}
	l := Start(t, Options{Profile: Profile{Name: "codel", Forward: link}, Classifier: keyed})
	s := newStation(t, l.Client, l.Server, false)
	s.stream(800, 1200, 2*time.Millisecond) // 4.9 Mb/s
	arrivals := s.finish(l)
	c, _ := l.Counts(sample.Forward)
	if c.Inside() != 0 || c.DroppedQueue == 0 || c.Delivered != uint64(len(arrivals)) || c.Entered != 800 {
		t.Errorf("counts %+v, %d arrived", c, len(arrivals))
	}
}
