package chrony

import (
	"testing"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/sample"
	"oneway.example/tests/clocksim"
)

// The days below are the same in each run: all chance comes from this. The shares that their scenes expect are a day's.
const simSeed = 4

// quartz is the oscillator of a computer, off by rate if left alone.
func quartz(rate float64) clocksim.Oscillator {
	return clocksim.Oscillator{Rate: rate, Walk: 1e-10, Day: 0.2e-6, Space: 0.02e-6}
}

// scene is a part of the day, up to the next, and what is expected of it.
type scene struct {
	at   time.Duration
	name string
	do   func() // at its start; may be nil
	// least and most are the share of valid delays; most 0: all.
	least, most float64
	state       clock.State   // that our own clock must have been seen in
	reason      sample.Reason // that some delay must have had
}

// play runs a day of scenes, each of which is a phase of its own.
func (p *simPath) play(until time.Duration, scenes []scene) {
	for _, s := range scenes {
		p.phases = append(p.phases, &simPhase{
			name: s.name, from: s.at, reasons: map[sample.Reason]int{}, states: map[clock.State]int{},
		})
		if s.do != nil {
			p.simulation.at(s.at, s.do)
		}
	}
	p.run(until)
}

// verify holds a day against what must hold.
func (p *simPath) verify(t *testing.T, scenes []scene) {
	t.Helper()
	t.Logf("seed %d%s", simSeed, p.table())
	for i, s := range scenes {
		ph := p.phases[i]
		valid := float64(ph.valid) / float64(ph.delays)
		switch {
		case ph.coverage() < 0.999:
			t.Errorf("%s: coverage %.4f %%: %v", s.name, 100*ph.coverage(), ph.missed)
		case ph.forbidden > 0:
			t.Errorf("%s: %d delays valid while a clock was worth nothing", s.name, ph.forbidden)
		case valid < s.least || s.most > 0 && valid > s.most:
			t.Errorf("%s: %.4f of the delays are valid: %v", s.name, valid, ph.reasons)
		case ph.states[s.state] == 0 || ph.reasons[s.reason] == 0:
			t.Errorf("%s: want state %v, reason %v; got %v, %v", s.name, s.state, s.reason, ph.states, ph.reasons)
		}
	}
	if all := p.total(); all.coverage() < 0.999 || all.delays < int(2*hours(24)/simEvery)-10 {
		t.Errorf("coverage of the day %.4f %%, %d delays", 100*all.coverage(), all.delays)
	}
}

func minutes(m float64) time.Duration { return time.Duration(m * float64(time.Minute)) }
func hours(h float64) time.Duration   { return time.Duration(h * float64(time.Hour)) }

// span is a part of the day.
type span struct{ from, to time.Duration }

// during is true within any of the spans.
func during(spans ...span) func(time.Duration) bool {
	return func(at time.Duration) bool {
		for _, s := range spans {
			if at >= s.from && at < s.to {
				return true
			}
		}
		return false
	}
}

// serialPulse is a serial receiver with a delay of 10 us and more, and an error allowance of 50 us.
func serialPulse(lost func(time.Duration) bool, bias func(time.Duration) float64) *clocksim.Pulse {
	return &clocksim.Pulse{
		Poll: 4, Latency: 10 * time.Microsecond, Jitter: 5 * time.Microsecond,
		Delay: 100e-6, Precision: 1e-6, Lost: lost, Bias: bias,
	}
}

// after is a bias from a moment on.
func after(moment time.Duration, bias float64) func(time.Duration) float64 {
	return func(at time.Duration) float64 {
		if at >= moment {
			return bias
		}
		return 0
	}
}

func TestBoundCoversADayOfPulses(t *testing.T) {
	w := newSimulation(simSeed)
	oscillator := quartz(50e-6)
	oscillator.Ramps = []clocksim.Ramp{{From: hours(20), Over: hours(1), Change: 3e-6}}
	local := newSimHost(w, oscillator, 50*time.Millisecond, clocksim.Config{Source: serialPulse(
		during(span{hours(3), hours(3) + minutes(10)}, span{hours(10), hours(16)}), after(hours(18), 35e-6))})
	remote := newSimHost(w, quartz(-12e-6), -3*time.Second, clocksim.Config{
		MakeStep: 1, StepLimit: 3, Source: serialPulse(during(span{hours(8), hours(8) + minutes(10)}), nil),
	})
	p := &simPath{simulation: w, local: local, remote: remote, delays: func(at time.Duration) (time.Duration, time.Duration) {
		if at >= hours(9) {
			return 30 * time.Millisecond, 80 * time.Millisecond
		}
		return 2 * time.Millisecond, 3 * time.Millisecond
	}}
	ok, remote0 := sample.OK, sample.RemoteUnsynchronized
	scenes := []scene{
		{0, "cold start: 50 ms and -3 s off, 50 ppm fast", nil, 0.97, 0.99, clock.Unsynchronized, sample.LocalUnsynchronized},
		{hours(1), "steady", nil, 1, 0, clock.Synchronized, ok},
		{hours(3), "pulse lost for 10 minutes", nil, 1, 0, clock.Holdover, ok},
		{hours(3) + minutes(10), "pulse back", nil, 0.99, 0, clock.Synchronized, ok},
		{hours(4), "local clock stepped by +1 s", func() { local.step(time.Second) }, 0.85, 0.999, clock.Stepping, sample.LocalStepped},
		{hours(4.5), "local clock stepped by -1 s", func() { local.step(-time.Second) }, 0.85, 0.999, clock.Stepping, sample.LocalStepped},
		{hours(5), "remote clock stepped by +1 s", func() { remote.step(time.Second) }, 0.85, 0.999, clock.Synchronized, remote0},
		{hours(5.5), "remote clock stepped by -1 s", func() { remote.step(-time.Second) }, 0.85, 0.999, clock.Synchronized, remote0},
		{hours(6), "local chronyd killed", local.kill, 0.05, 0.12, clock.Silent, sample.ClockSilent},
		{hours(6) + minutes(5), "local chronyd started again", func() { local.startDaemon(0.1e-6) }, 0.95, 0.999, clock.Unsynchronized, sample.LocalUnsynchronized},
		{hours(7), "remote chronyd restarted", func() { remote.startDaemon(0.1e-6) }, 0.97, 0.999, clock.Synchronized, remote0},
		{hours(8), "remote end unsynchronized", func() { remote.startDaemon(0) }, 0, 0.02, clock.Synchronized, remote0},
		{hours(8) + minutes(10), "remote end synchronized again", nil, 0.97, 0.999, clock.Synchronized, remote0},
		{hours(9), "path of 30 and 80 ms", nil, 1, 0, clock.Synchronized, ok},
		{hours(10), "pulse lost for 6 hours", nil, 1, 0, clock.Holdover, ok},
		{hours(16), "pulse back", nil, 0.99, 0, clock.Synchronized, ok},
		{hours(18), "pulse 35 us later, at its error allowance", nil, 1, 0, clock.Synchronized, ok},
		{hours(20), "warming up: 3 ppm in an hour", nil, 1, 0, clock.Synchronized, ok},
		{hours(21), "steady", nil, 1, 0, clock.Synchronized, ok},
	}
	p.play(hours(24), scenes)
	p.verify(t, scenes)
	if m := p.phases[1].median(); m > 200*time.Microsecond {
		t.Errorf("the median of both clocks' bounds together is %v", m)
	}
}

func TestBoundCoversADayOfServers(t *testing.T) {
	w := newSimulation(simSeed)
	// All of the local server's delay is in the forward direction, and its clock is off by its stated error: chronyd's
	// offset is wrong by nearly all of its bound.
	edge := &clocksim.NTP{
		Poll: 5, Forward: 10 * time.Millisecond, Jitter: 200 * time.Microsecond, RootDispersion: 300e-6,
		Bias: func(time.Duration) float64 { return -290e-6 },
		Lost: during(span{hours(3), hours(3) + minutes(10)}, span{hours(10), hours(16)}),
	}
	local := newSimHost(w, quartz(-50e-6), -50*time.Millisecond, clocksim.Config{Source: edge})
	remote := newSimHost(w, quartz(20e-6), 3*time.Second, clocksim.Config{MakeStep: 1, StepLimit: 3, Source: &clocksim.NTP{
		Poll: 6, Forward: 30 * time.Millisecond, Back: 80 * time.Millisecond, Jitter: time.Millisecond, RootDispersion: 20e-6,
		Lost: during(span{hours(8), hours(8) + minutes(10)}),
	}})
	p := &simPath{simulation: w, local: local, remote: remote, delays: func(time.Duration) (time.Duration, time.Duration) {
		return 30 * time.Millisecond, 80 * time.Millisecond
	}}
	ok, remote0 := sample.OK, sample.RemoteUnsynchronized
	scenes := []scene{
		{0, "cold start: -50 ms and 3 s off, 50 ppm slow", nil, 0.95, 0.9999, clock.Unsynchronized, sample.LocalUnsynchronized},
		{hours(1), "steady", nil, 1, 0, clock.Synchronized, ok},
		{hours(3), "server lost for 10 minutes", nil, 1, 0, clock.Holdover, ok},
		{hours(3) + minutes(10), "server back", nil, 0.99, 0, clock.Synchronized, ok},
		{hours(4), "local clock stepped by +1 s", func() { local.step(time.Second) }, 0.85, 0.999, clock.Stepping, sample.LocalStepped},
		{hours(4.5), "local clock stepped by -1 s", func() { local.step(-time.Second) }, 0.85, 0.999, clock.Stepping, sample.LocalStepped},
		{hours(5), "remote clock stepped by +1 s", func() { remote.step(time.Second) }, 0.85, 0.999, clock.Synchronized, remote0},
		{hours(5.5), "remote clock stepped by -1 s", func() { remote.step(-time.Second) }, 0.85, 0.999, clock.Synchronized, remote0},
		{hours(6), "local chronyd killed", local.kill, 0.05, 0.12, clock.Silent, sample.ClockSilent},
		{hours(6) + minutes(5), "local chronyd started again", func() { local.startDaemon(0.1e-6) }, 0.95, 0.9999, clock.Unsynchronized, sample.LocalUnsynchronized},
		{hours(7), "remote chronyd restarted", func() { remote.startDaemon(0.1e-6) }, 0.95, 0.9999, clock.Synchronized, remote0},
		{hours(8), "remote end unsynchronized", func() { remote.startDaemon(0) }, 0, 0.02, clock.Synchronized, remote0},
		{hours(8) + minutes(10), "remote end synchronized again", nil, 0.95, 0.9999, clock.Synchronized, remote0},
		{hours(10), "server lost for 6 hours", nil, 1, 0, clock.Holdover, ok},
		{hours(16), "server back", nil, 0.99, 0, clock.Synchronized, ok},
	}
	p.play(hours(24), scenes)
	p.verify(t, scenes)
}
