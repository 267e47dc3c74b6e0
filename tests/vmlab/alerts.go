package vmlab

import (
	"context"

	"oneway.example/tests/vmlab/alerting"
)

// steppedAlert looks back over 15 minutes, which is longer than the lab runs: once it
// fires it does so to the end.
const steppedAlert = "OnewayClockStepped"

// CheckAlerts evaluates the rules in the directory rules over the series of both agents
// during the scenarios: the alert of a scenario fires in it, and not before; in the
// steady state only that of the steps before it fires. It returns the number of alerts
// that fired.
func (l *Lab) CheckAlerts(ctx context.Context, rules string, results []*Result) (fired int, err error) {
	if len(results) == 0 {
		return 0, nil
	}
	var hosts []alerting.Host
	for _, h := range []*Host{l.Local, l.Remote} {
		metrics, err := h.metrics.get()
		if err != nil {
			return 0, err
		}
		hosts = append(hosts, alerting.Host{Name: h.Name, Metrics: metrics})
	}
	clock := alerting.Clock{Line: l.Line, Start: results[0].Span.From}
	expect := expectations(clock, results)
	for _, e := range expect {
		if e.Fires != "" {
			fired++
		}
	}
	return fired, alerting.Check(ctx, rules, clock, hosts, expect)
}

func expectations(clock alerting.Clock, results []*Result) (expect []alerting.Expect) {
	stepped := false
	flaky := map[string]bool{} // whose alert may still fire when they run again
	for _, r := range results {
		e := alerting.Expect{
			Name: r.Scenario.Name, From: clock.Second(r.Span.From), To: clock.Second(r.Span.To),
			Fires: r.Scenario.Alert, Lasting: stepped && r.Scenario.Alert == steppedAlert || flaky[r.Scenario.Name], Besides: []string{steppedAlert},
		}
		stepped = stepped || r.Scenario.Alert == steppedAlert
		flaky[r.Scenario.Name] = r.Flaky
		if !r.Flaky && (e.Fires != "" || r.Scenario.steady()) {
			expect = append(expect, e)
		}
	}
	return expect
}
