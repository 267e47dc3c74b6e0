package chrony

import (
	"math"
	"testing"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
)

func TestStepByAnotherProcessIsValidAfterAnUpdate(t *testing.T) {
	for _, step := range []time.Duration{5 * time.Second, -5 * time.Second, time.Millisecond, -time.Hour} {
		t.Run(step.String(), func(t *testing.T) {
			inTestbed(t, Options{}, func(b *testbed) {
				b.pass(30 * time.Second)
				// simulated time (synctest)
				time.Sleep(3 * time.Second)
				b.clock.Step(step)
				b.expect("at once", clock.Stepping, sample.LocalStepped)
				if got := b.quality().Steps; got != 1 {
					t.Errorf("%d steps, want 1", got)
				}
				time.Sleep(time.Minute) // simulated time (synctest)
				b.expect("a minute later, chronyd unaware", clock.Stepping, sample.LocalStepped)
				b.daemon.update(step.Seconds())
				time.Sleep(2 * time.Second) // simulated time (synctest)
				b.expect("after chronyd's update", clock.Synchronized, sample.OK)
				if got := b.quality().Steps; got != 1 {
					t.Errorf("%d steps in the end, want 1", got)
				}
			})
		})
	}
}

// The update was between the last reply and the step: it says nothing of the step.
func TestUpdateJustBeforeAStepByAnotherProcessIsNotUsed(t *testing.T) {
	for step, measured := range map[time.Duration]float64{
		300 * time.Millisecond:  1e-5,
		-300 * time.Millisecond: 1e-5,
		5 * time.Second:         1e-5,
		3 * time.Second:         3, // by chance what the update measured
		-3 * time.Second:        3,
	} {
		inTestbed(t, Options{}, func(b *testbed) {
			time.Sleep(20*time.Second + 300*time.Millisecond) // simulated time (synctest)
			b.daemon.update(measured)
			time.Sleep(100 * time.Millisecond) // simulated time (synctest)
			b.clock.Step(step)
			time.Sleep(20 * time.Second) // simulated time (synctest)
			b.expect("chronyd unaware of "+step.String(), clock.Stepping, sample.LocalStepped)
		})
	}
}

func TestStepByChronydItselfIsHeldDownOnly(t *testing.T) {
	// chronyc makestep: the reference time moves along with the clock.
	inTestbed(t, Options{holdDown: 5 * time.Second}, func(b *testbed) {
		time.Sleep(20 * time.Second) // simulated time (synctest)
		b.clock.Step(3 * time.Second)
		b.daemon.set(func(d *daemon) { d.updated = d.updated.Add(3 * time.Second) })
		time.Sleep(4 * time.Second) // simulated time (synctest)
		b.expect("makestep, 4 s ago", clock.Stepping, sample.LocalStepped)
		time.Sleep(2 * time.Second) // simulated time (synctest)
		b.expect("makestep, 6 s ago", clock.Synchronized, sample.OK)
	})
	// makestep in chrony.conf: an update, and the step by what it measured.
	inTestbed(t, Options{holdDown: 5 * time.Second}, func(b *testbed) {
		time.Sleep(20*time.Second + 300*time.Millisecond) // between two queries
		b.clock.Step(-3 * time.Second)
		b.daemon.update(3)
		b.quality()                 // notices the step at once, as the kernel's notice does
		time.Sleep(7 * time.Second) // simulated time (synctest)
		b.expect("update and step, 6 s ago", clock.Synchronized, sample.OK)
	})
}

func TestSecondStepWhileWaitingWaitsForANewUpdate(t *testing.T) {
	inTestbed(t, Options{}, func(b *testbed) {
		time.Sleep(5 * time.Second) // simulated time (synctest)
		b.clock.Step(time.Hour)
		time.Sleep(5 * time.Second) // simulated time (synctest)
		// moved along with the second step, but unaware of the first
		b.clock.Step(time.Minute)
		b.daemon.set(func(d *daemon) { d.updated = d.updated.Add(time.Minute) })
		time.Sleep(30 * time.Second) // simulated time (synctest)
		b.expect("two steps", clock.Stepping, sample.LocalStepped)
		if got := b.quality().Steps; got != 2 {
			t.Errorf("%d steps, want 2", got)
		}
		b.daemon.update(3600)
		time.Sleep(2 * time.Second) // simulated time (synctest)
		b.expect("after the update", clock.Synchronized, sample.OK)
	})
}

func TestRestartedChronydSettlesWithItsFirstUpdate(t *testing.T) {
	inTestbed(t, Options{}, func(b *testbed) {
		time.Sleep(5 * time.Second) // simulated time (synctest)
		b.clock.Step(time.Hour)
		b.daemon.set(func(d *daemon) { d.updated, d.leap, d.refID, d.stratum = 0, 3, 0, 0 })
		time.Sleep(20 * time.Second) // simulated time (synctest)
		b.expect("just started", clock.Stepping, sample.LocalStepped)
		b.daemon.set(func(d *daemon) {
			d.updated, d.leap, d.refID, d.stratum = d.clock.Read().Wall, 0, 1, 2
		})
		time.Sleep(2 * time.Second) // simulated time (synctest)
		b.expect("updated", clock.Synchronized, sample.OK)
	})
}

// What chronyd 4.3 answered after each update that followed a step by 1 s, its samples
// from a SOCK refclock: last offset and root dispersion, twice. The first update of
// the second does not see the step at all.
func TestSettlerWaitsUntilARealChronydHasFoundTheStep(t *testing.T) {
	type replyPacket struct{ lastOffset, dispersion float64 }
	for settles, replies := range map[int][]replyPacket{
		3: {{0.002138855, 0.048780706}, {0.026822682, 0.113682151}, {0.123056032, 0.243189648}, {0.910846889, 0.570448935}},
		1: {{-0.000000024, 0.000002513}, {0.601326346, 0.448070943}},
	} {
		var s settler
		at := instant.FromUnix(1_800_000_000, 0)
		reply := func(steps uint64, a replyPacket) uint64 {
			at = at.Add(16 * time.Second)
			return s.reply(clock.Check{Steps: steps}, &report{
				updated: at, era: time.Duration(steps) * time.Second, steps: steps,
				lastOffset: a.lastOffset, dispersion: a.dispersion, delay: 1e-4,
			})
		}
		reply(0, replyPacket{1e-8, 3e-6})
		at = at.Add(-16 * time.Second) // the next reply is after the step, and tells of no new update
		reply(1, replyPacket{1e-8, 3e-6})
		found := 0.0
		for i, a := range replies {
			settled := reply(1, a) == 1
			found += a.lastOffset
			if settled != (i == settles) {
				t.Errorf("update %d of %d, %v s found: settled is %v", i, len(replies), found, settled)
			}
			if settled && math.Abs(1-found) > a.dispersion+0.5e-4 {
				t.Errorf("settled while %v s are not found, bound %v s", 1-found, a.dispersion)
			}
		}
	}
}

// The kernel inserts an announced leap second without a word to chronyd: its reference time stays, and its updates find nothing, as
// the source has inserted it as well. If the source has not, the updates find it.
func TestAnnouncedLeapSecondIsOverAfterSomeUpdates(t *testing.T) {
	midnight := instant.FromUnix(1_798_761_600, 0) // 2027-01-01
	for name, c := range map[string]struct {
		leap    uint16
		step    time.Duration
		at      instant.Time
		found   []float64 // by the updates after it
		settled int       // by this number of updates; 0: not by these
	}{
		"insertion":                 {1, -time.Second, midnight.Add(-900 * time.Millisecond), []float64{1e-6, 1e-6, 1e-6, 1e-6, 1e-6}, 4},
		"deletion":                  {2, time.Second, midnight.Add(100 * time.Millisecond), []float64{1e-6, 1e-6, 1e-6, 1e-6, 1e-6}, 4},
		"the source has none":       {1, -time.Second, midnight.Add(-900 * time.Millisecond), []float64{1e-6, -0.6, -0.3, -0.09, -0.005, -0.004, -0.0009}, 7},
		"not announced":             {0, -time.Second, midnight.Add(-900 * time.Millisecond), []float64{1e-6, 1e-6, 1e-6, 1e-6, 1e-6, 1e-6}, 0},
		"by another program":        {1, -time.Second, midnight.Add(-time.Hour), []float64{1e-6, 1e-6, 1e-6, 1e-6, 1e-6, 1e-6}, 0},
		"in the opposite direction": {2, -time.Second, midnight.Add(-900 * time.Millisecond), []float64{1e-6, 1e-6, 1e-6, 1e-6, 1e-6, 1e-6}, 0},
	} {
		var s settler
		era := time.Duration(midnight.Add(-time.Hour)) // REALTIME minus MONOTONIC before the step
		stepped := time.Duration(c.at) - era - c.step  // on the monotonic clock
		update := time.Duration(c.at) - era - c.step - 8*time.Second
		reply := func(after time.Duration, steps uint64, last float64) uint64 {
			e, leap := era, c.leap
			if steps > 0 {
				e += c.step
			}
			if after > 3*time.Second {
				leap = 0
			}
			at := stepped + after
			check := clock.Check{Steps: steps, Now: clock.Reading{Mono: at, Wall: instant.Time(at + e)}}
			if steps > 0 {
				check.SteppedAt = stepped
			}
			return s.reply(check, &report{at: at, updated: instant.Time(update + era), era: e, steps: steps, leap: leap, lastOffset: last, dispersion: 3e-5, delay: 1e-4})
		}
		reply(-time.Second, 0, 1e-6)
		got := 0
		reply(time.Second, 1, 1e-6)
		for i, last := range c.found {
			after := time.Duration(8+16*i) * time.Second
			update = stepped + after + c.step
			if reply(after+time.Second, 1, last) == 1 && got == 0 {
				got = i + 1
			}
		}
		if got != c.settled {
			t.Errorf("%s: settled after %d updates, want %d", name, got, c.settled)
		}
	}
}
