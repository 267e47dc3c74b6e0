package chrony

import (
	"testing"
	"time"

	"oneway.example/tests/clocksim"
)

// control runs hosts that break what the bound stands on, and returns what became of
// an hour and a half of delays, after half an hour to settle.
func control(t *testing.T, o clocksim.Oscillator, s clocksim.Source, falseReply func(*clocksim.Tracking), until time.Duration) *simPhase {
	t.Helper()
	w := newSimulation(simSeed)
	local := newSimHost(w, o, 0, clocksim.Config{Source: s})
	remote := newSimHost(w, quartz(-12e-6), 0, clocksim.Config{Source: serialPulse(nil, nil)})
	local.falseReply = falseReply
	p := &simPath{simulation: w, local: local, remote: remote, delays: func(time.Duration) (time.Duration, time.Duration) {
		return 2 * time.Millisecond, 3 * time.Millisecond
	}}
	p.play(until, []scene{{at: 0, name: "settling"}, {at: minutes(30), name: "under test"}})
	t.Log(p.table())
	if p.phases[1].valid < 500 {
		t.Fatalf("only %d delays are valid", p.phases[1].valid)
	}
	return p.phases[1]
}

// asymmetric is a server that is off by nearly half its delay.
func asymmetric() *clocksim.NTP {
	return &clocksim.NTP{Poll: 4, Forward: 5 * time.Millisecond, Jitter: 100 * time.Microsecond, RootDispersion: 20e-6}
}

// The tests of a day could not fail if the figures were generous, or if truth and
// bound came from the same place. These show that they can: break one thing that the
// bound stands on, and the coverage is lost.
func TestCoverageIsLostWithAChronydThatUnderstatesItsError(t *testing.T) {
	if c := control(t, quartz(50e-6), asymmetric(), nil, hours(2)).coverage(); c != 1 {
		t.Errorf("coverage %.4f with a correct chronyd", c)
	}
	understate := func(t *clocksim.Tracking) { t.RootDelay, t.RootDispersion = t.RootDelay*0.9, t.RootDispersion*0.1 }
	if c := control(t, quartz(50e-6), asymmetric(), understate, hours(2)).coverage(); c > 0.5 {
		t.Errorf("coverage %.4f with a chronyd that understates its error by a tenth", c)
	}
}

func TestCoverageIsLostWithAChronydThatHidesItsOffset(t *testing.T) {
	// A slow correction leaves an offset for chronyd to report.
	o := quartz(50e-6)
	o.Ramps = []clocksim.Ramp{{From: minutes(30), Over: hours(1), Change: 1000e-6}}
	hide := func(t *clocksim.Tracking) { t.Correction, t.Skew, t.Residual, t.RootDispersion = 0, 0, 0, 1e-6 }
	if c := control(t, o, serialPulse(nil, nil), hide, hours(1.5)).coverage(); c > 0.99 {
		t.Errorf("coverage %.4f", c)
	}
}

// chronyd's maxclockerror is a promise about the oscillator: 1 ppm by default.
func TestCoverageIsLostInHoldoverWithAnOscillatorBeyondMaxClockError(t *testing.T) {
	for change, lost := range map[float64]bool{0.5e-6: false, 5e-6: true} {
		o := quartz(50e-6)
		o.Ramps = []clocksim.Ramp{{From: hours(1), Over: minutes(10), Change: change}}
		c := control(t, o, serialPulse(during(span{hours(1), hours(4)}), nil), nil, hours(4)).coverage()
		if (c < 0.999) != lost {
			t.Errorf("the rate changes by %g ppm during a holdover: coverage %.4f", change*1e6, c)
		}
	}
}

// While the clock is corrected its error was larger when the packet was sent than
// when it is concluded, so a sender must not read its clock at the end alone.
func TestSenderMustStoreItsClockBoundWhenItSends(t *testing.T) {
	for _, forgetful := range []bool{false, true} {
		w := newSimulation(simSeed)
		local := newSimHost(w, quartz(50e-6), 0, clocksim.Config{Source: serialPulse(during(span{hours(1), hours(7)}), nil)})
		remote := newSimHost(w, quartz(-12e-6), 0, clocksim.Config{Source: serialPulse(nil, nil)})
		p := &simPath{simulation: w, local: local, remote: remote, forgetful: forgetful, delays: func(time.Duration) (time.Duration, time.Duration) {
			return 30 * time.Millisecond, 80 * time.Millisecond
		}}
		p.play(hours(7.2), []scene{{at: 0, name: "settling"}, {at: hours(7), name: "pulse back after 6 hours"}})
		t.Log(forgetful, p.table())
		if wrong := p.phases[1].valid - p.phases[1].covered; (wrong > 0) != forgetful {
			t.Errorf("forgetful %v: %d delays are not covered: %v", forgetful, wrong, p.phases[1].missed)
		}
	}
}
