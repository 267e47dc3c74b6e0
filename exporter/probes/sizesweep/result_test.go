package sizesweep

import (
	"math"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/stream"
	"oneway.example/tests/precision"
)

// begin is an arbitrary time.
const begin = instant.Time(1_700_000_000_000_000_000)

// link is a droptail queue before a transmitter.
type link struct {
	rate  float64 // IP bytes a second; 0: no limit
	queue int     // bytes
	delay time.Duration
	// clock is the offset of the receiver's clock.
	clock time.Duration

	free instant.Time
}

// carry sends segment's packets of ipBytes over the link.
func (l *link) carry(ipBytes int, s stream.Segment) (packets []packet) {
	for i := range s.Packets() {
		p := packet{sent: begin.Add(time.Duration(i/s.Burst) * s.Interval)}
		if l.pass(&p, ipBytes) {
			p.delay = sample.Delay{Value: p.arrived.Sub(p.sent), Bound: time.Millisecond, Reason: sample.OK}
		}
		packets = append(packets, p)
	}
	return packets
}

func (l *link) pass(p *packet, ipBytes int) bool {
	leaves := p.sent
	if l.rate > 0 {
		backlog := max(0, l.free.Sub(p.sent)).Seconds() * l.rate
		if int(backlog) > l.queue {
			return false
		}
		l.free = max(l.free, p.sent).Add(time.Duration(float64(ipBytes) / l.rate * 1e9))
		leaves = l.free
	}
	p.arrived = leaves.Add(l.delay + l.clock)
	return true
}

func segmentOf(rate int, d time.Duration) stream.Segment {
	return Cell{PacketRate: rate, PacketBytes: 1000}.segment(d, 28)
}

func near(t precision.TB, what string, got, want, share float64) {
	t.Helper()
	if math.Abs(got-want) > share*math.Abs(want) {
		t.Errorf("%s is %.6g, want %.6g", what, got, want)
	}
}

func TestUnloadedCellReceivesAllPackets(t *testing.T) {
	l := link{delay: 20 * time.Millisecond}
	s := segmentOf(100, 2*time.Second)
	m := evaluate(l.carry(1000, s), 1000, s, 0)
	near(t, "sent", *m.Sent, 100_000, 1e-9)
	near(t, "received", *m.Received, 100_000, 1e-9)
	near(t, "delay", *m.Delay, 0.020, 1e-9)
	near(t, "bound", *m.Bound, 0.001, 1e-9)
	if *m.IPDV != 0 || *m.Loss != 0 || *m.Underrun != 0 {
		t.Errorf("IPDV %v, loss %v, underrun %v of an idle link", *m.IPDV, *m.Loss, *m.Underrun)
	}
}

func TestSaturatedCellReceivesTheLinksRate(t *testing.T) {
	for _, rate := range []float64{64_250, 312_500, 1_250_000} { // evdo and wibro
		l := link{rate: rate, queue: 64_000, delay: 30 * time.Millisecond}
		s := segmentOf(10_000, 2*time.Second)
		m := evaluate(l.carry(1000, s), 1000, s, 0)
		near(t, "sent", *m.Sent, 10_000_000, 1e-9)
		near(t, "received", *m.Received, rate, 0.005)
		near(t, "loss", *m.Loss, 1-float64(m.ReceivedPackets)/20_000, 1e-9)
	}
}

// A packet that arrives 2 s after the others was not received within a cell of 10 s.
func TestStragglerDoesNotReduceTheRate(t *testing.T) {
	for _, rate := range []float64{0, 312_500} {
		l := link{rate: rate, queue: 110_000, delay: 30 * time.Millisecond}
		s := segmentOf(1000, 10*time.Second)
		packets := l.carry(1000, s)
		want := *evaluate(packets, 1000, s, 0).Received
		for i := len(packets) - 1; i >= 0; i-- {
			if packets[i].arrived != 0 {
				packets[i].arrived = packets[i].arrived.Add(2 * time.Second)
				break
			}
		}
		near(t, "received", *evaluate(packets, 1000, s, 0).Received, want, 0.002)
	}
}

// A cell that lost most packets has no delay: the rest does not represent the path.
func TestDelaysAreAbsentIfMostPacketsAreLost(t *testing.T) {
	for _, c := range []struct {
		lost int // of ten
		told bool
	}{{3, true}, {7, false}} {
		l := link{delay: 20 * time.Millisecond}
		s := segmentOf(100, 10*time.Second)
		packets := l.carry(1000, s)
		for i := range packets {
			if i%10 < c.lost {
				packets[i].arrived = 0
			}
		}
		m := evaluate(packets, 1000, s, 0)
		if (m.Delay != nil) != c.told || (m.Bound != nil) != c.told || (m.IPDV != nil) != c.told {
			t.Errorf("%d of ten lost: delay %v, IPDV %v", c.lost, m.Delay, m.IPDV)
		}
	}
}

func TestRemoteClocksOffsetChangesNeitherRateNorIPDV(t *testing.T) {
	s := segmentOf(1000, time.Second)
	right := link{rate: 812_500, queue: 110_000}
	wrong := link{rate: 812_500, queue: 110_000, clock: -5 * time.Second}
	a, b := evaluate(right.carry(1000, s), 1000, s, 0), evaluate(wrong.carry(1000, s), 1000, s, 0)
	near(t, "received", *b.Received, *a.Received, 1e-9)
	near(t, "IPDV", *b.IPDV, *a.IPDV, 1e-9)
}

// Delays of 0, 10, 0 and 30 ms differ by 10, 10 and 30 ms: 50/3 ms in the mean. Their standard deviation, another
// definition of jitter, is 12.2 ms. The neighbors of a lost packet have no IPDV with it.
func TestIPDVIsTheMeanAbsoluteDifferenceOfNeighbors(t *testing.T) {
	var packets []packet
	for i, ms := range []int{0, 10, 0, 30, -1, 1000} {
		p := packet{sent: begin.Add(time.Duration(i) * 10 * time.Millisecond)}
		if ms >= 0 {
			p.arrived = p.sent.Add(time.Duration(ms) * time.Millisecond)
		}
		packets = append(packets, p)
	}
	near(t, "IPDV", *meanAbsoluteIPDV(packets), 0.050/3, 1e-9)
}

func TestSendersUnderrunIsNoLoss(t *testing.T) {
	l := link{}
	s := segmentOf(100, time.Second)
	packets := l.carry(1000, s)
	for i := range 20 {
		packets[3*i] = packet{} // refused by the sender's kernel
	}
	m := evaluate(packets[:90], 1000, s, 0) // the last ten were not sent
	if *m.Loss != 0 || m.OmittedPackets != 30 {
		t.Errorf("loss %v, %d omitted, want none and 30", *m.Loss, m.OmittedPackets)
	}
	near(t, "underrun", *m.Underrun, 0.3, 1e-9)
	near(t, "sent", *m.Sent, 70_000, 1e-9)
	near(t, "received", *m.Received, 70_000, 1e-9)
}

func TestSlowSenderHasAnUnderrun(t *testing.T) {
	s := segmentOf(100, time.Second)
	l := link{}
	packets := l.carry(1000, stream.Segment{PayloadBytes: 972, Interval: 20 * time.Millisecond, Burst: 1, Bursts: 100})
	m := evaluate(packets, 1000, s, 0)
	if m.LatePackets != 49 {
		t.Errorf("%d late packets, want 49", m.LatePackets)
	}
	near(t, "sent", *m.Sent, 50_000, 0.01)
}

func TestReceiversDropsAreNoLoss(t *testing.T) {
	l := link{}
	s := segmentOf(100, time.Second)
	packets := l.carry(1000, s)
	for i := range 10 {
		packets[10*i].arrived = 0
	}
	m := evaluate(packets, 1000, s, 4)
	near(t, "loss", *m.Loss, 6.0/96, 1e-9)
	// The socket's drops may be of other packets: at most as many count as are missing.
	if m = evaluate(packets, 1000, s, 400); *m.Loss != 0 || m.DroppedPackets != 10 {
		t.Errorf("loss %v, %d dropped, want 0 and 10", *m.Loss, m.DroppedPackets)
	}
}

func TestLossAtTheEndsIsNoHigherRate(t *testing.T) {
	l := link{}
	s := segmentOf(100, time.Second)
	packets := l.carry(1000, s)
	for i := range packets {
		if i < 40 || i >= 60 {
			packets[i].arrived = 0
		}
	}
	m := evaluate(packets, 1000, s, 0)
	near(t, "received", *m.Received, 20_000, 1e-9)
}

func TestUnknownValuesAreAbsent(t *testing.T) {
	s := segmentOf(100, 100*time.Millisecond)
	if m := evaluate(nil, 1000, s, 0); m.Loss != nil || m.Delay != nil || m.IPDV != nil || *m.Underrun != 1 {
		t.Errorf("cell without packets: %+v", m)
	}
	l := link{}
	packets := l.carry(1000, s)
	for i := range packets {
		packets[i].delay.Reason = sample.LocalUnsynchronized
	}
	m := evaluate(packets, 1000, s, 0)
	if m.Delay != nil || m.Bound != nil || m.IPDV == nil {
		t.Errorf("delay %v, bound %v, IPDV %v with untrusted clocks, want an IPDV only", m.Delay, m.Bound, m.IPDV)
	}
	for i := range packets {
		packets[i].delay.Reason = sample.RemoteStepped
	}
	if m = evaluate(packets, 1000, s, 0); m.IPDV != nil {
		t.Errorf("IPDV %v over a step of a clock", *m.IPDV)
	}
	for i := range packets {
		packets[i].arrived = 0
	}
	if m = evaluate(packets, 1000, s, 0); *m.Loss != 1 || *m.Received != 0 || m.Delay != nil {
		t.Errorf("cell that lost all: %+v", m)
	}
}

func TestMediansBoundHoldsWhereBoundsDiffer(t *testing.T) {
	packets := []packet{}
	for i := range 9 {
		packets = append(packets, packet{
			sent: begin, arrived: begin.Add(1),
			delay: sample.Delay{Value: time.Duration(i) * time.Millisecond, Reason: sample.OK, Bound: 100 * time.Microsecond},
		})
	}
	packets[8].delay.Bound = time.Second // one packet with a large bound moves the median little
	value, bound := median(packets, 0)
	near(t, "median", *value, 0.004, 1e-9)
	if *bound < 100e-6 || *bound > 1200e-6 {
		t.Errorf("bound %v s, want at most about 1 ms", *bound)
	}
}

func TestDelayBelowItsBoundIsReportedWithItsBound(t *testing.T) {
	l := link{delay: 20 * time.Microsecond} // the bound is 1 ms
	s := segmentOf(100, 100*time.Millisecond)
	m := evaluate(l.carry(1000, s), 1000, s, 0)
	if m.Delay == nil || m.Bound == nil || m.IPDV == nil {
		t.Fatalf("delay %v, bound %v, IPDV %v, want all three", m.Delay, m.Bound, m.IPDV)
	}
	near(t, "delay", *m.Delay, 20e-6, 1e-9)
	near(t, "bound", *m.Bound, 1e-3, 1e-9)
}

func TestRepetitionsAreJoinedByTheirMedian(t *testing.T) {
	f := summarize([]Repetition{
		{CellValues: CellValues{Sent: new(10.0), Received: new(9.0), Loss: new(0.1), Delay: new(1.0), Bound: new(0.1), IPDV: new(3.0)}},
		{CellValues: CellValues{Sent: new(11.0), Received: new(5.0), Loss: new(0.5), Underrun: new(0.2)}},
		{CellValues: CellValues{Sent: new(12.0), Received: new(8.0), Loss: new(0.2), Delay: new(3.0), Bound: new(0.3), IPDV: new(5.0)}},
	})
	for _, c := range []struct {
		what string
		got  *float64
		want float64
	}{
		{"sent", f.Sent, 11},
		{"received", f.Received, 8},
		{"spread", f.Spread, 4},
		{"loss", f.Loss, 0.2},
		{"delay", f.Delay, 2},
		{"bound", f.Bound, 0.3},
		{"IPDV", f.IPDV, 4},
		{"underrun", f.Underrun, 0.2},
	} {
		near(t, c.what, *c.got, c.want, 1e-9)
	}
	if f = summarize([]Repetition{{CellValues: CellValues{Sent: new(1.0), Received: new(1.0)}}}); f.Spread != nil || f.Delay != nil || f.Loss != nil {
		t.Errorf("one repetition without a delay: %+v", f)
	}
	if f = summarize(nil); f.Sent != nil {
		t.Errorf("no repetition: %+v", f)
	}
}

// A repetition that lost most of its packets has an infinite delay, and its variation is not known: the others do not stand for it.
func TestRepetitionsThatLostMostCountInTheMedian(t *testing.T) {
	repetition := func(lost int) Repetition {
		n := 0
		return evaluate(cellOf(func(int) bool { n++; return n > lost }), 1000, segmentOf(100, time.Second), 0)
	}
	for _, c := range []struct {
		lost  []int
		delay bool
		ipdv  bool
	}{{[]int{70, 60, 10}, false, false}, {[]int{70, 10, 10}, true, false}, {[]int{10, 60}, false, false}, {[]int{50, 10, 20}, true, true}, {[]int{100, 100, 0}, false, false}} {
		var all []Repetition
		for _, lost := range c.lost {
			all = append(all, repetition(lost))
		}
		if f := summarize(all); (f.Delay != nil) != c.delay || (f.Bound != nil) != c.delay || (f.IPDV != nil) != c.ipdv || f.Loss == nil {
			t.Errorf("%v of 100 lost: %+v, want a delay: %v, a variation: %v", c.lost, f, c.delay, c.ipdv)
		}
	}
}

// cellOf is 100 packets; the delay of packet i, if it arrives, is i ms.
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
		t.Errorf("40 of 100 lost, delays 40..99 ms: got median %.3f +- %.6f s, want 0.089 (RFC 7679 section 5.2)", *m.Delay, *m.Bound)
	}
	m = evaluate(cellOf(func(i int) bool { return i < 10 }), 128, seg, 0) // 90 % lost
	if m.Delay != nil {
		t.Errorf("90 of 100 lost: got median %.3f +- %.6f s, want none: it is infinite", *m.Delay, *m.Bound)
	}
}

// 50 of 100 arrived and were dropped by the receiving host. The path lost 25 of the other 50.
func TestLossOfACellBesideHostDrops(t *testing.T) {
	seg := stream.Segment{PayloadBytes: 100, Interval: 10 * time.Millisecond, Burst: 1, Bursts: 100}
	m := evaluate(cellOf(func(i int) bool { return i%4 == 0 }), 128, seg, 50)
	if *m.Loss != 0.5 {
		t.Errorf("loss %.3f, want 25 of 50", *m.Loss)
	}
}

func TestRateOfTheLargestCell(t *testing.T) {
	l := link{}
	s := segmentOf(50_000, time.Second)
	m := evaluate(l.carry(65_000, s), 65_000, s, 0)
	near(t, "sent", *m.Sent, 50_000*65_000., 1e-4)
}
