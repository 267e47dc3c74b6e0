package vmlab

import (
	"time"

	"oneway.example/tests/vmlab/record"
)

// settleTime is how long chronyd may take to be as good as it gets.
const settleTime = 45 * time.Second

// Scenarios are all of them, in the order in which they are run. The first brings
// the lab up; each takes over what the one before has left: two clocks disciplined by
// a pulse.
func Scenarios() []Scenario {
	return []Scenario{
		coldStart(), steady(), lan(),
		offset(), drift(),
		stepped("step forward 1 s", time.Second), stepped("step back 1 s", -time.Second),
		pulseLost(), leap(), asymmetric(), remoteUnsynchronized(),
		sentencesLate(), unplugged(), killed(),
	}
}

// pulse starts chronyd with a pulse alone.
func (h *Host) pulse(lines ...string) error {
	if err := h.Chronyd(append([]string{pulseRefclock}, lines...)...); err != nil {
		return err
	}
	return h.Pulse(0)
}

// restart begins chronyd anew, with a pulse.
func (h *Host) restart(lines ...string) error {
	return inTurn(h.KillChronyd, func() error { return h.pulse(lines...) })
}

// renew begins chronyd anew, with a pulse, and waits until it has the clock again.
func (h *Host) renew() error {
	return inTurn(
		func() error { return h.restart("makestep 0.01 3") },
		// Until the agent has heard the new one, it says what the old one said.
		func() error { return h.Until(settleTime, "unsynchronized", In("unsynchronized")) },
		func() error { return h.Until(settleTime, "synchronized again", recent) },
	)
}

// coldStart: the clocks are seconds wrong when chronyd and the agent start.
func coldStart() Scenario {
	return Scenario{
		Name: "cold start", States: []string{"silent", "unsynchronized", "stepping", "synchronized"}, Reason: "local_stepped",
		Metric: "oneway_clock_steps_total grows", Alert: "OnewayClockStepped",
		Met: func(local, _ *Values) bool { return local.Grew("oneway_clock_steps_total{chrony}") >= 1 },
		Do: func(r *Run) error {
			return inTurn(
				func() error { return r.Local.Set(3700 * time.Millisecond) },
				func() error { return r.Remote.Set(-2100 * time.Millisecond) },
				func() error { return r.Remote.Agent(remoteConfig) },
				func() error { return r.Local.Agent(localConfig) },
				pause(2*time.Second),
				func() error { return r.Both(func(h *Host) error { return h.pulse("makestep 0.1 3") }) },
				func() error { return r.Settle(settleTime, settledBound) },
			)
		},
	}
}

// steady: nothing happens.
func steady() Scenario {
	return Scenario{
		Name: steadyName, States: []string{"synchronized"},
		Metric: "oneway_clock_error_bound_seconds is there, kind is pps",
		Met:    disciplined,
		Do:     pauses(20 * time.Second),
	}
}

// disciplined is what the metrics say of a clock that follows a pulse.
func disciplined(local, _ *Values) bool {
	return local.Appeared("oneway_clock_error_bound_seconds", "") && local.Has("oneway_clock_reference_info", ",pps}")
}

const steadyName = "PPS, steady"

// offset: chronyd starts with a clock that is 50 ms fast, and slews it.
func offset() Scenario {
	return Scenario{
		Name: "offset 50 ms", States: []string{"stepping", "synchronized"}, Reason: "local_stepped",
		Metric: "oneway_clock_steps_total grows", Alert: "OnewayClockStepped",
		Met: func(local, _ *Values) bool { return local.Grew("oneway_clock_steps_total{chrony}") >= 1 },
		Do: func(r *Run) error {
			return inTurn(
				r.Local.KillChronyd,
				func() error { return r.Local.Step(50 * time.Millisecond) },
				func() error { return r.Local.pulse() },
				func() error { return r.Local.Until(settleTime, "synchronized", In("synchronized")) },
				pause(8*time.Second),
			)
		},
	}
}

// drift: chronyd and the agent start with a clock that is 50 ppm faster than chronyd
// believes. The agent starts anew, too, because no crystal changes so much under it.
func drift() Scenario {
	return Scenario{
		Name: "drift 50 ppm", States: []string{"unsynchronized", "synchronized"}, Reason: "local_unsynchronized",
		Metric: "oneway_clock_skew_ratio is there",
		Met:    func(local, _ *Values) bool { return local.Appeared("oneway_clock_skew_ratio", "") },
		Do: func(r *Run) error {
			return inTurn(
				r.Local.StopAgent, r.Local.KillChronyd,
				func() error { return r.Local.Rate(int64((-Drift + 50e-6) * 1e9)) },
				func() error { return r.Local.pulse() },
				func() error { return r.Local.Agent(localConfig) },
				func() error { return r.Local.Until(settleTime, "unsynchronized", In("unsynchronized")) },
				func() error { return r.Local.Until(settleTime, "synchronized", In("synchronized")) },
				pause(8*time.Second),
			)
		},
	}
}

// recent is the condition that a chronyd that was started anew is synchronized.
func recent(s record.State) bool { return s.State == "synchronized" && s.Bound < time.Millisecond }

// stepped: somebody steps the clock under chronyd, which slews it back.
func stepped(name string, by time.Duration) Scenario {
	return Scenario{
		Name: name, States: []string{"synchronized", "stepping", "synchronized"}, Reason: "local_stepped",
		Metric: "oneway_clock_steps_total grows", Alert: "OnewayClockStepped",
		Met: func(local, _ *Values) bool { return local.Grew("oneway_clock_steps_total{chrony}") >= 1 },
		Do: func(r *Run) error {
			return inTurn(
				pause(time.Second),
				func() error { return r.Local.Step(by) },
				func() error { return r.Local.Until(settleTime, "stepping", In("stepping")) },
				func() error { return r.Local.Until(settleTime, "synchronized", In("synchronized")) },
				pause(12*time.Second),
			)
		},
		// chronyd's dispersion would tell of the step for minutes.
		Mend: func(r *Run) error {
			return r.Local.renew()
		},
	}
}

// pulseLost: the pulse is away for some twenty seconds, which at a poll of 2 s in
// place of 16 s are what three minutes are elsewhere. Ten minutes are simulated in testnet.
func pulseLost() Scenario {
	return Scenario{
		Name: "PPS lost", Coarse: true, States: []string{"synchronized", "holdover", "synchronized"},
		Metric: `oneway_clock_state{state="holdover"} is 1`, Alert: "OnewayClockHoldover",
		Met: func(local, _ *Values) bool { return local.Reached("oneway_clock_state{chrony,holdover}", 1) },
		Do: func(r *Run) error {
			return inTurn(
				r.Local.NoPulse,
				func() error { return r.Local.Until(settleTime, "holdover", In("holdover")) },
				pause(10*time.Second),
				func() error { return r.Local.Pulse(0) },
				func() error { return r.Local.Until(settleTime, "synchronized", In("synchronized")) },
				pause(3*time.Second),
			)
		},
	}
}

// leap: the source announces a leap second. None comes: it would at the end of a month.
func leap() Scenario {
	return Scenario{
		Name: "leap second announced", States: []string{"synchronized"},
		Metric: `oneway_clock_reference_info{leap_status="insert_second"} is there`, Alert: "OnewayLeapSecondPending",
		Met: func(local, _ *Values) bool {
			return local.Appeared("oneway_clock_reference_info", "insert_second")
		},
		Do: func(r *Run) error {
			return inTurn(func() error { return r.Local.Pulse(1) }, pause(8*time.Second), func() error { return r.Local.Pulse(0) }, pause(4*time.Second))
		},
	}
}

// remoteUnsynchronized: the remote chronyd hears no source.
func remoteUnsynchronized() Scenario {
	return Scenario{
		Name: "remote end unsynchronized", States: []string{"synchronized", "unsynchronized", "synchronized"}, Remote: true, Reason: "remote_unsynchronized",
		Metric: "oneway_remote_clock_synchronized is 0", Alert: "OnewayRemoteClockUnsynchronized",
		Met: func(local, _ *Values) bool { return local.Reached("oneway_remote_clock_synchronized{lab,stamp}", 0) },
		Do: func(r *Run) error {
			return inTurn(
				r.Remote.KillChronyd, r.Remote.NoPulse,
				func() error { return r.Remote.Chronyd() },
				func() error { return r.Remote.Until(settleTime, "unsynchronized", In("unsynchronized")) },
				r.forbid(8*time.Second),
				func() error { return r.Remote.restart() },
				func() error { return r.Remote.Until(settleTime, "synchronized", In("synchronized")) },
				pause(3*time.Second),
			)
		},
	}
}

// killed: chronyd is killed, and started again when its last word is too old to
// be believed.
func killed() Scenario {
	return Scenario{
		Name: "chronyd killed, restarted", States: []string{"synchronized", "silent", "synchronized"}, Reason: "clock_silent",
		Metric: `oneway_clock_state{state="silent"} is 1`, Alert: "OnewayClockDataAbsent",
		Met: func(local, _ *Values) bool { return local.Reached("oneway_clock_state{chrony,silent}", 1) },
		Do: func(r *Run) error {
			return inTurn(
				r.Local.KillChronyd,
				func() error { return r.Local.Until(settleTime, "silent", In("silent")) },
				r.forbid(2*time.Second),
				func() error { return r.Local.pulse() },
				func() error { return r.Local.Until(settleTime, "synchronized", In("synchronized")) },
				pause(3*time.Second),
			)
		},
	}
}
