package pps

import (
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
)

func TestPulsesAreCountedAndJudged(t *testing.T) {
	run(t, func(b *bench) {
		b.do(func() { b.wall = 300 * time.Microsecond })
		b.absent(metric.PPSLast, metric.PPSJitter, metric.PPSFitOffset, metric.PPSFitBound)
		b.expect(0, metric.PPSPulses)
		b.seconds(7)
		b.absent(metric.PPSJitter, metric.PPSFitOffset, metric.PPSFitBound)
		b.seconds(13)
		b.expect(20, metric.PPSPulses)
		b.expect(0, metric.PPSMissed)
		b.offset(300 * time.Microsecond)
		if v := b.value(metric.PPSJitter); v > 1e-8 {
			b.Errorf("jitter %v s of pulses without any", v)
		}
		last := b.begun.Add(20*time.Second + 300*time.Microsecond)
		b.expect(float64(last.UnixNano())/1e9, metric.PPSLast)
		for _, reason := range reasons() {
			b.expect(0, metric.PPSRejected, reason)
		}
		s := b.State()
		if !s.Open || s.Fault != "" || s.Pulses != 20 || s.Missed != 0 || !s.Present || !s.FitKnown || !s.JitterKnown ||
			s.Last.Sequence != 20 || s.Last.Assert != instant.FromTime(last) || s.FitOffset.Round(time.Microsecond) != 300*time.Microsecond {
			b.Errorf("state %+v", s)
		}
		if s.FitBound < s.Last.RawError || s.Last.RawError < 200 {
			b.Errorf("bound %v of a pulse that was located within +- %v", s.FitBound, s.Last.RawError)
		}
		b.logged(1, "level=")
	})
}

func TestJitterIsTheDeviationOfIntervals(t *testing.T) {
	run(t, func(b *bench) {
		for i := range 100 {
			b.do(func() { b.latency = time.Duration(i%2) * 10 * time.Microsecond })
			b.seconds(1)
		}
		// Intervals of one second +- 10 us in turn.
		if v := b.value(metric.PPSJitter); v < 9.9e-6 || v > 10.3e-6 {
			b.Errorf("jitter %v s, want 10 us", v)
		}
		if v := b.value(metric.PPSFitBound); v < 5e-6 || v > 20e-6 {
			b.Errorf("fit bound %v s with pulses +- 5 us", v)
		}
	})
}

func TestValuesEndWithThePulses(t *testing.T) {
	run(t, func(b *bench) {
		b.seconds(20)
		b.do(func() { b.silent = true })
		b.seconds(4)
		b.offset(0)
		b.value(metric.PPSJitter)
		b.seconds(3)
		b.absent(metric.PPSJitter, metric.PPSFitOffset, metric.PPSFitBound)
		b.value(metric.PPSLast)
		b.logged(1, "No pulse for 5 s")
		b.seconds(593)
		b.logged(1, "No pulse for 5 s")
		b.do(func() { b.silent = false })
		b.seconds(1)
		b.expect(600, metric.PPSMissed)
		b.expect(1, metric.PPSRejected, "gap")
		b.absent(metric.PPSFitOffset)
		b.logged(1, "Pulses are back")
		b.seconds(10)
		b.expect(31, metric.PPSPulses)
		b.expect(600, metric.PPSMissed)
		b.offset(0)
	})
}

func TestDeviceWithoutAnyPulseIsReported(t *testing.T) {
	run(t, func(b *bench) {
		b.do(func() { b.silent = true })
		b.seconds(60)
		b.logged(1, "No pulse for 5 s")
		b.expect(0, metric.PPSPulses)
		b.absent(metric.PPSLast)
	})
}

func TestMissedPulseIsCounted(t *testing.T) {
	run(t, func(b *bench) {
		b.seconds(20)
		for range 3 {
			b.do(func() { b.silent = true })
			b.seconds(2)
			b.do(func() { b.silent = false })
			b.seconds(3)
			b.offset(0)
		}
		b.expect(6, metric.PPSMissed)
		b.expect(29, metric.PPSPulses)
	})
}

func TestPulsesDuringAPauseAreCounted(t *testing.T) {
	run(t, func(b *bench) {
		b.seconds(20)
		b.do(func() { b.slow = 10*time.Second - waking - 300*time.Millisecond })
		b.seconds(2)
		b.do(func() { b.slow = 0 })
		b.seconds(18)
		b.expect(40, metric.PPSPulses)
		b.expect(0, metric.PPSMissed)
		b.expect(1, metric.PPSRejected, late) // 0.7 s after its pulse, the time is uncertain
		b.offset(0)
	})
}

func TestOtherEdgeRightBeforeThePulseIsPassedOver(t *testing.T) {
	run(t, func(b *bench) {
		b.do(func() { b.other = 10 * time.Millisecond })
		b.seconds(30)
		b.expect(30, metric.PPSPulses)
		b.expect(0, metric.PPSMissed)
		b.expect(0, metric.PPSRejected, late)
		b.offset(0)
	})
}

func TestNoisyPulseIsRejectedByReason(t *testing.T) {
	run(t, func(b *bench) {
		b.seconds(20)
		b.do(func() { b.latency = 2 * time.Millisecond })
		b.seconds(1)
		b.do(func() { b.latency = 0 })
		b.expect(1, metric.PPSRejected, "noisy")
		b.offset(0)
		b.seconds(1)
		b.offset(0)
		b.expect(1, metric.PPSRejected, "noisy")
		b.expect(22, metric.PPSPulses)
	})
}

func TestStepOfTheClockIsSeenModuloOneSecond(t *testing.T) {
	run(t, func(b *bench) {
		b.seconds(20)
		b.do(func() { b.wall = 300 * time.Millisecond })
		b.seconds(1)
		b.offset(300 * time.Millisecond)
		b.expect(0, metric.PPSRejected, "step")
		b.do(func() { b.wall = 1300 * time.Millisecond })
		b.seconds(1)
		b.expect(1, metric.PPSRejected, "step")
		b.absent(metric.PPSFitOffset, metric.PPSFitBound)
		b.seconds(10)
		b.offset(300 * time.Millisecond)
		b.do(func() { b.wall = -800 * time.Millisecond })
		b.seconds(11)
		b.offset(200 * time.Millisecond)
		b.expect(43, metric.PPSPulses)
		b.expect(0, metric.PPSMissed)
	})
}

func TestPulsesDuringASlewAreAccepted(t *testing.T) {
	run(t, func(b *bench) {
		b.seconds(20)
		for range 20_000 { // 500 us a second: what the kernel allows
			b.do(func() { b.wall += 500 * time.Nanosecond })
			// simulated time (synctest)
			time.Sleep(time.Millisecond)
		}
		b.offset(10*time.Millisecond - 250*time.Microsecond) // at the last pulse
		b.expect(0, metric.PPSRejected, "noisy")
		b.expect(0, metric.PPSRejected, "step")
	})
}
