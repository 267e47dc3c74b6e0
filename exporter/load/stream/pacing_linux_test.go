package stream

import (
	"math"
	"slices"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
)

// paced is the rate and lateness of a stream by its timestamps.
type paced struct {
	rateError       float64 // of the whole stream, as a ratio
	median, p99     time.Duration
	late, unstamped int
}

func pacing(s *Sent, seg Segment) (p paced) {
	first, last := s.Packets[0], s.Packets[len(s.Packets)-1]
	wanted := float64(len(s.Packets)-1) * float64(seg.Interval) / float64(seg.Burst)
	p.rateError = float64(last.Stamp.At.Sub(first.Stamp.At))/wanted - 1
	var behind []time.Duration
	for _, k := range s.Packets {
		behind = append(behind, k.Stamp.At.Sub(k.Due))
		if k.Stamp.Origin != sample.Kernel {
			p.unstamped++
		}
	}
	slices.Sort(behind)
	p.median, p.p99, p.late = behind[len(behind)/2], behind[len(behind)*99/100], s.Late
	return p
}

// The schedule is absolute: on a busy host the rate over a whole stream differs from the plan's only by
// the lateness of the last packet relative to the first. The test checks the rate without that lateness,
// and logs the figures of
// the host.
func TestRateIsThatOfThePlan(t *testing.T) {
	l := newLink(t)
	e := l.ends(t)
	for _, c := range []struct {
		name string
		seg  Segment
	}{
		{"12 Mb/s", Segment{PayloadBytes: 1382, Interval: 940 * time.Microsecond, Burst: 1, Bursts: 2128}},
		{"1 Gb/s", Segment{PayloadBytes: 1472, Interval: 12 * time.Microsecond, Burst: 1, Bursts: 83_333}},
	} {
		t.Run(c.name, func(t *testing.T) {
			sent, received := transfer(t, e.here, e.there, Plan{Segments: []Segment{c.seg}})
			p := pacing(sent, c.seg)
			t.Logf("rate %+.4f %%; lateness: median %v, p99 %v; %d of %d late, %d unstamped, %d refused; %d arrived, %d dropped by the socket",
				100*p.rateError, p.median, p.p99, p.late, len(sent.Packets), p.unstamped, sent.Refused, len(received.Packets), received.Dropped)
			if sent.Refused > 0 || sent.Planned != c.seg.Packets() {
				t.Errorf("%d of %d packets sent, %d refused", len(sent.Packets), sent.Planned, sent.Refused)
			}
			first, last := sent.Packets[0], sent.Packets[len(sent.Packets)-1]
			drift := last.Stamp.At.Sub(last.Due) - first.Stamp.At.Sub(first.Due)
			wanted := float64(len(sent.Packets)-1) * float64(c.seg.Interval)
			if rest := p.rateError - float64(drift)/wanted; math.Abs(rest) > 1e-4 { // the system clock may be slewed
				t.Errorf("the error of the schedule is %.4f %%", 100*rest)
			}
		})
	}
}

func TestUnstampedStreamIsSegmentedAndArrives(t *testing.T) {
	l := newLink(t)
	e := l.ends(t)
	p := Plan{Unstamped: true, Segments: []Segment{
		{PayloadBytes: 64, Burst: 1, Bursts: 200},
		{PayloadBytes: 1472, Interval: time.Millisecond, Burst: 100, Bursts: 20},
		{PayloadBytes: 1000, Interval: 50 * time.Microsecond, Burst: 1, Bursts: 1000},
	}}
	sent, received := transfer(t, e.here, e.there, p)
	if len(sent.Packets) != p.Packets() || sent.Refused > 0 {
		t.Fatalf("%d of %d sent, %d refused", len(sent.Packets), p.Packets(), sent.Refused)
	}
	if received.CorruptPackets > 0 || len(received.Packets)+int(received.Dropped) > p.Packets() {
		t.Errorf("%d arrived, %d damaged, %d dropped", len(received.Packets), received.CorruptPackets, received.Dropped)
	}
	seen := make(map[uint32]bool)
	for _, r := range received.Packets {
		want := 64
		switch {
		case r.Seq >= 2200:
			want = 1000
		case r.Seq >= 200:
			want = 1472
		}
		if int(r.PayloadBytes) != want || seen[r.Seq] {
			t.Fatalf("packet %d arrived with %d bytes, want %d; before: %v", r.Seq, r.PayloadBytes, want, seen[r.Seq])
		}
		seen[r.Seq] = true
	}
	if len(seen) < p.Packets()*9/10 {
		t.Errorf("only %d of %d packets arrived", len(seen), p.Packets())
	}
}

// measure is the measured part of a benchmark.
func (e ends) measure(b *testing.B, p Plan) (sent *Sent, got *Received, took time.Duration) {
	b.Helper()
	b.ReportAllocs()
	b.ResetTimer()
	r, err := e.there.Expect(1, p)
	check(b, err)
	begin := time.Now()
	sent, err = e.here.Send(b.Context(), 1, e.server.LocalAddr(), p, SendOptions{})
	check(b, err)
	took = time.Since(begin)
	got = r.Finish(b.Context(), len(sent.Packets), 100*time.Millisecond)
	b.StopTimer()
	return sent, got, took
}

// BenchmarkUnstamped sends as fast as the host can over a veth pair.
func BenchmarkUnstamped(b *testing.B) {
	for _, c := range []struct {
		name  string
		bytes int
	}{{"64", 64}, {"1472", 1472}} {
		b.Run(c.name, func(b *testing.B) {
			l := newLink(b)
			e := l.ends(b)
			p := Plan{Unstamped: true, Segments: []Segment{{PayloadBytes: c.bytes, Burst: 1, Bursts: min(b.N, MaxPackets)}}}
			sent, got, took := e.measure(b, p)
			b.ReportMetric(float64(len(sent.Packets))/took.Seconds(), "packets/s")
			b.ReportMetric(float64(len(sent.Packets)*c.bytes)*8/took.Seconds()/1e9, "Gb/s")
			b.ReportMetric(1-float64(len(got.Packets))/float64(len(sent.Packets)), "loss_ratio")
			b.ReportMetric(float64(got.Dropped)/float64(len(sent.Packets)), "socket_drop_ratio")
		})
	}
}

// BenchmarkStamped sends a stream of 1,472 bytes at 1 Gb/s over a veth pair, with timestamps.
func BenchmarkStamped(b *testing.B) {
	for _, c := range []struct {
		name     string
		interval time.Duration
	}{{"1Gbit", 12 * time.Microsecond}, {"flat-out", 0}} {
		b.Run(c.name, func(b *testing.B) {
			l := newLink(b)
			e := l.ends(b)
			seg := Segment{PayloadBytes: 1472, Interval: c.interval, Burst: 1, Bursts: min(b.N, MaxPackets)}
			p := Plan{Segments: []Segment{seg}}
			sent, got, took := e.measure(b, p)
			n := float64(len(sent.Packets))
			b.ReportMetric(n/took.Seconds(), "packets/s")
			b.ReportMetric(1-float64(len(got.Packets))/n, "loss_ratio")
			if c.interval > 0 && b.N > 1 {
				k := pacing(sent, seg)
				b.ReportMetric(1e6*k.rateError, "rate_error_ppm")
				b.ReportMetric(float64(k.p99)/1e3, "p99_us")
				b.ReportMetric(float64(k.unstamped)/n, "unstamped_ratio")
			}
		})
	}
}
