package chrony

import (
	"math"
	"testing"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/core/sample"
)

func TestBoundIsTheSumOfTrackingsErrors(t *testing.T) {
	inTestbed(t, Options{}, func(b *testbed) {
		b.daemon.set(func(d *daemon) { d.correction = -2e-3 })
		// simulated time (synctest)
		time.Sleep(2*time.Second + time.Millisecond)
		q := b.quality()
		if q.State != clock.Synchronized || q.Offset.Round(time.Microsecond) != 2*time.Millisecond {
			t.Errorf("got %+v, want a clock 2 ms fast", q)
		}
		// |offset| 2 ms + dispersion 0.1 ms + delay 1 ms/2 + age 2.001 s x 3.5 ppm
		want := 2e-3 + 1e-4 + 0.5e-3 + 2.001*3.5e-6
		if got := q.Bound.Error.Seconds(); math.Abs(got-want) > 1e-9 {
			t.Errorf("bound %v s, want %v s", got, want)
		}
	})
}

// The aged bound is the bound that chronyd itself would report at that time.
func TestBoundGrowsAsChronydsOwn(t *testing.T) {
	inTestbed(t, Options{}, func(b *testbed) {
		start := b.quality().Bound.Error
		b.daemon.set(func(d *daemon) { d.fault = hanging })
		time.Sleep(20 * time.Second) // simulated time (synctest)
		aged := b.quality().Bound.Error
		if want := start + 70*time.Microsecond; (aged - want).Abs() > 10*time.Nanosecond {
			t.Errorf("after 20 s at 3.5 ppm: %v, want %v", aged, want)
		}
		now := b.clock.Read().Wall
		if later := b.monitor.Quality(now.Add(10 * time.Second)).Bound.Error; (later - aged - 35*time.Microsecond).Abs() > 10*time.Nanosecond {
			t.Errorf("10 s ahead: %v, want 35 us more than %v", later, aged)
		}
	})
}

// If chronyd hangs during a slew, the kernel continues to slew, beyond zero.
func TestBoundCoversASlewWithoutAnEnd(t *testing.T) {
	inTestbed(t, Options{}, func(b *testbed) {
		b.daemon.set(func(d *daemon) { d.correction = 1e-3 })
		time.Sleep(2500 * time.Millisecond) // simulated time (synctest)
		b.daemon.set(func(d *daemon) { d.fault = hanging })
		time.Sleep(20 * time.Second) // simulated time (synctest)
		// 1 ms per second at most, from 20.5 s before now: 19.5 ms beyond zero.
		if got := b.quality().Bound.Error; got < 17*time.Millisecond || got > 25*time.Millisecond {
			t.Errorf("bound %v, want about 20 ms", got)
		}
	})
}

// With chronyd -x the clock is not corrected, and the offset grows between replies.
func TestBoundFollowsAnOffsetThatGrows(t *testing.T) {
	inTestbed(t, Options{}, func(b *testbed) {
		time.Sleep(time.Second / 2) // between two queries
		for i := range 5 {
			b.daemon.set(func(d *daemon) { d.correction = 1e-3 + 100e-6*float64(i) })
			time.Sleep(time.Second) // simulated time (synctest)
		}
		now := b.clock.Read().Wall
		reply, ahead := b.quality().Bound.Error, b.monitor.Quality(now.Add(time.Second)).Bound.Error
		if grown := ahead - reply; grown < 100*time.Microsecond || grown > 110*time.Microsecond {
			t.Errorf("the bound grows by %v a second, the offset by 100 us", grown)
		}
	})
}

// While the clock slews its offset was larger before.
func TestInstantBeforeTheReplyGetsTheLargerBound(t *testing.T) {
	inTestbed(t, Options{}, func(b *testbed) {
		b.daemon.set(func(d *daemon) { d.correction = 5e-3 })
		time.Sleep(1500 * time.Millisecond) // simulated time (synctest)
		stamped := b.clock.Read().Wall
		b.daemon.set(func(d *daemon) { d.correction = 1e-3 })
		time.Sleep(time.Second) // simulated time (synctest)
		if got := b.monitor.Quality(stamped).Bound.Error; got < 5*time.Millisecond {
			t.Errorf("bound of an instant 5 ms off: %v", got)
		}
		if got := b.quality().Bound.Error; got > 2*time.Millisecond {
			t.Errorf("bound of now, 1 ms off: %v", got)
		}
	})
}

func TestAllFormsOfUnsynchronizedAreDetected(t *testing.T) {
	for name, change := range map[string]func(*daemon){
		"leap status 3": func(d *daemon) { d.leap = 3 },
		"stratum 0":     func(d *daemon) { d.stratum = 0 },
		"stratum 16":    func(d *daemon) { d.stratum = 16 },
		"no reference":  func(d *daemon) { d.refID = 0 },
		"local mode":    func(d *daemon) { d.refID = refIDLocal },
	} {
		t.Run(name, func(t *testing.T) {
			inTestbed(t, Options{}, func(b *testbed) {
				b.expect("at first", clock.Synchronized, sample.OK)
				b.daemon.set(change)
				time.Sleep(2 * time.Second) // simulated time (synctest)
				b.expect("then", clock.Unsynchronized, sample.LocalUnsynchronized)
			})
		})
	}
}

func TestLocalModeIsTrustedOnRequest(t *testing.T) {
	inTestbed(t, Options{TrustLocal: true}, func(b *testbed) {
		b.daemon.set(func(d *daemon) { d.refID = refIDLocal })
		time.Sleep(2 * time.Second) // simulated time (synctest)
		b.expect("island", clock.Synchronized, sample.OK)
	})
}

func TestHoldoverAfterFourPollIntervalsIsValid(t *testing.T) {
	inTestbed(t, Options{}, func(b *testbed) {
		time.Sleep(63 * time.Second) // simulated time (synctest)
		b.expect("63 s after the update, poll 16 s", clock.Synchronized, sample.OK)
		before := b.quality().Bound.Error
		time.Sleep(3 * time.Second) // simulated time (synctest)
		b.expect("66 s after it", clock.Holdover, sample.OK)
		time.Sleep(934 * time.Second) // simulated time (synctest)
		b.expect("1000 s after it", clock.Holdover, sample.OK)
		if after := b.quality().Bound.Error; after < before+3*time.Millisecond {
			t.Errorf("the bound grew from %v to %v only", before, after)
		}
		b.daemon.update(0)
		time.Sleep(2 * time.Second) // simulated time (synctest)
		b.expect("heard again", clock.Synchronized, sample.OK)
	})
}

// In holdover there are no updates, so the bound grows by all errors of the clock's rate: skew 2 ppm, residual frequency
// 0.5 ppm, maxclockerror.
func TestHoldoverBoundGrowsWithTheSkewAndTheTimeSinceTheUpdate(t *testing.T) {
	for _, maxClockError := range []float64{0, 10e-6} {
		inTestbed(t, Options{MaxClockError: maxClockError}, func(b *testbed) {
			rate := 2.5e-6 + max(maxClockError, defaultMaxClockError)
			// The daemon hangs, so the aging is that of the monitor only.
			time.Sleep(100*time.Second + time.Second/2)
			b.daemon.set(func(d *daemon) { d.fault = hanging })
			begin := b.quality()
			for _, later := range []time.Duration{5 * time.Second, 10 * time.Second, 25 * time.Second} {
				now := b.clock.Read().Wall
				got := b.monitor.Quality(now.Add(later))
				want := begin.Bound.Error.Seconds() + later.Seconds()*rate
				if got.State != clock.Holdover || math.Abs(got.Bound.Error.Seconds()-want) > 10e-9 {
					t.Errorf("%v later, at %g: %v, bound %v, want holdover and %.9f s", later, rate, got.State, got.Bound.Error, want)
				}
			}
			if age := b.clock.Read().Wall.Sub(begin.LastUpdate); age < 100*time.Second {
				t.Errorf("the last update is %v old, want 100 s", age)
			}
		})
	}
}

func TestPendingLeapSecondIsReportedAndChangesNothingElse(t *testing.T) {
	inTestbed(t, Options{}, func(b *testbed) {
		for leap, word := range map[uint16]string{1: "insert_second", 2: "delete_second"} {
			b.daemon.set(func(d *daemon) { d.leap, d.refID = leap, refID("PPS") })
			time.Sleep(3 * time.Second) // simulated time (synctest)
			b.expect(word, clock.Synchronized, sample.OK)
			if _, ok := b.sink.Value(metric.ClockReferenceInfo, Name, "PPS", "1", word, "pps"); !ok {
				t.Errorf("%s is not reported: %v", word, b.sink.Present(metric.ClockReferenceInfo.Name))
			}
		}
	})
}

func TestTrackingIsUsedWithoutSources(t *testing.T) {
	inTestbed(t, Options{}, func(b *testbed) {
		b.daemon.set(func(d *daemon) { d.noSources, d.refID = true, 77 })
		time.Sleep(50 * time.Second) // simulated time (synctest)
		b.expect("tracking only", clock.Synchronized, sample.OK)
		if v, _ := b.sink.Value(metric.ClockQueryFailures, Name, "refused"); v != 1 {
			t.Errorf("%v refusals counted in 50 s, want 1", v)
		}
	})
}

func TestSilentAfterTheLimitAndBackAgain(t *testing.T) {
	inTestbed(t, Options{silentAfter: 20 * time.Second}, func(b *testbed) {
		b.daemon.set(func(d *daemon) { d.down, d.fault = true, hanging })
		time.Sleep(18 * time.Second) // simulated time (synctest)
		b.expect("18 s of silence", clock.Synchronized, sample.OK)
		time.Sleep(4 * time.Second) // simulated time (synctest)
		b.expect("22 s of silence", clock.Silent, sample.ClockSilent)
		for _, d := range []*metric.Desc{
			metric.ClockErrorBound, metric.ClockOffset, metric.ClockFrequency, metric.ClockSkew,
			metric.ClockLastUpdate, metric.ClockReferenceInfo,
		} {
			if left := b.sink.Present(d.Name + "{"); len(left) != 0 {
				t.Errorf("a silent daemon has %v", left)
			}
		}
		time.Sleep(time.Hour) // simulated time (synctest)
		b.daemon.set(func(d *daemon) { d.down, d.fault, d.updated = false, correct, d.clock.Read().Wall })
		time.Sleep(defaultMaxBackOff + time.Second) // simulated time (synctest)
		b.expect("it replies again", clock.Synchronized, sample.OK)
	})
}

func TestEveryFaultIsCountedAndSurvived(t *testing.T) {
	for f, reason := range map[fault]failure{
		hanging:         timeout,
		truncating:      truncated,
		oversizing:      oversized,
		missequencing:   wrongSequence,
		wrongVersion:    malformed,
		wrongCommand:    malformed,
		wrongReply:      malformed,
		refusing:        refused,
		babbling:        malformed,
		flooding:        flood,
		implausibleLeap: implausible,
	} {
		t.Run(string(reason), func(t *testing.T) {
			inTestbed(t, Options{}, func(b *testbed) {
				before := b.quality()
				b.daemon.set(func(d *daemon) { d.fault = f })
				time.Sleep(defaultSilentAfter / 2) // simulated time (synctest)
				b.expect("under fault", clock.Synchronized, sample.OK)
				if q := b.quality(); q.Bound.Error <= before.Bound.Error {
					t.Errorf("the bound did not grow: %v, then %v", before.Bound.Error, q.Bound.Error)
				}
				counted := b.sink.Present(metric.ClockQueryFailures.Name)
				for key, n := range counted {
					if want := key == metrictest.Key(metric.ClockQueryFailures, Name, string(reason)); (n > 0) != want {
						t.Errorf("%s = %v", key, n)
					}
				}
				time.Sleep(defaultSilentAfter) // simulated time (synctest)
				b.expect("for long", clock.Silent, sample.ClockSilent)
				b.daemon.update(0)
				b.daemon.set(func(d *daemon) { d.fault = correct })
				time.Sleep(defaultMaxBackOff + time.Second) // simulated time (synctest)
				b.expect("mended", clock.Synchronized, sample.OK)
			})
		})
	}
}

func TestLateReplyBeforeTheRightOneDoesNoHarm(t *testing.T) {
	inTestbed(t, Options{}, func(b *testbed) {
		b.daemon.set(func(d *daemon) { d.previous = make([]byte, replyHeadBytes); d.fault = late })
		time.Sleep(10 * time.Second) // simulated time (synctest)
		b.expect("late replies", clock.Synchronized, sample.OK)
		for key, n := range b.sink.Present(metric.ClockQueryFailures.Name) {
			if n != 0 {
				t.Errorf("%s = %v, want none", key, n)
			}
		}
	})
}

func TestBackOffIsBoundedBothWays(t *testing.T) {
	inTestbed(t, Options{Interval: time.Second, maxBackOff: 8 * time.Second}, func(b *testbed) {
		b.daemon.set(func(d *daemon) { d.fault = refusing })
		time.Sleep(2 * time.Second) // simulated time (synctest)
		before := b.daemon.requests()
		time.Sleep(10 * time.Minute) // simulated time (synctest)
		if n := b.daemon.requests() - before; n < 70 || n > 80 {
			t.Errorf("%d requests in 600 s of refusals, want about 75", n)
		}
	})
}

func TestSeriesExistForKnownValuesOnly(t *testing.T) {
	inTestbed(t, Options{}, func(b *testbed) {
		b.daemon.set(func(d *daemon) { d.correction = 25e-6 })
		time.Sleep(3500 * time.Millisecond) // simulated time (synctest)
		for d, want := range map[*metric.Desc]float64{
			metric.ClockSynchronized: 1, metric.ClockOffset: -25e-6, metric.ClockFrequency: -12.5e-6,
			metric.ClockSkew: 2e-6, metric.ClockSteps: 0,
		} {
			if v, ok := b.sink.Value(d, Name); !ok || math.Abs(v-want) > 1e-6*math.Abs(want) {
				t.Errorf("%s = %v (present %v), want %v", d.Name, v, ok, want)
			}
		}
		if v, ok := b.sink.Value(metric.ClockErrorBound, Name); !ok || v < 625e-6 || v > 650e-6 {
			t.Errorf("bound %v (present %v)", v, ok)
		}
		if _, ok := b.sink.Value(metric.ClockReferenceInfo, Name, "TEST", "1", "normal", "other"); !ok {
			t.Errorf("no reference TEST: %v", b.sink.Present(metric.ClockReferenceInfo.Name))
		}
		if v, _ := b.sink.Value(metric.ClockLastUpdate, Name); v < 946684000 {
			t.Errorf("last update %v", v)
		}
		b.daemon.set(func(d *daemon) { d.leap, d.stratum, d.refID, d.updated = 3, 0, 0, 0 })
		time.Sleep(3 * time.Second) // simulated time (synctest)
		if _, ok := b.sink.Value(metric.ClockErrorBound, Name); ok {
			t.Error("an unsynchronized clock has a bound")
		}
		if _, ok := b.sink.Value(metric.ClockLastUpdate, Name); ok {
			t.Error("a clock that never was updated has a last update")
		}
		if got := b.sink.Present(metric.ClockReferenceInfo.Name); len(got) != 1 {
			t.Errorf("references: %v", got)
		}
	})
}

func TestQualityDoesNotAllocate(t *testing.T) {
	m := known(t)
	now := instant.Now()
	if n := testing.AllocsPerRun(1000, func() { m.Quality(now) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func BenchmarkQuality(b *testing.B) {
	m := known(b)
	now := instant.Now()
	b.ReportAllocs()
	for b.Loop() {
		if q := m.Quality(now); q.State != clock.Synchronized {
			b.Fatal(q)
		}
	}
}

// known is a monitor with a recent reply of chronyd.
func known(t testing.TB) *Monitor {
	t.Helper()
	m, err := New(Options{silentAfter: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	check := m.steps.Check()
	r := &report{
		at: check.Now.Mono, era: check.Offset, refID: 1, stratum: 1, updated: check.Now.Wall,
		offset: 1e-5, skew: 1e-7, dispersion: 1e-5,
	}
	m.now.Store(&replyState{last: r, previous: r, holdover: time.Hour})
	return m
}
