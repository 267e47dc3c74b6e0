package vmlab

import (
	"fmt"
	"strings"
	"time"

	"oneway.example/tests/vmlab/record"
)

// The delays of the asymmetric path.
const (
	asymmetricForward = 30 * time.Millisecond
	asymmetricReverse = 80 * time.Millisecond
)

// asymmetric: the path is slower in reverse. Half of the round trip is 25 ms
// wrong.
func asymmetric() Scenario {
	return Scenario{
		Name: "path 30/80 ms", States: []string{"synchronized"},
		Metric: "oneway_delay_error_bound_seconds is there",
		Met:    func(local, _ *Values) bool { return local.Appeared("oneway_delay_error_bound_seconds", "") },
		Do: func(r *Run) error {
			return inTurn(
				func() error { return r.Local.netem(asymmetricForward) },
				func() error { return r.Remote.netem(asymmetricReverse) },
				pause(12*time.Second),
			)
		},
		Mend: func(r *Run) error {
			return inTurn(func() error { return r.Local.netem(0) }, func() error { return r.Remote.netem(0) }, pause(time.Second))
		},
		After: asymmetricSeen,
	}
}

// asymmetricSeen checks the least delay that netem added, and the true median of each
// direction: a busy host may delay further, which is no fault.
func asymmetricSeen(j *Judgment) error {
	bound := quantile(j.Bounds, 1)
	for dir, least := range []time.Duration{asymmetricForward, asymmetricReverse} {
		got, really := quantile(j.Values[dir], 0.5), quantile(j.True[dir], 0.5)
		if really < least || (got-really).Abs() > bound {
			return fmt.Errorf("the median delay of direction %d is %v, truly %v; want the same within %v, and at least %v", dir, got, really, bound, least)
		}
	}
	return nil
}

// netem delays packets of the host after the transmit timestamp; 0: ends the delay.
func (h *Host) netem(delay time.Duration) error {
	if _, err := h.Do(record.Command{Do: record.Load, Args: []string{"sch_netem"}}); err != nil {
		return err
	}
	command := "tc qdisc del dev vec0 root"
	if delay > 0 {
		command = fmt.Sprintf("tc qdisc replace dev vec0 root netem delay %dus limit 10000", delay.Microseconds())
	}
	_, err := h.Run(strings.Fields(command)...)
	return err
}
