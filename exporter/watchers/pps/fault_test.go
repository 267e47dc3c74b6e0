package pps

import (
	"errors"
	"math"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
)

func TestVanishedDeviceIsRetriedWithoutEnd(t *testing.T) {
	run(t, func(b *bench) {
		b.seconds(20)
		b.do(func() { b.fetchErr, b.openErr = errGone, errUnplugged })
		b.seconds(600)
		if s := b.State(); s.Open || s.Fault != errUnplugged.Error() || s.Present || s.FitKnown {
			b.Errorf("without the device: %+v", s)
		}
		b.absent(metric.PPSJitter, metric.PPSFitOffset, metric.PPSFitBound)
		// 1 + 2 + 4 + 8 + 16 s, then every 30 s.
		if b.opens < 20 || b.opens > 30 {
			b.Errorf("opened %d times in 600 s", b.opens)
		}
		b.logged(1, "cannot be read")
		// Another reason is another event.
		b.do(func() { b.openErr = errForbidden })
		b.seconds(60)
		b.logged(2, "cannot be read")
		// It comes back and counts from one.
		b.do(func() { b.fetchErr, b.openErr, b.sequence = nil, nil, 0 })
		b.seconds(60)
		s := b.State()
		if !s.Open || s.Fault != "" || !s.FitKnown {
			b.Errorf("with the device again: %+v", s)
		}
		if total := s.Pulses + s.Missed; total != 740 {
			b.Errorf("%d pulses and %d missed in 740 s", s.Pulses, s.Missed)
		}
		b.offset(0)
		b.logged(2, "Device opened")
		b.logged(4, "level=")
		if b.openDevices != 1 {
			b.Errorf("%d devices are open", b.openDevices)
		}
	})
}

func TestDeviceThatIsReplacedIsOpenedAgain(t *testing.T) {
	run(t, func(b *bench) {
		b.seconds(20)
		// The kernel goes on to wait on the old one; nothing comes any more.
		b.do(func() { b.silent, b.presentErr = true, errUnplugged })
		b.seconds(4)
		b.do(func() { b.silent, b.presentErr, b.sequence = false, nil, 0 })
		b.seconds(10)
		if s := b.State(); b.opens < 2 || !s.Open || s.Pulses+s.Missed != 34 || s.Missed < 4 {
			b.Errorf("opened %d times, %+v", b.opens, s)
		}
		b.offset(0)
	})
}

func TestShortLossAfterALongOneIsShort(t *testing.T) {
	run(t, func(b *bench) {
		b.do(func() { b.fetchErr, b.openErr = errGone, errUnplugged })
		b.seconds(300)
		b.do(func() { b.fetchErr, b.openErr = nil, nil })
		b.seconds(40)
		b.do(func() { b.fetchErr = errGone })
		b.seconds(1)
		b.do(func() { b.fetchErr = nil })
		b.seconds(3)
		if s := b.State(); !s.Open || s.Fault != "" {
			b.Errorf("3 s after a short loss: %+v", s)
		}
	})
}

func TestDeviceThatFailsAtOnceIsRetriedAfterPauses(t *testing.T) {
	run(t, func(b *bench) {
		b.do(func() { b.fetchErr, b.restless = errUnplugged, true })
		b.seconds(120)
		if b.fetches > 12 {
			b.Errorf("%d fetches in 120 s", b.fetches)
		}
	})
}

func TestHangOfTheKernelStopsNeitherWithdrawalNorShutdown(t *testing.T) {
	run(t, func(b *bench) {
		b.seconds(20)
		b.do(func() { b.hang = make(chan struct{}) })
		b.seconds(8)
		b.absent(metric.PPSJitter, metric.PPSFitOffset, metric.PPSFitBound)
		if s := b.State(); s.Present || s.FitKnown {
			b.Errorf("while the kernel hangs: %+v", s)
		}
		// run ends the watcher while the kernel still hangs.
	})
}

func TestGarbledStampsAreCountedAndNotJudged(t *testing.T) {
	for name, garble := range map[string]func(*event){
		"no time":       func(e *event) { e.at = 0 },
		"in the future": func(e *event) { e.at = e.at.Add(time.Second) },
		"the year 2262": func(e *event) { e.at = 1<<63 - 1 },
		"negative":      func(e *event) { e.at = -e.at },
		"backwards":     func(e *event) { e.sequence = -e.sequence },
		"far ahead":     func(e *event) { e.sequence *= 1 << 22 },
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(b *bench) {
				b.seconds(20)
				b.do(func() { b.garble = garble })
				b.seconds(10)
				if v := b.value(metric.PPSRejected, garbled); v < 9 {
					b.Errorf("%v of 10 counted as garbled", v)
				}
				b.absent(metric.PPSFitOffset, metric.PPSFitBound, metric.PPSJitter)
				if v := b.value(metric.PPSPulses); v > 31 {
					b.Errorf("%v pulses", v)
				}
				b.do(func() { b.garble = nil })
				b.seconds(20)
				b.offset(0)
			})
		})
	}
}

func TestOldTimestampIsLate(t *testing.T) {
	run(t, func(b *bench) {
		b.seconds(20)
		b.do(func() { b.garble = func(e *event) { e.at = e.at.Add(-time.Second) } })
		b.seconds(10)
		b.expect(10, metric.PPSRejected, late)
		b.absent(metric.PPSFitOffset)
	})
}

func TestOscillatingLineCostsFewFetches(t *testing.T) {
	run(t, func(b *bench) {
		b.seconds(20)
		b.do(func() { b.fetches, b.every = 0, 100*time.Microsecond })
		b.seconds(10)
		if b.fetches > 520 {
			b.Errorf("%d fetches in 10 s", b.fetches)
		}
		if v := b.value(metric.PPSPulses); v < 90_000 || v > 110_000 {
			b.Errorf("%v pulses counted of 100000", v)
		}
		b.absent(metric.PPSFitOffset)
		if doubled := b.value(metric.PPSRejected, "doubled"); doubled < 200 {
			b.Errorf("%v doubled", doubled)
		}
		b.do(func() { b.every = time.Second })
		b.seconds(20)
	})
}

func TestDriverThatCannotWaitCostsFewFetches(t *testing.T) {
	run(t, func(b *bench) {
		b.do(func() { b.restless = true })
		b.seconds(3) // the wait for the next pulse ends
		b.do(func() { b.fetches = 0 })
		b.seconds(10)
		if b.fetches > 200 {
			b.Errorf("%d fetches in 10 s", b.fetches)
		}
		if v := b.value(metric.PPSPulses); v < 12 || v > 13 {
			b.Errorf("%v pulses in 13 s", v)
		}
	})
}

func TestSequenceWrapsAround(t *testing.T) {
	run(t, func(b *bench) {
		b.do(func() { b.sequence = 1<<32 - 10 })
		b.seconds(20)
		b.expect(20, metric.PPSPulses)
		b.expect(0, metric.PPSRejected, garbled)
		b.offset(0)
	})
}

func TestLocateReturnsTheReason(t *testing.T) {
	now := reading{wall: 1000e9, raw: 500 * time.Second, uncertainty: 200}
	for _, c := range []struct {
		name string
		at   instant.Time
		now  reading
		slew float64
		want error
	}{
		{"good", 1000e9 - 50_000, now, 0, nil},
		{"within the uncertainty of now", 1000e9 + 200, now, 0, nil},
		{"no stamp", 0, now, 0, errNoTime},
		{"no reading", 1000e9, reading{}, 0, errNoTime},
		{"future", 1000e9 + 300, now, 0, errFuture},
		{"too late", 1000e9 - 500e6, now, 0, errLate},
		{"late while slewing", 1000e9 - 2e6, now, 0.08, errLate},
		{"before the raw clock began", 400e9, now, 0, errLate},
		{"the longest age", 1, reading{wall: math.MaxInt64, raw: math.MaxInt64}, 0, errLate},
		{"the longest age, slewing as fast as can be", 1, reading{wall: math.MaxInt64, raw: math.MaxInt64}, largestSlew, errLate},
		{"the farthest future", math.MaxInt64, reading{wall: 1, raw: 1}, 0, errFuture},
		{"the first of all instants", math.MinInt64, now, 0, errNoTime},
		{"vague reading", 1000e9, reading{wall: 1000e9, raw: 500 * time.Second, uncertainty: time.Millisecond}, 0, errLate},
	} {
		p, err := locate(event{7, c.at}, c.now, c.slew)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if err == nil && (p.Raw != 500*time.Second-c.now.wall.Sub(c.at) || p.RawError < c.now.uncertainty) {
			t.Errorf("%s: %+v", c.name, p)
		}
	}
}
