package stack

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"oneway.example/tests/await"
)

// killed kills the servers one after the other.
func (s *stack) killed(t *testing.T) {
	for _, p := range s.stores {
		t.Run(p.name, func(t *testing.T) { p.keepsSamples(t) })
	}
	t.Run("influxdb", s.keepsPoints)
	if smoke() {
		return
	}
	t.Run("alertmanager", s.keepsAlerts)
	t.Run("telegraf", s.keepsReading)
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
	p.kill(t)
	time.Sleep(15 * time.Second) // a scrape is missed
	p.startAgain(t)
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
	s.alertmanager.kill(t)
	s.alertmanager.startAgain(t)
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

// scraped are the times of the agent's points of one series in a database, in ms; the agent has one every 10 s.
func (s *stack) scraped(t *testing.T, database string) (times []int64) {
	t.Helper()
	for _, one := range s.influxQL(t, database, "SELECT packets_sent_total FROM oneway_packets WHERE path = '"+pathA+"' AND direction = 'forward'") {
		for _, row := range one.Values {
			at, _ := row[0].(float64)
			times = append(times, int64(at))
		}
	}
	return times
}

// keepsPoints: the points that InfluxDB has accepted are there after SIGKILL, and the agent delivers those of the outage, with
// a run in it.
func (s *stack) keepsPoints(t *testing.T) {
	before := s.scraped(t, agentDB)
	last := s.ran(t, "tcp")
	s.influx.kill(t)
	var run header
	if !s.runsSettle(t, func() bool { run = s.ran(t, "tcp"); return run.ID != last.ID }) {
		t.Fatalf("no completed run of tcp while the store is away; all runs: %+v", s.runs(t))
	}
	time.Sleep(15 * time.Second) // the outage ends after the run, so that its points have been refused
	values, end := s.report(t, run)
	away := time.Now().UnixMilli()
	s.influx.startAgain(t)
	s.influx.serves(t, "8086", "/ping")
	var after []int64
	if !await.Within(settle, func() bool { after = s.scraped(t, agentDB); return len(after) > 0 && after[len(after)-1] > away }) {
		t.Fatalf("the last of %d points is before the end of the outage", len(after))
	}
	if len(after) < len(before) || !slices.Equal(before, after[:len(before)]) {
		t.Errorf("of %d points before SIGKILL, %d of any time are there after it", len(before), len(after))
	}
	for i := 1; i < len(after); i++ {
		if d := after[i] - after[i-1]; d < 9000 || d > 11000 {
			t.Errorf("%d ms between two points, want one every 10 s", d)
		}
	}
	s.inInflux(t, run, values, end)
	for _, p := range s.stores {
		if lost := p.query(t, `sum(oneway_output_points_total{result!="written"}) > 0`); len(lost) > 0 {
			t.Errorf("the agent's output has lost points: %v", lost)
		}
	}
	t.Logf("InfluxDB has %d points without a gap, %d of them from before SIGKILL, and the run of the outage", len(after), len(before))
}

// keepsReading: Telegraf goes on after SIGKILL, and what the agent counted meanwhile is in its next point.
func (s *stack) keepsReading(t *testing.T) {
	before := s.scraped(t, telegrafDB)
	killedAt := time.Now()
	s.b.run(t, "pkill", "-KILL", "-x", "telegraf")
	var after []int64
	if !await.Within(settle, func() bool {
		after = s.scraped(t, telegrafDB)
		return len(after) > 0 && after[len(after)-1] > killedAt.Add(20*time.Second).UnixMilli()
	}) {
		t.Fatal("no points after SIGKILL")
	}
	// A point that was scraped and not yet delivered may be lost with the process; none that InfluxDB had.
	if len(after) < len(before) || !slices.Equal(before, after[:len(before)]) {
		t.Errorf("%d points before SIGKILL, %d after it", len(before), len(after))
	}
	for i := 1; i < len(after); i++ {
		if after[i]-after[i-1] > 30_000 {
			t.Errorf("%d ms between two points", after[i]-after[i-1])
		}
	}
	ending := s.ran(t, "tcp")
	values, end := s.report(t, ending)
	s.inInflux(t, ending, values, end)
}
