package chrony

import (
	"testing"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/sample"
)

func TestStepBySomebodyElseWaitsForAnUpdate(t *testing.T) {
	for _, step := range []time.Duration{5 * time.Second, -5 * time.Second, time.Millisecond, -time.Hour} {
		t.Run(step.String(), func(t *testing.T) {
			inBed(t, Options{}, func(b *bed) {
				b.pass(30 * time.Second)
				time.Sleep(3 * time.Second)
				b.clock.Step(step)
				b.expect("at once", clock.Stepping, sample.NearStepped)
				if got := b.quality().Steps; got != 1 {
					t.Errorf("%d steps, want 1", got)
				}
				time.Sleep(time.Minute)
				b.expect("a minute later, chronyd unaware", clock.Stepping, sample.NearStepped)
				b.daemon.update(step.Seconds())
				time.Sleep(2 * time.Second)
				b.expect("after chronyd's update", clock.Synchronised, sample.OK)
				if got := b.quality().Steps; got != 1 {
					t.Errorf("%d steps in the end, want 1", got)
				}
			})
		})
	}
}

// The update was between the last reply and the step: it says nothing of the step.
func TestUpdateJustBeforeSomebodyElsesStepIsNotBelieved(t *testing.T) {
	for step, measured := range map[time.Duration]float64{
		300 * time.Millisecond:  1e-5,
		-300 * time.Millisecond: 1e-5,
		5 * time.Second:         1e-5,
		3 * time.Second:         3, // by chance what the update measured
		-3 * time.Second:        3,
	} {
		inBed(t, Options{}, func(b *bed) {
			time.Sleep(20*time.Second + 300*time.Millisecond)
			b.daemon.update(measured)
			time.Sleep(100 * time.Millisecond)
			b.clock.Step(step)
			time.Sleep(20 * time.Second)
			b.expect("chronyd unaware of "+step.String(), clock.Stepping, sample.NearStepped)
		})
	}
}

func TestStepByChronydItselfIsHeldDownOnly(t *testing.T) {
	// chronyc makestep: the reference time moves along with the clock.
	inBed(t, Options{HoldDown: 5 * time.Second}, func(b *bed) {
		time.Sleep(20 * time.Second)
		b.clock.Step(3 * time.Second)
		b.daemon.set(func(d *daemon) { d.updated = d.updated.Add(3 * time.Second) })
		time.Sleep(4 * time.Second)
		b.expect("makestep, 4 s ago", clock.Stepping, sample.NearStepped)
		time.Sleep(2 * time.Second)
		b.expect("makestep, 6 s ago", clock.Synchronised, sample.OK)
	})
	// makestep in chrony.conf: an update, and the step by what it measured.
	inBed(t, Options{HoldDown: 5 * time.Second}, func(b *bed) {
		time.Sleep(20 * time.Second)
		b.clock.Step(-3 * time.Second)
		b.daemon.update(3)
		time.Sleep(6 * time.Second)
		b.expect("update and step, 6 s ago", clock.Synchronised, sample.OK)
	})
}

func TestSecondStepWhileWaitingWaitsForANewUpdate(t *testing.T) {
	inBed(t, Options{}, func(b *bed) {
		time.Sleep(5 * time.Second)
		b.clock.Step(time.Hour)
		time.Sleep(5 * time.Second)
		// moved along with the second step, but unaware of the first
		b.clock.Step(time.Minute)
		b.daemon.set(func(d *daemon) { d.updated = d.updated.Add(time.Minute) })
		time.Sleep(30 * time.Second)
		b.expect("two steps", clock.Stepping, sample.NearStepped)
		if got := b.quality().Steps; got != 2 {
			t.Errorf("%d steps, want 2", got)
		}
		b.daemon.update(3660)
		time.Sleep(2 * time.Second)
		b.expect("after the update", clock.Synchronised, sample.OK)
	})
}

func TestRestartedChronydSettlesWithItsFirstUpdate(t *testing.T) {
	inBed(t, Options{}, func(b *bed) {
		time.Sleep(5 * time.Second)
		b.clock.Step(time.Hour)
		b.daemon.set(func(d *daemon) { d.updated, d.leap, d.refID, d.stratum = 0, 3, 0, 0 })
		time.Sleep(20 * time.Second)
		b.expect("just started", clock.Stepping, sample.NearStepped)
		b.daemon.set(func(d *daemon) {
			d.updated, d.leap, d.refID, d.stratum = d.clock.Read().Wall, 0, 1, 2
		})
		time.Sleep(2 * time.Second)
		b.expect("updated", clock.Synchronised, sample.OK)
	})
}
