package host

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"oneway.example/tests/await"
)

const (
	prometheusAddress = "127.0.0.1:9090"
	rules             = "../../../deploy/prometheus/rules"
	scrapes           = `global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: ["*.rules"]
scrape_configs: [{job_name: oneway, static_configs: [{targets: ["` + agentAddress + `"]}]}]
`
)

// watch starts Prometheus with the rules of deploy, which it evaluates every second instead of every 30 s. The threshold of
// OnewayPPSLost has its smallest value already.
func (s *site) watch(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("prometheus.yml", scrapes)
	for _, name := range []string{"oneway-thresholds", "oneway-recording", "oneway-alerts"} {
		text, err := os.ReadFile(filepath.Join(rules, name+".yml"))
		if err != nil {
			t.Fatal(err)
		}
		write(name+".rules", strings.ReplaceAll(string(text), "interval: 30s", "interval: 1s"))
	}
	s.Daemon("prometheus", "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+prometheusAddress, "--log.level=warn")
}

// alert is one of Prometheus's.
type alert struct {
	State               string
	Labels, Annotations map[string]string
}

// alerts are those of a name that fire; ok: Prometheus has replied.
func (s *site) alerts(name string) (firing []alert, ok bool) {
	var reply struct {
		Status string
		Data   struct{ Alerts []alert }
	}
	if json.Unmarshal([]byte(s.get("http://"+prometheusAddress+"/api/v1/alerts")), &reply) != nil || reply.Status != "success" {
		return nil, false
	}
	for _, a := range reply.Data.Alerts {
		if a.Labels["alertname"] == name && a.State == "firing" {
			firing = append(firing, a)
		}
	}
	return firing, true
}

// awaitAlerts waits until so many of a name fire.
func (s *site) awaitAlerts(name string, want int) (firing []alert) {
	s.Helper()
	if !await.Within(2*await.Timeout, func() bool {
		time.Sleep(200 * time.Millisecond) // each check is a query
		var ok bool
		firing, ok = s.alerts(name)
		return ok && len(firing) == want
	}) {
		s.Fatalf("%d alerts %s, want %d: %v\n%s", len(firing), name, want, firing, s.log)
	}
	return firing
}

// The whole way of a lost pulse: device, agent, scrape, rules.
func TestLostPulseRaisesItsAlert(t *testing.T) {
	t.Parallel()
	need(t, "prometheus")
	s := start(t, "")
	s.watch(t)
	s.until("the agent counts pulses", "oneway_pps_pulses_total", atLeast(3))
	s.until("gpsd has a fix", "oneway_gnss_fix", is(3))
	s.awaitAlerts("OnewayPPSLost", 0)
	s.set("pulse.stopped=true&receiver.fix=1")
	stopped := time.Now()
	fired := s.awaitAlerts("OnewayPPSLost", 1)[0]
	t.Logf("after %.0f s: %v", time.Since(stopped).Seconds(), fired)
	if after := time.Since(stopped); after < 29*time.Second {
		t.Errorf("it fired %v after the last pulse, want 30 s", after)
	}
	if want := "No pulse on pps0 of " + agentAddress; fired.Annotations["summary"] != want || fired.Labels["severity"] != "warning" {
		t.Errorf("summary %q of severity %q, want %q", fired.Annotations["summary"], fired.Labels["severity"], want)
	}
	want := regexp.MustCompile(`^The last pulse on pps0 of 127\.0\.0\.1:9862 arrived (3\d|4\d|5\d|1m \d+)(\.\d+)?s ago; the receiver gps0 has no fix\. The clock continues`)
	if got := fired.Annotations["description"]; !want.MatchString(got) {
		t.Errorf("description %q, want %v", got, want)
	}
	s.set("pulse.stopped=false")
	s.awaitAlerts("OnewayPPSLost", 0)
}
