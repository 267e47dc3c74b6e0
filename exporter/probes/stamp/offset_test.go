package stamp

import (
	"math/rand/v2"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/loss"
	"oneway.example/exporter/estimate/voice"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/net/wire/timefmt"
	"oneway.example/exporter/probes/stamp/ledger"
	"oneway.example/tests/testseed"
)

// variation runs a path whose remote clock has a constant offset, and returns its exported variation and voice
// ratings.
func variation(t *testing.T, seed uint64, theta time.Duration) (told *pathSink, report DirectionReport) {
	t.Helper()
	c := newSessionFixture(t, us, nil)
	c.theta = theta
	c.estimator.collect = &collector{}
	rng := rand.New(rand.NewPCG(seed, 7))
	draw := func() time.Duration {
		return 30*time.Millisecond + time.Duration(rng.Int64N(int64(20*time.Millisecond)))
	}
	for range 400 {
		c.bring(draw(), draw())
	}
	report = reportOf(c.partial(c.estimator.window)).Forward
	c.closed()
	return c.ledger, report
}

// TestVariationDoesNotFeelAConstantOffset: in a histogram of delays with an offset of seconds, the buckets are
// wider than the variation.
func TestVariationDoesNotFeelAConstantOffset(t *testing.T) {
	seed := testseed.Of(t)
	plain, plainReport := variation(t, seed, 0)
	for _, theta := range []time.Duration{time.Second, -10 * time.Second, 37 * time.Second, -time.Hour} {
		told, report := variation(t, seed, theta)
		for _, desc := range []*metric.Desc{metric.DelayVariation, metric.IPDV} {
			for _, dir := range []string{"forward", "reverse"} {
				seen, want := told.observed(desc, dir), plain.observed(desc, dir)
				if len(seen) == 0 || len(seen) != len(want) {
					t.Fatalf("%s %s: %d values, %d without an offset", desc.Name, dir, len(seen), len(want))
				}
				for i, v := range seen {
					if v != want[i] {
						t.Fatalf("%v off: %s %s: %v, %v without it", theta, desc.Name, dir, v, want[i])
					}
				}
			}
		}
		for _, c := range [][2]*Distribution{{report.PDV, plainReport.PDV}, {report.IPDV, plainReport.IPDV}} {
			if *c[0].P50 != *c[1].P50 || *c[0].P95 != *c[1].P95 || *c[0].P99 != *c[1].P99 || *c[0].Max != *c[1].Max {
				t.Errorf("%v off: %s, %s without it", theta, asJSON(t, c[0]), asJSON(t, c[1]))
			}
		}
	}
}

// answered delivers a reply as received from the wire, with the remote end's clock quality.
func (c *sessionFixture) answered(t *testing.T, forward, reverse time.Duration, stepping bool) {
	t.Helper()
	c.now = c.now.Add(20 * time.Millisecond)
	c.account.Transmitted(c.account.Send(0, c.now, ledger.ThenOf(c.clock.Quality(c.now))), sample.Stamp{At: c.now, Origin: sample.Kernel})
	came, left := c.now.Add(forward+c.theta), c.now.Add(forward+c.theta+50*us)
	encode := func(at instant.Time) uint64 { return timefmt.NTP.Encode(at, 0) }
	r := ledger.Reply{HasReceipt: true, Receipt: stampfmt.Receipt{Filled: true, T2Origin: sample.Kernel}}
	r.Packet.SenderSeq, r.Packet.SenderT1 = uint32(c.seq), encode(c.now)
	r.Packet.T2, r.Packet.T3 = encode(came), encode(left)
	r.Packet.Error = timefmt.MakeErrorEstimate(us, !stepping, timefmt.NTP)
	if stepping {
		r.Receipt.Clock = stampfmt.ClockStepped
	}
	q, why, ok := c.account.RequestOf(&r)
	if !ok {
		t.Fatalf("refused: %v", why)
	}
	back := left.Add(reverse - c.theta)
	a := c.pendingOf(inAt(back), &r, q)
	a.Packet.ReverseSeq = c.seq
	c.estimator.conclude(&a)
	c.seq++
}

// TestAnnouncedStepOfTheRemoteClockEntersNoVariation: a step of 100 ms must not make half of a window late, which
// would reduce R from 91.7 to 37.2.
func TestAnnouncedStepOfTheRemoteClockEntersNoVariation(t *testing.T) {
	for _, step := range []time.Duration{100 * time.Millisecond, -100 * time.Millisecond} {
		c := newSessionFixture(t, us, nil)
		for i := range 400 {
			stepping := i >= 200 && i < 210
			if i == 200 {
				c.theta += step
			}
			c.answered(t, 30*time.Millisecond+time.Duration(i%5)*100*us, 30*time.Millisecond, stepping)
			c.estimator.ways[sample.Forward].losses.Add(deltaOf(1))
			if i == 399 {
				c.theta = 0
			}
		}
		c.closed()
		for _, desc := range []*metric.Desc{metric.DelayVariation, metric.IPDV} {
			for _, v := range c.ledger.observed(desc, "forward") {
				if v > 1e-3 || v < -1e-3 {
					t.Fatalf("step of %v: %s of %v s on a path that varies by 0.4 ms", step, desc.Name, v)
				}
			}
		}
		if v := c.count(metric.RoundTripInvalid, "remote_stepped"); v != 10 {
			t.Errorf("%v round trips across the step counted as invalid, want 10", v)
		}
		if c.count(metric.DelayInvalid, "forward", "remote_stepped") != 10 {
			t.Error("no delay across the step counted as invalid")
		}
		if n := len(c.ledger.observed(metric.DelayVariation, "forward")); n < 150 {
			t.Errorf("only %d variations", n)
		}
	}
}

// TestStepOfTheNearClockMakesNoRoundTrip: T4-T1 of a clock that was set back by a second in between is -0.96 s and
// must not be exported.
func TestStepOfTheNearClockMakesNoRoundTrip(t *testing.T) {
	c := newSessionFixture(t, us, nil)
	for i := range 20 {
		c.now = c.now.Add(20 * time.Millisecond)
		then := ledger.ThenOf(c.clock.Quality(c.now))
		left := c.now
		if i == 10 { // set back by a second while the packet is outstanding
			c.clock.steps++
			c.now = c.now.Add(-time.Second)
		}
		at := func(d time.Duration) sample.Stamp { return sample.Stamp{At: c.now.Add(d), Origin: sample.Kernel} }
		c.estimator.conclude(&ledger.PendingReply{Clock: then, Packet: sample.Packet{
			Seq: uint64(i), ReverseSeq: uint64(i), Remote: sample.Bound{Error: us, Reason: sample.OK},
			T1: sample.Stamp{At: left, Origin: sample.Kernel}, T2: at(20 * time.Millisecond), T3: at(20 * time.Millisecond), T4: at(40 * time.Millisecond),
		}, Era: c.estimator.era})
	}
	c.closed()
	seen := c.ledger.observed(metric.RoundTripTime)
	if len(seen) != 19 {
		t.Errorf("%d round trips, want 19", len(seen))
	}
	for _, v := range seen {
		if v != 0.04 {
			t.Errorf("a round trip of %v s", v)
		}
	}
	if v := c.count(metric.RoundTripInvalid, "local_stepped"); v != 1 {
		t.Errorf("%v invalid, want 1", v)
	}
	if v, _ := c.ledger.value(metric.RoundTripTimeMin); v != 0.04 {
		t.Errorf("smallest round trip %v", v)
	}
}

// TestRoundTripsWhileAClockIsSteppedAreUnknownInTheQuantiles: they are ten times as long as the others.
func TestRoundTripsWhileAClockIsSteppedAreUnknownInTheQuantiles(t *testing.T) {
	for stepped, known := range map[int]bool{0: true, 1: true, 20: true, 40: false} {
		c := newSessionFixture(t, us, nil)
		for i := range 60 {
			delay := 10*time.Millisecond + time.Duration(i)*us
			if c.clock.reason = sample.Unknown; i < stepped {
				c.clock.reason, delay = sample.LocalStepped, 10*delay
			}
			c.bring(delay, delay)
		}
		c.closed()
		median, told := c.ledger.value(metric.RoundTripTimeQuantile, "0.5")
		if told != known || told && (median < 0.02 || median > 0.0202) {
			t.Errorf("%d of 60 round trips unknown: median %v (known %v), want known %v", stepped, median, told, known)
		}
	}
}

func TestCallIsRatedOnlyWithAValidDelayAndWithItsBound(t *testing.T) {
	for _, clock := range []struct {
		bound, limit time.Duration
		rated        bool
		off          [2]float64
	}{
		{100 * us, 0, true, [2]float64{0, 0.1}},
		{150 * time.Millisecond, 0, true, [2]float64{5, 40}}, // ± 300 ms of 30 ms
		{150 * time.Millisecond, 200 * time.Millisecond, false, [2]float64{}},
	} {
		c := newSessionFixture(t, clock.bound, func(o *Options) { o.MaxBound = clock.limit })
		for range 100 {
			c.bring(30*time.Millisecond, 30*time.Millisecond)
			c.estimator.ways[sample.Forward].losses.Add(deltaOf(1))
		}
		c.closed()
		labels := []string{"forward", "G.711-PLC", "g107", "adaptive"}
		r, rated := c.ledger.value(metric.VoiceR, labels...)
		off, bounded := c.ledger.value(metric.VoiceRError, labels...)
		if rated != clock.rated || bounded != rated || rated && (off < clock.off[0] || off > clock.off[1]) {
			t.Errorf("bound %v, limit %v: R %v (known %v) ± %v (known %v), want %+v", clock.bound, clock.limit, r, rated, off, bounded, clock)
		}
	}
}

// TestRFallsAsTheDelayGrows checks the assumption of the bound of R.
func TestRFallsAsTheDelayGrows(t *testing.T) {
	codec, err := voice.CodecByName("G.711-PLC")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range voice.Models() {
		before := 1000.0
		for delay := time.Duration(0); delay < 2*time.Second; delay += 3 * time.Millisecond {
			path := voice.Path{Delay: delay, Decided: 1000, Lost: 10, Bursts: 9}
			a, ok := path.Assess(codec, voice.Buffered{Played: 990, Delay: 10 * time.Millisecond}, voice.Defaults(), m)
			if !ok || a.R > before+1e-9 {
				t.Fatalf("%s: R %v at %v, %v below it (%v)", m.Name, a.R, delay, before, ok)
			}
			before = a.R
		}
	}
}

func deltaOf(decided uint64) loss.Delta { return loss.Delta{Decided: decided, Received: decided} }

func inAt(at instant.Time) *tstamp.In {
	return &tstamp.In{At: at, Stamp: sample.Stamp{At: at, Origin: sample.Kernel}}
}
