package udptraffic

import (
	"testing"
	"time"

	"oneway.example/exporter/clock/clocktest"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/tests/remoteend"
)

func TestClocksAreSampledDuringATransfer(t *testing.T) {
	for _, d := range sample.Directions() {
		lost := func() *clocktest.Passing {
			return &clocktest.Passing{After: 50 * time.Millisecond, Until: 700 * time.Millisecond, Bound: sample.Bound{Reason: sample.ClockSilent}}
		}
		p := ready(t)
		p.serving.remote.env.Clock = lost()
		c := &carrier{client: p.Client, session: p.session, remote: p.at(), clock: lost(), drain: remoteend.Timeout}
		plan := startOf(1, d).Plan
		plan.Segments[0].Bursts = 1000
		out, err := c.Transfer(t.Context(), d, plan, 0, func(loadtest.Progress) {}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if l, r := out.Local, out.Remote; l.Before.Reason != "ok" || r.Before.Reason != "ok" || l.After.Reason != "clock_silent" || r.After.Reason != "clock_silent" {
			t.Errorf("%s: local %+v, remote %+v", d, l, r)
		}
	}
}
