package bound

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/wire/timefmt"
	"oneway.example/tests/testseed"
)

func TestSumSaturates(t *testing.T) {
	for _, c := range []struct {
		parts []time.Duration
		want  time.Duration
	}{
		{nil, 0},
		{[]time.Duration{1, 2, 3}, 6},
		{[]time.Duration{math.MaxInt64}, Unbounded},
		{[]time.Duration{math.MaxInt64, 1}, Unbounded},
		{[]time.Duration{1, math.MaxInt64}, Unbounded},
		{[]time.Duration{math.MaxInt64 - 1, 1}, Unbounded},
		{[]time.Duration{math.MaxInt64, math.MaxInt64, 2}, Unbounded},
		{[]time.Duration{5, -1}, Unbounded},
		{[]time.Duration{math.MinInt64, math.MaxInt64}, Unbounded},
	} {
		if got := Sum(c.parts...); got != c.want {
			t.Errorf("%v: %d, want %d", c.parts, got, c.want)
		}
	}
}

func TestBoundAboveAnHourOrBelowZeroIsTooLarge(t *testing.T) {
	for b, want := range map[time.Duration]sample.Reason{
		0: sample.OK, Limit: sample.OK, Limit + 1: sample.BoundTooLarge, Unbounded: sample.BoundTooLarge,
		-1: sample.BoundTooLarge, math.MinInt64: sample.BoundTooLarge,
	} {
		if got := Check(b, 0); got != want {
			t.Errorf("%v: %v, want %v", b, got, want)
		}
	}
	if Check(2*us, us) != sample.BoundTooLarge || Check(us, us) != sample.OK || Check(2*Limit, 3*Limit) != sample.BoundTooLarge {
		t.Error("a configured limit has no effect, or raises the fixed one")
	}
}

// TestNoErrorEstimateMakesASmallBound tries every scale and multiplier that a remote end may send, with and without
// the S bit, at either end.
func TestNoErrorEstimateMakesASmallBound(t *testing.T) {
	var ends Ends
	from := sample.Stamp{At: 1_000_000_000, Origin: sample.Kernel}
	to := sample.Stamp{At: 1_020_000_000, Origin: sample.Kernel}
	for raw := range 1 << 16 {
		e := timefmt.ErrorEstimate(raw)
		claimed := math.Ceil(math.Ldexp(float64(raw&255), raw>>8&63-32) * 1e9)
		remote := sample.Bound{Error: e.Bound(), Reason: sample.OK}
		local := sample.Bound{Error: 6 * us, Reason: sample.OK}
		for _, clocks := range []sample.Bound{Clocks(local, remote), Clocks(remote, local), Clocks(remote, remote)} {
			d, proof := ends.Delay(sample.Forward, from, to, clocks)
			if proof {
				t.Fatalf("%#04x: 20 ms is a negative delay", raw)
			}
			if d.OK() && (float64(d.Bound) < claimed || d.Bound > Limit) || !d.OK() && claimed < float64(Limit/3) {
				t.Fatalf("%#04x claims %g ns: %+v", raw, claimed, d)
			}
		}
	}
}

func TestReasonOfTheSenderComesFirst(t *testing.T) {
	for _, local := range sample.Reasons() {
		for _, remote := range sample.Reasons() {
			got := Clocks(sample.Bound{Error: 3, Reason: local}, sample.Bound{Error: 4, Reason: remote})
			switch {
			case local != sample.OK && got != (sample.Bound{Reason: local}),
				local == sample.OK && remote != sample.OK && got != (sample.Bound{Reason: remote}),
				local == sample.OK && remote == sample.OK && got != (sample.Bound{Error: 7, Reason: sample.OK}):
				t.Errorf("%v and %v: %+v", local, remote, got)
			}
		}
	}
}

func TestSharedClockReplacesAnUntrustedClock(t *testing.T) {
	for _, c := range []struct {
		local, remote sample.Reason
		want          bool
	}{
		{sample.ClockSilent, sample.RemoteUnsynchronized, true},
		{sample.LocalUnsynchronized, sample.OK, true},
		{sample.Unknown, sample.RemoteUnsynchronized, true},
		{sample.OK, sample.RemoteUnsynchronized, true},
		{sample.OK, sample.OK, false}, // trusted: their own bounds apply
		{sample.NoClock, sample.RemoteUnsynchronized, false},
		{sample.LocalStepped, sample.RemoteUnsynchronized, false},
		{sample.ClockSilent, sample.RemoteStepped, false},
		{sample.OK, sample.RemoteStepped, false},
	} {
		if got := SharedClock(sample.Bound{Reason: c.local}, sample.Bound{Reason: c.remote}); got != c.want {
			t.Errorf("%v and %v: %v", c.local, c.remote, got)
		}
	}
}

func TestErrorOfATimestampDependsOnItsOriginAndTXUncertainty(t *testing.T) {
	local := Host{Conversion: 3 * us, Moderation: 50 * us}
	foreign, ours := Host{Conversion: CardConversion}, Host{Conversion: CardConversion, RunsOneway: true}
	txUncertainty := func(o sample.Origin, d time.Duration) sample.Stamp { return sample.Stamp{Origin: o, TXUncertainty: d} }
	for name, c := range map[string]struct{ got, want time.Duration }{
		"kernel, sent":                 {local.sent(txUncertainty(sample.Kernel, 0)), KernelError},
		"kernel, sent and held":        {local.sent(txUncertainty(sample.Kernel, 4*time.Millisecond)), 4 * time.Millisecond},
		"kernel, received, moderated":  {local.received(txUncertainty(sample.Kernel, 0)), KernelError + 50*us},
		"card, without moderation":     {local.received(txUncertainty(sample.Hardware, 0)), 4 * us},
		"card, far":                    {ours.sent(txUncertainty(sample.Hardware, 0)), CardError + CardConversion},
		"told later":                   {ours.sent(txUncertainty(sample.FollowUp, 0)), KernelError},
		"in the packet, ours":          {ours.received(txUncertainty(sample.InPacket, 0)), UserError},
		"in the packet, ours, held":    {ours.sent(txUncertainty(sample.InPacket, time.Second)), time.Second},
		"in the packet, another's":     {foreign.received(txUncertainty(sample.InPacket, 0)), 0},
		"user space":                   {local.sent(txUncertainty(sample.User, 0)), UserError},
		"user space, held":             {local.sent(txUncertainty(sample.User, time.Second)), time.Second},
		"moderation that has no end":   {(&Host{Moderation: math.MaxInt64}).received(txUncertainty(sample.Kernel, 0)), Unbounded},
		"moderation, of the card none": {(&Host{Moderation: time.Hour}).received(txUncertainty(sample.Hardware, 0)), us},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
}

// The kernel's timestamps are late by up to their limit and never early; so is the time between two.
func TestSpacingErrorIsOneLimitOfTheKernelAndTwoOfOthers(t *testing.T) {
	e := Ends{Local: Host{Moderation: 50 * us}, Remote: Host{Conversion: CardConversion}}
	trusted := Ends{Local: Host{Calibration: Calibration{Origin: sample.Kernel, Trusted: true, Largest: 3 * us}}}
	for name, c := range map[string]struct{ got, want time.Duration }{
		"kernel, near":       {e.SpacingError(sample.Reverse, sample.Stamp{Origin: sample.Kernel}), KernelError + 50*us},
		"kernel, far":        {e.SpacingError(sample.Forward, sample.Stamp{Origin: sample.Kernel}), KernelError},
		"card, far":          {e.SpacingError(sample.Forward, sample.Stamp{Origin: sample.Hardware}), 2 * (CardError + CardConversion)},
		"calibrated":         {trusted.SpacingError(sample.Reverse, sample.Stamp{Origin: sample.Kernel}), 3 * us},
		"calibrated, of far": {trusted.SpacingError(sample.Forward, sample.Stamp{Origin: sample.Kernel}), KernelError},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
}

func TestLowConfidenceIsADelayBelowItsBound(t *testing.T) {
	for _, c := range []struct {
		d    sample.Delay
		want bool
	}{
		{sample.Delay{Value: 20 * us, Bound: 56 * us, Reason: sample.OK}, true},
		{sample.Delay{Value: -20 * us, Bound: 56 * us, Reason: sample.OK}, true},
		{sample.Delay{Value: 56 * us, Bound: 56 * us, Reason: sample.OK}, false},
		{sample.Delay{Value: -57 * us, Bound: 56 * us, Reason: sample.OK}, false},
		{sample.Delay{Value: 20 * us, Bound: 56 * us, Reason: sample.NoClock}, false},
	} {
		if LowConfidence(c.d) != c.want {
			t.Errorf("%+v: %v", c.d, !c.want)
		}
	}
}

// simulation draws true delays, clocks with errors within their bounds, and timestamps with errors within their
// limits.
type simulation struct {
	rng  *rand.Rand
	ends Ends
}

func (w *simulation) upTo(d time.Duration) time.Duration {
	switch w.rng.IntN(4) {
	case 0:
		return d // at the limit
	case 1:
		return 0
	}
	return time.Duration(w.rng.Int64N(int64(d) + 1))
}

func (w *simulation) either(d time.Duration) time.Duration {
	if w.rng.IntN(2) == 0 {
		return -w.upTo(d)
	}
	return w.upTo(d)
}

// claim is a clock: its offset and its reported quality. Some reports exceed all limits, some clocks are not
// trusted.
func (w *simulation) claim() (off time.Duration, b sample.Bound) {
	reasons := sample.Reasons()
	claims := [...]time.Duration{0, 80, 6 * us, 300 * us, 40 * time.Millisecond, time.Second, 30 * time.Minute, Limit, 2 * Limit, math.MaxInt64 / 4, math.MaxInt64 / 2, math.MaxInt64, -1, math.MinInt64}
	b = sample.Bound{Error: claims[w.rng.IntN(len(claims))], Reason: sample.OK}
	if b.Error >= 0 {
		off = w.either(min(b.Error, 100*365*24*time.Hour))
	} else {
		off = w.either(time.Hour)
	}
	if w.rng.IntN(5) == 0 {
		b.Reason = reasons[w.rng.IntN(len(reasons))]
	}
	return off, b
}

// stamp is taken at an instant of true time by a clock with an offset; its error is within the limit of its origin,
// and of the sign that the origin allows.
func (w *simulation) stamp(at instant.Time, off time.Duration, h *Host, sent bool) sample.Stamp {
	origins := []sample.Origin{sample.User, sample.Kernel, sample.Hardware, sample.FollowUp}
	s := sample.Stamp{Origin: origins[w.rng.IntN(len(origins))]}
	if sent && w.rng.IntN(8) == 0 {
		s.TXUncertainty = time.Duration(w.rng.Int64N(int64(20 * time.Millisecond)))
	}
	limit := h.received(s)
	if sent {
		limit = h.sent(s)
	}
	s.At = at.Add(off).Add(w.either(limit))
	return s
}

// TestTruthIsInsideOrTheDelayIsInvalidWithAReason checks the main property of this package.
func TestTruthIsInsideOrTheDelayIsInvalidWithAReason(t *testing.T) {
	seed := testseed.Of(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	valid, invalid := 0, 0
	for i := range 300_000 {
		w := simulation{rng: rng, ends: Ends{
			Local:  Host{Conversion: time.Duration(rng.IntN(20_000)), Moderation: time.Duration(rng.IntN(200_000))},
			Remote: Host{Conversion: CardConversion, Moderation: time.Duration(rng.IntN(200_000)), RunsOneway: true},
		}}
		truth := [...]time.Duration{0, 20 * us, 14 * time.Millisecond, 3 * time.Second}[rng.IntN(4)]
		left := instant.Time(1_700_000_000e9) + instant.Time(rng.Int64N(1e15))
		localOff, local := w.claim()
		remoteOff, remote := w.claim()
		dir := sample.Directions()[rng.IntN(2)]
		var sent, received sample.Stamp
		if dir == sample.Forward {
			sent, received = w.stamp(left, localOff, &w.ends.Local, true), w.stamp(left.Add(truth), remoteOff, &w.ends.Remote, false)
		} else {
			sent, received = w.stamp(left, remoteOff, &w.ends.Remote, true), w.stamp(left.Add(truth), localOff, &w.ends.Local, false)
		}
		d, proof := w.ends.Delay(dir, sent, received, Clocks(local, remote))
		if !d.OK() {
			invalid++
			if proof {
				t.Fatalf("seed %d, %d: an invalid delay is proof of a fault: %+v", seed, i, d)
			}
			if local.Reason == sample.OK && remote.Reason == sample.OK && Check(Sum(local.Error, remote.Error, time.Second), 0) == sample.OK {
				t.Fatalf("seed %d, %d: clocks of %+v and %+v give %+v", seed, i, local, remote, d)
			}
			continue
		}
		valid++
		if local.Reason != sample.OK || remote.Reason != sample.OK {
			t.Fatalf("seed %d, %d: clocks of %+v and %+v give %+v", seed, i, local, remote, d)
		}
		if d.Bound < 0 || d.Bound > Limit || truth < d.Value-d.Bound || truth > d.Value+d.Bound {
			t.Fatalf("seed %d, %d: true delay %v, measured %v ± %v", seed, i, truth, d.Value, d.Bound)
		}
		if proof {
			t.Fatalf("seed %d, %d: clocks within their bounds, but %+v is proof of a fault", seed, i, d)
		}
	}
	if valid < 40_000 || invalid < 50_000 {
		t.Errorf("%d valid and %d invalid delays: the test tries too few of one kind", valid, invalid)
	}
}

func TestDelayDoesNotAllocate(t *testing.T) {
	e := Ends{Local: Host{Calibration: calibrated()}}
	from, to := sample.Stamp{At: 1, Origin: sample.Kernel}, sample.Stamp{At: 2e7, Origin: sample.Kernel}
	local := sample.Bound{Error: us, Reason: sample.OK}
	var kept sample.Delay
	if n := testing.AllocsPerRun(100, func() { kept, _ = e.Delay(sample.Forward, from, to, Clocks(local, local)) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if !kept.OK() {
		t.Error(kept)
	}
}

func BenchmarkDelay(b *testing.B) {
	e := Ends{Local: Host{Calibration: calibrated()}}
	from, to := sample.Stamp{At: 1, Origin: sample.Kernel}, sample.Stamp{At: 2e7, Origin: sample.Kernel}
	local := sample.Bound{Error: us, Reason: sample.OK}
	b.ReportAllocs()
	for b.Loop() {
		e.Delay(sample.Forward, from, to, Clocks(local, local))
	}
}
