package rules

import (
	"testing"
	"time"

	"oneway.example/exporter/core/pathstate"
	"oneway.example/exporter/core/rules"
	"oneway.example/exporter/probes/stamp"
)

// TestStateOfAPathAndAlertsHaveTheSameLimits: a reader of both sees no contradiction unless a limit was changed at one of them.
func TestStateOfAPathAndAlertsHaveTheSameLimits(t *testing.T) {
	o := stamp.DefaultOptions()
	seconds := func(d time.Duration) float64 { return d.Seconds() }
	for of, c := range map[string]struct{ state, alerts float64 }{
		"max_loss":       {o.MaxLoss, rules.ThresholdLossRatio.Default},
		"lost packets":   {pathstate.FewFaults, rules.ThresholdLossPackets.Default},
		"max_delay":      {seconds(o.MaxDelay), rules.ThresholdDelaySeconds.Default},
		"max_delay_rise": {seconds(o.MaxDelayRise), rules.ThresholdDelayBlowUpSeconds.Default},
		"p95":            {pathstate.SlowShare, 0.05},
		"window":         {seconds(pathstate.Recent), 300},
	} {
		if c.state != c.alerts {
			t.Errorf("%s: %v, the alerts have %v", of, c.state, c.alerts)
		}
	}
}
