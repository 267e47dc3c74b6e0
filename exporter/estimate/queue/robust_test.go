package queue

import (
	"encoding/binary"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"

	"github.com/google/go-cmp/cmp"
)

func TestConstantOffsetOfTheClocksCancels(t *testing.T) {
	w := profile(1.37e6, 2e6, 37_000, 61*ms, 5*ms)
	want := Analyze(w.simulate(1), options(w))
	for _, offset := range []time.Duration{-time.Hour, -3 * time.Second, 7 * ms, 24 * 365 * time.Hour} {
		w.offset = offset
		got := Analyze(w.simulate(1), options(w))
		if got.Idle.Value != want.Idle.Value+offset || got.Full.Value != want.Full.Value+offset {
			t.Errorf("offset %v: idle %v, full %v", offset, got.Idle.Value, got.Full.Value)
		}
		for _, b := range [][]Bin{got.PerSecond, got.First} {
			for i := range b {
				b[i].Min, b[i].Median, b[i].Max = b[i].Min-offset, b[i].Median-offset, b[i].Max-offset
			}
		}
		got.Idle, got.Full = want.Idle, want.Full
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("offset %v (-without +with):\n%s", offset, diff)
		}
	}
}

func TestDriftOfTheClocksIsInTheBound(t *testing.T) {
	for _, drift := range []float64{-50e-6, 50e-6, 200e-6} {
		w := profile(10e6, 12e6, 110_000, 14*ms, 0)
		w.length = 60 * time.Second
		still := Analyze(w.simulate(1), options(w))
		w.drift = drift
		o := options(w)
		o.Drift = max(drift, -drift)
		r := Analyze(w.simulate(1), o)
		if off := (r.Delay[1].Value - still.Delay[1].Value).Abs(); off == 0 || off > r.Delay[1].Bound || r.State != Filled {
			t.Errorf("drift %v: %v, delay off by %v, bound %v: %s", drift, r.State, off, r.Delay[1].Bound, r.Evidence)
		}
		if off := r.Size.Value - 110_000; max(off, -off) > r.Size.Bound {
			t.Errorf("drift %v: size %+v", drift, r.Size)
		}
	}
}

// Woo 2010, section 6.1.3: the difference of the smallest delays with and without queue, times the bandwidth. The
// link's queue is known here. The empty path's delay is not part of it: 200 ms at 10 Mb/s are 250,000 bytes.
func TestPapersQueueSizeExcludesTheEmptyPath(t *testing.T) {
	for _, delay := range []time.Duration{0, 14 * ms, 200 * ms} {
		w := profile(10e6, 12e6, 1_100_000, delay, 0)
		r := Analyze(w.simulate(1), options(w))
		// It lacks at most the packet itself and the packet in transmission.
		if off := (r.Full.Value-r.Idle.Value).Seconds()*r.Rate.Value - 1_100_000; off < -2*1410 || off > 0 {
			t.Errorf("empty path of %v: by table 6.1 the queue has %v bytes more than its 1,100,000", delay, off)
		}
		w.idle = 0
		if r = Analyze(w.simulate(1), options(w)); r.Idle.OK {
			t.Errorf("a delay of the empty path of %v, which was not measured", r.Idle.Value)
		}
	}
}

func TestSeriesConservePacketsAndBytes(t *testing.T) {
	w := profile(2.5e6, 5e6, 110_000, 30*ms, 0)
	w.length = 150 * time.Second
	packets := w.simulate(1)
	r := Analyze(packets, options(w))
	if n := len(r.PerSecond); n != 50 || r.PerSecond[0].Elapsed != 3*time.Second {
		t.Fatalf("%d bins of %v, want 50 of 3 s", n, r.PerSecond[0].Elapsed)
	}
	sent, lost, bytes := 0, 0, 0.0
	for _, b := range r.PerSecond {
		sent += b.Packets
		lost += b.Lost
		bytes += 3 * b.Sent
		if b.Count != b.Packets-b.Lost || b.Min > b.Median || b.Median > b.Max {
			t.Errorf("%+v", b)
		}
	}
	if sent != r.Sent || lost != r.Sent-r.Received || int(bytes+0.5) != r.Sent*w.size {
		t.Errorf("%d packets, %d lost, %v bytes; want %d, %d, %d", sent, lost, bytes, r.Sent, r.Sent-r.Received, r.Sent*w.size)
	}
	if n := len(r.First); n != 60 || r.First[n-1].Elapsed != First {
		t.Errorf("%d fine bins to %v", n, r.First[n-1].Elapsed)
	}
	// The first 3 s show the queue fill: from zero to 352 ms in 0.35 s.
	if a, b := r.First[0].Min-30*ms, r.First[20].Median-30*ms; a > ms || b < 340*ms {
		t.Errorf("delays of %v at first and %v after a second", a, b)
	}
}

func TestResultOfTooFewPacketsIsUnknown(t *testing.T) {
	at := func(ms ...int64) (p []Packet) {
		for _, m := range ms {
			p = append(p, Packet{Sent: epoch.Add(time.Duration(m) * time.Millisecond), IPBytes: 100, Segment: 1})
		}
		return p
	}
	lost := profile(1e6, 2e6, 10_000, ms, 0)
	lost.loss = 1
	all := map[string][]Packet{
		"nothing": nil, "one packet": at(1), "all at once": at(1, 1, 1), "backwards": at(5000, 1), "idle only": {{Sent: epoch, IPBytes: 100}},
		"all lost": lost.simulate(1), "years": at(0, 1<<40),
	}
	one := make([]Packet, 100)
	for i := range one {
		one[i] = Packet{Sent: epoch.Add(time.Duration(i) * ms), Arrived: epoch.Add(time.Hour), IPBytes: 1, Segment: 1}
	}
	all["one arrival"] = one
	for name, packets := range all {
		r := Analyze(packets, Options{Load: 1})
		if r.State != Unknown || r.Evidence == "" || r.Size.OK || r.Rate.OK || r.Delay[1].OK {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestWithoutAnIdlePartThereIsNoSize(t *testing.T) {
	w := profile(2.5e6, 5e6, 110_000, 30*ms, 0)
	o := options(w)
	o.Load = 0
	r := Analyze(w.simulate(1)[w.idle:], o)
	if r.State != Filled || r.Idle.OK || r.Delay[1].OK || r.Size.OK || !r.Full.OK || !r.Rate.OK {
		t.Errorf("%+v", r)
	}
}

func TestEveryStateHasItsOwnLabel(t *testing.T) {
	seen := map[string]bool{}
	for s := Unknown; s <= TimeLimited; s++ {
		if w := s.String(); w == "invalid" || seen[w] {
			t.Errorf("%d: %q", s, w)
		} else {
			seen[w] = true
		}
	}
	if State(99).String() != "invalid" {
		t.Error("a state without a word")
	}
}

// FuzzAnalyze feeds timestamps as a faulty remote end may send them.
func FuzzAnalyze(f *testing.F) {
	f.Add([]byte{}, uint8(1))
	some := make([]byte, 0, 50*40)
	for i := range uint64(50) {
		some = binary.BigEndian.AppendUint64(some, i*1e7)
		some = binary.BigEndian.AppendUint64(some, i*1e7+3e7)
		some = append(some, 5, 100, 0, byte(i/25))
	}
	f.Add(some, uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, load uint8) {
		var packets []Packet
		for ; len(b) >= 20 && len(packets) < 1000; b = b[20:] {
			packets = append(packets, Packet{
				Sent: instant.Time(binary.BigEndian.Uint64(b)), Arrived: instant.Time(binary.BigEndian.Uint64(b[8:])),
				IPBytes: int(binary.BigEndian.Uint16(b[16:])), TXUncertainty: time.Duration(b[18]), Segment: int(b[19]),
			})
		}
		r := Analyze(packets, Options{Load: int(load)})
		if len(r.PerSecond) > MaxBins || len(r.First) > MaxBins || r.Sent < r.Received {
			t.Errorf("%+v", r)
		}
	})
}

// BenchmarkAnalyze is a run of 320,000 packets.
func BenchmarkAnalyze(b *testing.B) {
	w := profile(100e6, 120e6, 256_000, 400*time.Microsecond, 100*time.Microsecond)
	w.late = 5 * time.Microsecond
	w.length = 31 * time.Second
	packets := w.simulate(1)[:320_000]
	b.ReportAllocs()
	for b.Loop() {
		if r := Analyze(packets, options(w)); r.State != Filled {
			b.Fatal(r.Evidence)
		}
	}
}

// A sender without feedback of its receiver pauses for seconds (stream.Consent): packets that were not sent must
// not change the result.
func TestPauseOfTheSenderChangesNoResult(t *testing.T) {
	for _, seconds := range []int{1, 3, 7, 12} {
		w := profile(10e6, 12e6, 110_000, 14*ms, 0)
		w.pause = [2]time.Duration{10 * time.Second, time.Duration(10+seconds) * time.Second}
		r := Analyze(w.simulate(1), options(w))
		if off := r.Size.Value - 110_000; r.State != Filled || max(off, -off) > r.Size.Bound {
			t.Errorf("%d s: %v, size %+v: %s", seconds, r.State, r.Size, r.Evidence)
		}
		if off := r.Rate.Value*8 - 10e6; max(off, -off) > r.Rate.Bound*8 || r.Varies {
			t.Errorf("%d s: rate %+v, varies %v", seconds, r.Rate, r.Varies)
		}
		if off := r.Throughput*8 - 10e6; max(off, -off) > 1e5 {
			t.Errorf("%d s: throughput %v", seconds, r.Throughput*8)
		}
		if r.Loss < 0.1 || r.Loss > 0.2 {
			t.Errorf("%d s: loss %v, want about a sixth", seconds, r.Loss)
		}
	}
}

// A sender on a busy machine stands still in each second but one, which alone says nothing about the variation of the rate.
func TestPausesOfTheSenderHideNoVariation(t *testing.T) {
	for name, c := range map[string]struct {
		rateAt func(time.Duration) float64
		want   bool
	}{
		"constant": {nil, false},
		"varies":   {func(at time.Duration) float64 { return []float64{10e6, 6e6}[max(at, 0)/time.Second%2] }, true},
	} {
		w := profile(10e6, 12e6, 440_000, 14*ms, 0)
		w.rateAt = c.rateAt
		for at := 300 * ms; at < w.length; at += time.Second {
			if at < 15*time.Second || at > 17*time.Second {
				w.stalls = append(w.stalls, at, at+50*ms)
			}
		}
		if r := Analyze(w.simulate(1), options(w)); r.Varies != c.want {
			t.Errorf("%s: varies %v, rates %.0f", name, r.Varies, r.Rates)
		}
	}
}

// A host that sleeps before each idle packet sends those less exactly than the load, on a busy machine all of them.
// The delay of the empty path is then known less exactly, not unknown.
func TestIdlePacketsMayHaveALargerTXUncertaintyThanTheLoad(t *testing.T) {
	w := profile(10e6, 30e6, 1_100_000, 14*ms, 0)
	packets := w.simulate(1)
	o := options(w)
	for i := range packets {
		packets[i].TXUncertainty = 2 * time.Microsecond
		if packets[i].Segment < o.Load {
			packets[i].TXUncertainty = time.Duration(60+i%7) * time.Microsecond
		}
	}
	r := Analyze(packets, o)
	if off := (r.Idle.Value - 14*ms).Abs(); !r.Idle.OK || off > r.Idle.Bound || r.Idle.Bound < 60*time.Microsecond {
		t.Errorf("idle delay %+v, the path's is 14 ms, sent with an uncertainty of 60 us and more", r.Idle)
	}
	if r.State != Filled || !r.Size.OK || !r.Delay[1].OK {
		t.Errorf("%v (%s), size %+v, delay %+v", r.State, r.Evidence, r.Size, r.Delay[1])
	}
}

// TestLongTailOfLargePacketsIsNoHeadDrop has more bytes than an int of 32 bits.
func TestLongTailOfLargePacketsIsNoHeadDrop(t *testing.T) {
	r := run{load: make([]Packet, 100_000), bytes: 65_000, begin: epoch}
	for i := range r.load {
		r.load[i] = Packet{Sent: epoch.Add(time.Duration(i) * ms), IPBytes: r.bytes}
	}
	for i := range 70_000 {
		r.losses = append(r.losses, time.Duration(i)*ms)
	}
	if most := r.atHead([]stretch{{n: 50_000, most: 1000}}); most != 0 {
		t.Errorf("%g bytes", most)
	}
}
