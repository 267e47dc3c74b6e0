package vmlab

import "time"

// Bring starts chronyd with a pulse, and the agent, on both guests.
func (l *Lab) bring() error {
	return l.Both(func(h *Host) error {
		if err := h.Chronyd(pulseRefclock, "makestep 0.1 3"); err != nil {
			return err
		}
		return h.Pulse(0)
	})
}

// settleTime is how long chronyd may take to be as good as it gets.
const settleTime = 45 * time.Second

// Scenarios are all of them, in the order in which they are run. The first brings
// the lab up; each takes over what the one before has left: two clocks disciplined by
// a pulse.
func Scenarios() []Scenario {
	return []Scenario{coldStart(), steady()}
}

// coldStart: the clocks are seconds wrong when chronyd and the agent start.
func coldStart() Scenario {
	return Scenario{
		Name: "cold start", States: []string{"silent", "unsynchronised", "stepping", "synchronised"}, Reason: "near_stepped",
		Metric: "oneway_clock_steps_total grows", Alert: "OnewayClockUnsynchronised",
		Met: func(v *Values) bool { return v.Grew("oneway_clock_steps_total{chrony}") >= 1 },
		Do: func(r *Run) error {
			if err := r.Near.Step(3700 * time.Millisecond); err != nil {
				return err
			}
			if err := r.Far.Step(-2100 * time.Millisecond); err != nil {
				return err
			}
			if err := r.Far.Agent(farConfig); err != nil {
				return err
			}
			if err := r.Near.Agent(nearConfig); err != nil {
				return err
			}
			time.Sleep(2 * time.Second)
			if err := r.bring(); err != nil {
				return err
			}
			return r.Settle(settleTime)
		},
	}
}

// steady: nothing happens. It is the thesis's check on a LAN, figure 4.3.
func steady() Scenario {
	return Scenario{
		Name: "PPS, steady", States: []string{"synchronised"},
		Metric: "oneway_clock_error_bound_seconds is there",
		Met:    func(v *Values) bool { return v.Appeared("oneway_clock_error_bound_seconds") },
		Do:     func(*Run) error { time.Sleep(20 * time.Second); return nil },
	}
}
