package stack

import (
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"oneway.example/tests/await"
)

// alertWithin is the longest time from a fault to its alert at the webhook.
const alertWithin = 60 * time.Second

// TestStack starts the stack once: its tests follow each other, because Prometheus needs minutes of history.
func TestStack(t *testing.T) {
	s := startStack(t)
	if !smoke() {
		time.Sleep(6 * time.Minute) // rules read 5 minutes, and incident reports need a baseline of 5
	}
	t.Run("faults", func(t *testing.T) {
		t.Run("a delay blow-up reaches the webhook within a minute", func(t *testing.T) { t.Parallel(); s.blowUp(t) })
		t.Run("a lost pulse reaches the webhook", func(t *testing.T) { t.Parallel(); s.lostPulse(t) })
	})
	t.Run("a run has the same numbers in all sinks", s.sameRun)
	t.Run("every expression of the dashboards has a result", s.dashboards)
	t.Run("every statement of the raw points has a result", s.rawPanels)
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
	s.lostInLines(t, began)
}

// lostInLines: Telegraf's clock plugin on b, and the clock's series that it delivers, have the age of the last pulse.
func (s *stack) lostInLines(t *testing.T, stopped time.Time) {
	t.Helper()
	var line string
	await.That(t, "Telegraf's line protocol has a pulse that is 30 s old", func() bool {
		line = s.b.run(t, "sh", "-c", "grep ^oneway_pps,host=b, "+lines+" | tail -1")
		at, pulse := lineTime(line), lineField(line, "pps_last_pulse_timestamp_seconds")
		return pulse > float64(stopped.Unix()-30) && at-pulse > 30
	})
	t.Logf("Telegraf's line protocol: %s", strings.TrimSpace(line))
	// The count of pulses stood still.
	count := fmt.Sprintf("SELECT spread(pps_pulses_total) FROM oneway_pps WHERE pps = 'pps0' AND host = 'b' AND time > %dms AND time < %dms", stopped.UnixMilli()+2000, time.Now().UnixMilli())
	if got := column(s.influxQL(t, telegrafDB, count)); len(got) != 1 || got[0] != 0 {
		t.Errorf("%s: %v, want 0", count, got)
	}
}

// lineTime is the time of a line, in seconds.
func lineTime(line string) float64 {
	words := strings.Fields(line)
	if len(words) == 0 {
		return 0
	}
	ns, _ := strconv.ParseFloat(words[len(words)-1], 64)
	return ns / 1e9
}

// lineField is a number of a line, or 0.
func lineField(line, key string) float64 {
	_, after, _ := strings.Cut(line, key+"=")
	text, _, _ := strings.Cut(after, ",")
	text, _, _ = strings.Cut(text, " ")
	n, _ := strconv.ParseFloat(strings.TrimSuffix(text, "i"), 64)
	return n
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
			p.explain(t)
			continue
		}
		t.Logf("%s %s of %s arrived after %.1f s", labels["alertname"], labels["path"]+labels["pps"], p.name, at.Sub(began).Seconds())
		if took := at.Sub(began); took > limit && !smoke() { // a smoke test runs beside others: truth is asserted, precision printed
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
	// The rules read 5 minutes.
	for _, hindrance := range []string{`ALERTS{alertname="OnewayDelayBlowUp"}`, noBlowUp} {
		if !await.Within(6*time.Minute, func() bool { return len(p.query(t, hindrance)) == 0 }) {
			t.Fatalf("%s: %v before the blow-up: the machine is too busy", p.name, p.query(t, hindrance))
		}
	}
}

// noBlowUp has results while OnewayDelayBlowUp does not begin, because a clock cannot be trusted, or has a bound above the delay of the
// blow-up: on a busy machine the simulated pulses are late.
const noBlowUp = `oneway_clock_synchronized == 0
or increase(oneway_clock_steps_total[10m]) > 0
or sum by (instance, path, reason) (increase(oneway_delay_invalid_total{reason=~"remote_.*|local_.*"}[5m])) > 0
or max_over_time(oneway_delay_error_bound_seconds[5m]) > 0.2`

// explain prints why a delay blow-up has no alert.
func (p *store) explain(t *testing.T) {
	t.Helper()
	for _, query := range []string{noBlowUp, "oneway:delay_excess_seconds", "max_over_time(oneway_delay_error_bound_seconds[5m])", "oneway:delay_seconds:quantile_baseline7d"} {
		t.Logf("%s: %s: %v", p.name, query, p.query(t, query))
	}
}
