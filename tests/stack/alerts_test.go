package stack

import (
	"maps"
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
		s.expectAlerts(t, began, map[string]string{"alertname": "OnewayDelayBlowUp", "path": path.path, "direction": path.direction})
	}
}

// expectAlerts waits until each store's alert with these labels has reached the webhook, and prints the times.
func (s *stack) expectAlerts(t *testing.T, began time.Time, labels map[string]string) {
	t.Helper()
	for _, p := range s.stores {
		labels := maps.Clone(labels)
		labels["store"] = p.name
		var at time.Time
		if !await.Within(3*alertWithin-time.Since(began), func() (arrived bool) { at, arrived = s.alerts.first(began, labels); return arrived }) {
			t.Errorf("no alert with %v within %v; alerts: %v", labels, time.Since(began), s.alerts.names(began))
			continue
		}
		t.Logf("%s %s of %s arrived after %.1f s", labels["alertname"], labels["path"], p.name, at.Sub(began).Seconds())
		if took := at.Sub(began); took > alertWithin {
			t.Errorf("alert with %v took %v, want at most %v", labels, took, alertWithin)
		}
	}
}

// hasBaseline waits until the store compares all delays with their baselines, and none is above its threshold.
func (p *store) hasBaseline(t *testing.T) {
	t.Helper()
	await.That(t, p.name+" compares the delays with their baselines", func() bool {
		return len(p.query(t, "oneway:delay_excess_seconds")) == 4
	})
	const blownUp = `ALERTS{alertname="OnewayDelayBlowUp"}`
	// The quantile is that of 5 minutes.
	if !await.Within(6*time.Minute, func() bool { return len(p.query(t, blownUp)) == 0 }) {
		t.Fatalf("%s: %v before the blow-up: the machine is too busy", p.name, p.query(t, blownUp))
	}
}
