package agent

import (
	"testing"

	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/probe/report"
)

// A load test has one health after its last run: that run's in the list, before and after a restart of the agent. The health of a
// running prober is up after a run that is completed, else down.
func TestLoadTestHasOneHealth(t *testing.T) {
	for result, health := range map[string]Health{runreason.Completed: Up, runreason.Incomplete: Down, runreason.Refused: Down, runreason.Failed: Down} {
		run := report.Header{Path: "p", Probe: "tcp", Kind: "tcp", Result: result}
		if now, restarted, listed := loadTestHealth(health, &run), loadTestHealth(Starting, &run), RunHealth(run); now != listed || restarted != listed {
			t.Errorf("%s: the health is %s, %s after a restart; want %s, as in the list", result, now, restarted, listed)
		}
	}
	if h := loadTestHealth(Starting, nil); h != Starting {
		t.Errorf("no run: the health is %s; want %s", h, Starting)
	}
}
