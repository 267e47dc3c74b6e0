package matrix

import (
	"testing"
	"time"

	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/stream"
)

// cellOf is 100 packets; the delay of packet i is i ms, if it arrives.
func cellOf(arrive func(i int) bool) (all []packet) {
	for i := range 100 {
		p := packet{sent: instant.Time(int64(time.Second) + int64(i)*int64(10*time.Millisecond))}
		if arrive(i) {
			d := time.Duration(i) * time.Millisecond
			p.arrived, p.delay = p.sent.Add(d), sample.Delay{Value: d, Bound: time.Microsecond, Reason: sample.OK}
		}
		all = append(all, p)
	}
	return all
}

// RFC 7679 section 5.2: undefined values are infinitely large in the median.
func TestMedianOfACellCountsLossesAsInfinite(t *testing.T) {
	seg := stream.Segment{PayloadBytes: 100, Interval: 10 * time.Millisecond, Burst: 1, Bursts: 100}
	m := evaluate(cellOf(func(i int) bool { return i >= 40 }), 128, seg, 0) // 40 % lost
	if m.Delay == nil || *m.Delay < 0.088 {
		t.Errorf("40 of 100 lost, delays 40..99 ms: got median %.3f +- %.6f s; true (RFC 7679 5.2) 0.089", *m.Delay, *m.Bound)
	}
	m = evaluate(cellOf(func(i int) bool { return i < 10 }), 128, seg, 0) // 90 % lost
	if m.Delay != nil {
		t.Errorf("90 of 100 lost: got median %.3f +- %.6f s; true: infinite, absent", *m.Delay, *m.Bound)
	}
}

// 50 of 100 were dropped by the receiving host: they arrived. Of the other 50 the path lost 25.
func TestLossOfACellBesideHostDrops(t *testing.T) {
	seg := stream.Segment{PayloadBytes: 100, Interval: 10 * time.Millisecond, Burst: 1, Bursts: 100}
	m := evaluate(cellOf(func(i int) bool { return i%4 == 0 }), 128, seg, 50)
	if *m.Loss != 0.5 {
		t.Errorf("loss %.3f, want 25 of 50", *m.Loss)
	}
}
