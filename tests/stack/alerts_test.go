package stack

import (
	"maps"
	"net/http"
	"testing"
	"time"

	"oneway.example/tests/await"
)

// alertWithin is the longest time from a fault to its alert at the webhook.
const alertWithin = 60 * time.Second

// TestStack raises the stack once: its tests follow each other, because Prometheus needs minutes of history.
func TestStack(t *testing.T) {
	s := raise(t)
	t.Run("a delay blow-up reaches the webhook within a minute", s.blowUp)
	t.Run("a lost pulse reaches the webhook", s.lostPulse)
	t.Run("a run has the same numbers in all sinks", s.sameRun)
	t.Run("every expression of the dashboards has a result", s.dashboards)
	t.Run("killed stores lose nothing", s.killed)
}

// lostPulse stops the pulse of b.
func (s *stack) lostPulse(t *testing.T) {
	labels := map[string]string{"instance": "b:9862", "pps": "pps0"}
	for _, p := range s.stores {
		p.eventually(t, `oneway_pps_pulses_total{instance="b:9862"} > 10`)
	}
	began := time.Now()
	s.setHost(t, s.b, "pulse.stopped=true")
	defer s.setHost(t, s.b, "pulse.stopped=false")
	s.expectAlerts(t, began, merged(labels, map[string]string{"alertname": "OnewayPPSLost"}), 3*alertWithin)
}

// blowUp delays the packets of one direction.
func (s *stack) blowUp(t *testing.T) {
	for _, p := range s.stores {
		p.hasBaseline(t)
	}
	began := time.Now()
	s.setLink(t, blownUp)
	defer s.setLink(t, healthy)
	for _, path := range []struct{ path, direction string }{{pathA, "forward"}, {pathB, "reverse"}} {
		s.expectAlerts(t, began, map[string]string{"alertname": "OnewayDelayBlowUp", "path": path.path, "direction": path.direction}, alertWithin)
	}
}

// expectAlerts waits until each store's alert with these labels has reached the webhook, and prints the times.
func (s *stack) expectAlerts(t *testing.T, began time.Time, labels map[string]string, limit time.Duration) {
	t.Helper()
	for _, p := range s.stores {
		labels := maps.Clone(labels)
		labels["store"] = p.name
		var at time.Time
		if !await.Within(3*limit-time.Since(began), func() (arrived bool) { at, arrived = s.alerts.first(began, labels); return arrived }) {
			t.Errorf("no alert with %v within %v; alerts: %v", labels, time.Since(began), s.alerts.names(began))
			continue
		}
		t.Logf("%s %s of %s arrived after %.1f s", labels["alertname"], labels["path"]+labels["pps"], p.name, at.Sub(began).Seconds())
		if took := at.Sub(began); took > limit {
			t.Errorf("alert with %v took %v, want at most %v", labels, took, limit)
		}
	}
}

// eventually waits until an instant query has a result.
func (p *store) eventually(t *testing.T, query string) []sample {
	t.Helper()
	var found []sample
	if !await.Within(settle, func() bool {
		var err error
		found, err = p.try(t, query)
		return err == nil && len(found) > 0
	}) {
		t.Fatalf("%s: %s: no result within %v", p.name, query, settle)
	}
	return found
}

// settle is the longest time until clocks, scrapes and rules have their values.
const settle = 4 * time.Minute

// setHost changes the simulated receiver and pulse of a host.
func (s *stack) setHost(t *testing.T, host *service, query string) {
	t.Helper()
	response, err := http.Post(host.url(t, "9863")+"/set?"+query, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("host %s: %s: %s", host.name, query, response.Status)
	}
}

// hasBaseline waits until the store compares all delays with their baselines, and none is above its threshold.
func (p *store) hasBaseline(t *testing.T) {
	t.Helper()
	p.eventually(t, "count(oneway:delay_excess_seconds) == 4")
	const blownUp = `ALERTS{alertname="OnewayDelayBlowUp"}`
	// The quantile is that of 5 minutes.
	if !await.Within(6*time.Minute, func() bool { return len(p.query(t, blownUp)) == 0 }) {
		t.Fatalf("%s: %v before the blow-up: the machine is too busy", p.name, p.query(t, blownUp))
	}
}
