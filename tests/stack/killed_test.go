package stack

import (
	"fmt"
	"testing"
	"time"

	"oneway.example/tests/await"
)

// killed kills the servers one after the other.
func (s *stack) killed(t *testing.T) {
	for _, p := range s.stores {
		t.Run(p.name, func(t *testing.T) { p.keepsSamples(t) })
	}
	t.Run("alertmanager", s.keepsAlerts)
}

// keepsSamples: every sample that a query had before SIGKILL is there after the restart, and counters go on without a
// reset: what was counted while the server was away is in the next scrape.
func (p *store) keepsSamples(t *testing.T) {
	const counter = `oneway_packets_sent_total{path="` + pathA + `",direction="forward"}`
	killedAt := time.Now()
	before := p.samples(t, counter, killedAt)
	if len(before) < 3 {
		t.Fatalf("%d samples before SIGKILL, want more", len(before))
	}
	p.service.killed(t, 15*time.Second)
	p.serves(t, "9090", "/-/ready")
	for at, value := range before {
		if after := p.samples(t, counter, killedAt)[at]; after != value {
			t.Errorf("%s: the sample at %v is %q after the restart, %q before", p.name, at, after, value)
		}
	}
	p.eventually(t, fmt.Sprintf("timestamp(%s) > %d", counter, killedAt.Unix()+15))
	if resets := p.query(t, "resets("+counter+"[10m])"); len(resets) != 1 || resets[0].number(t) != 0 {
		t.Errorf("%s: resets %v, want 0", p.name, resets)
	}
	t.Logf("%s: %d samples before SIGKILL are there after it", p.name, len(before))
}

// samples are the raw samples of one series in the 5 minutes before a time, by their timestamps.
func (p *store) samples(t *testing.T, series string, end time.Time) map[float64]string {
	t.Helper()
	out := map[float64]string{}
	for _, m := range p.query(t, fmt.Sprintf("%s[5m] @ %.3f", series, float64(end.UnixMilli())/1e3)) {
		for _, v := range m.Values {
			at, _ := v[0].(float64)
			text, _ := v[1].(string)
			out[at] = text
		}
	}
	return out
}

// keepsAlerts: after SIGKILL Alertmanager has the firing alert of a lost pulse again, of each store.
func (s *stack) keepsAlerts(t *testing.T) {
	s.setHost(t, s.b, "pulse.stopped=true")
	defer s.setHost(t, s.b, "pulse.stopped=false")
	lost := func() bool { return s.active(t, "OnewayPPSLost") == len(s.stores) }
	if !await.Within(settle, lost) {
		t.Fatalf("%d alerts OnewayPPSLost, want one of each store", s.active(t, "OnewayPPSLost"))
	}
	began := time.Now()
	s.alertmanager.killed(t, 0)
	s.alertmanager.serves(t, "9093", "/-/ready")
	if !await.Within(settle, lost) {
		t.Fatalf("%d alerts OnewayPPSLost after SIGKILL, want one of each store", s.active(t, "OnewayPPSLost"))
	}
	t.Logf("alertmanager has the alerts again %.0f s after SIGKILL", time.Since(began).Seconds())
}

// active is the number of Alertmanager's active alerts of a name.
func (s *stack) active(t *testing.T, name string) (n int) {
	t.Helper()
	var all []struct {
		Labels map[string]string `json:"labels"`
	}
	getJSON(t, s.alertmanager.url(t, "9093")+"/api/v2/alerts?active=true", &all)
	for _, a := range all {
		if a.Labels["alertname"] == name {
			n++
		}
	}
	return n
}
