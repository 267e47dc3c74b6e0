package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/VictoriaMetrics/VictoriaMetrics/app/vmalert/config"
	"github.com/VictoriaMetrics/VictoriaMetrics/app/vmalert/datasource"
	"github.com/VictoriaMetrics/VictoriaMetrics/app/vmalert/notifier"
	"github.com/VictoriaMetrics/VictoriaMetrics/app/vmalert/remotewrite"
	"github.com/VictoriaMetrics/VictoriaMetrics/app/vmalert/rule"
	"github.com/VictoriaMetrics/VictoriaMetrics/app/vmalert/templates"
	"github.com/VictoriaMetrics/VictoriaMetrics/lib/encoding/zstd"
	"github.com/VictoriaMetrics/metrics"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
)

// Tests of this file evaluate the rules with the scheduler of vmalert over days of simulated time. The store is a real VictoriaMetrics: queries and
// writes take no simulated time, and a result is in the store after the flush of vmalert, as on a fast machine.

// simulated is the time at which testing/synctest begins.
var simulated = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// Labels of the input.
const (
	ofAgent = `job="oneway",instance="a"`
	ofPath  = ofAgent + `,path="p",probe="stamp"`
)

// TestVMAlertRecordsHoursAndDays: hours and days need the stages of their groups. The agent is an hour west of Greenwich: its 1 January is over at
// 1:00 UTC, and recorded at 8:24.
func TestVMAlertRecordsHoursAndDays(t *testing.T) {
	const before, sent, lost = 130 * time.Minute, 60, 3 // packets a minute
	received := map[string]float64{"0.01": 0, "0.02": 40, "0.05": 55, "+Inf": sent - lost}
	const end = 33 * time.Hour
	var in exposition
	for at := -before; at <= end; at += time.Minute {
		minutes := (at + before).Minutes()
		in.write(at, "up", ofAgent, 1)
		in.write(at, metric.UTCOffset.Name, ofAgent+`,zone="Atlantic/Azores"`, -3600)
		in.write(at, metric.Holiday.Name, ofAgent+`,zone="Atlantic/Azores"`, 0)
		in.write(at, metric.ProbeUp.Name, ofPath, 1)
		for _, direction := range []string{"forward", "reverse"} {
			labels := ofPath + `,direction="` + direction + `"`
			in.write(at, metric.PacketsSent.Name, labels, sent*minutes)
			in.write(at, metric.PacketsReceived.Name, labels, (sent-lost)*minutes)
			in.write(at, metric.PacketsLost.Name, labels, lost*minutes)
			in.write(at, metric.PacketsUndecided.Name, labels, 0)
			in.write(at, metric.DelayMin.Name, labels, 0.01)
			in.write(at, metric.DelayErrorBound.Name, labels, 0.001)
			in.write(at, metric.Delay.Name+"_count", labels, (sent-lost)*minutes)
			for le, each := range received {
				in.write(at, metric.Delay.Name+"_bucket", labels+`,le="`+le+`"`, each*minutes)
			}
		}
	}
	s := start(t, built(t), "-search.disableCache") // results of more than 5 minutes ago would be kept, which in simulated time are new
	s.importText(t, in)
	s.evaluate(t, end, "oneway-5m", "oneway-days")

	forward := `{direction="forward"}`
	for _, c := range []struct {
		query string
		want  float64
	}{
		{"sum_over_time(" + rules.LongIncrease(metric.PacketsSent) + `{hour="6",direction="forward"}[1d])`, 60 * sent},
		{"sum(count_over_time(" + rules.LongIncrease(metric.PacketsSent) + forward + "[1d]))", 24},
		{"sum(count_over_time(" + rules.LongOutcomes.Name + forward + "[1d]))", 24},
		{"sum(count_over_time(" + rules.LongDelayQuantiles.Name + `{direction="forward",quantile_rank="0.95"}[1d]))`, 24},
		{"sum(count_over_time(" + rules.LongDay(rules.LongOutcomes.Name) + `{direction="forward",month="2000-01"}[1d]))`, 1},
		{"sum(sum_over_time(" + rules.LongDay(rules.LongOutcomes.Name) + forward + "[1d]))", 24 * 60 * sent},
		{"sum(sum_over_time(" + rules.LongDay(rules.LongUp.Name) + "[1d]))", 24 * 60},
		{"sum(sum_over_time(" + rules.LongDay(rules.LongBuckets(metric.Delay)) + `{direction="reverse",le="0.02"}[1d]))`, 24 * 60 * 40},
	} {
		got, err := s.query(c.query, simulated.Add(end))
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != 1 || first(got) != c.want {
			t.Errorf("%s = %v, want %v", c.query, got, c.want)
		}
	}
}

// TestVMAlertFiresForABusyHour: 18:00 to 19:00 of weekdays has five times the forward delay in the last week.
func TestVMAlertFiresForABusyHour(t *testing.T) {
	const end = 5 * time.Hour
	var in exposition
	for at := -36 * 24 * time.Hour; at <= end; at += time.Hour {
		hour := simulated.Add(at - 30*time.Minute)
		kind, slow := "weekday", at > -7*24*time.Hour && hour.Hour() == 18
		if day := hour.Weekday(); day == time.Saturday || day == time.Sunday {
			kind, slow = "weekend", false
		}
		recorded := at + 3*time.Minute
		for _, direction := range []string{"forward", "reverse"} {
			labels := fmt.Sprintf(`%s,direction="%s",hour="%d",day_type="%s",zone="UTC"`, ofPath, direction, hour.Hour(), kind)
			in.write(recorded, rules.LongIncrease(metric.PacketsSent), labels, 100)
			in.write(recorded, rules.LongBound.Name, labels, 0.001)
			p95, buckets := 0.02, map[string]float64{"0.01": 0, "0.02": 100, "0.1": 100, "+Inf": 100}
			if slow && direction == "forward" {
				p95, buckets["0.02"] = 0.1, 0
			}
			in.write(recorded, rules.LongDelayQuantiles.Name, labels+`,quantile_rank="0.95"`, p95)
			for le, n := range buckets {
				in.write(recorded, rules.LongBuckets(metric.Delay), labels+`,le="`+le+`"`, n)
			}
		}
	}
	for at := time.Duration(0); at <= end; at += time.Minute {
		in.write(at, rules.ThresholdBusyHourRatio.Name, "", 1.5)
		in.write(at, rules.ThresholdBusyHourSeconds.ByPath.Name, `path="p"`, 0.01)
		in.write(at, rules.ThresholdTrendShiftRatio.ByPath.Name, `path="p"`, 0.1)
	}
	s := start(t, built(t), "-search.disableCache") // results of more than 5 minutes ago would be kept, which in simulated time are new
	s.importText(t, in)
	s.evaluate(t, end, "oneway-trends", "oneway-trend-alerts")

	got, err := s.query(`max by (path, direction) (max_over_time(ALERTS{alertname="`+rules.BusyHourDegraded.Name+`",alertstate="firing"}[10m]))`, simulated.Add(end))
	if err != nil {
		t.Fatal(err)
	}
	if want := `{direction="forward", path="p"}`; len(got) != 1 || got[want] != 1 {
		t.Errorf("firing: %v, want one of %s", got, want)
	}
}

// TestVMAlertFiresInTime: the rules of 15 and 30 s, whose groups are not divided, see each other's results one evaluation later.
func TestVMAlertFiresInTime(t *testing.T) {
	const before, end, slowFrom, lossyFrom = 70 * time.Minute, 20 * time.Minute, 5 * time.Minute, 10 * time.Minute
	const sent = 600 // packets a minute
	var in exposition
	for at := -before; at <= end; at += 15 * time.Second {
		in.write(at, "up", ofAgent, 1)
		in.write(at, metric.ProbeUp.Name, ofPath, 1)
		minutes, slow, lost := (at + before).Minutes(), max(0, at-slowFrom).Minutes(), 0.3*max(0, at-lossyFrom).Minutes()
		delay := 0.02
		if slow > 0 {
			delay = 0.2
		}
		labels := ofPath + `,direction="forward"`
		in.write(at, metric.PacketsSent.Name, labels, sent*minutes)
		in.write(at, metric.PacketsLost.Name, labels, sent*lost)
		in.write(at, metric.PacketsReceived.Name, labels, sent*(minutes-lost))
		in.write(at, metric.PacketsUndecided.Name, labels, 0)
		in.write(at, metric.DelayErrorBound.Name, labels, 0.0001)
		for _, q := range []string{"0.5", "0.95", "0.99"} {
			in.write(at, metric.DelayQuantile.Name, labels+`,quantile="`+q+`"`, delay)
		}
		in.write(at, metric.Delay.Name+"_count", labels, sent*(minutes-lost))
		for le, n := range map[string]float64{"0.01": 0, "0.05": minutes - slow, "0.1": minutes - slow, "0.5": minutes - lost, "+Inf": minutes - lost} {
			in.write(at, metric.Delay.Name+"_bucket", labels+`,le="`+le+`"`, sent*n)
		}
	}
	s := start(t, built(t), "-search.disableCache")
	s.importText(t, in)
	s.evaluate(t, end, "oneway-thresholds", "oneway-path-thresholds", "oneway-delay", "oneway-delay-30s", "oneway-30s", "oneway-path-states", "oneway-maintenance",
		"oneway-sites", "oneway-5m", "oneway-excess", "oneway-floor", "oneway-load-test-thresholds", "oneway-load-test", "oneway-path-delay", "oneway-path", "oneway-site-alerts")

	firing, err := s.query(`tfirst_over_time(sum by (alertname) (ALERTS{alertstate="firing"})[1h:5s])`, simulated.Add(end))
	if err != nil {
		t.Fatal(err)
	}
	for name, within := range map[string][2]time.Duration{rules.DelayBlowUp.Name: {slowFrom, 2 * time.Minute}, rules.LossHigh.Name: {lossyFrom, 5 * time.Minute}} {
		key := `{alertname="` + name + `"}`
		after := time.Duration(firing[key]*1e9) - time.Duration(simulated.UnixNano()) - within[0]
		t.Logf("%s fires %v after its cause", name, after)
		if after <= 0 || after > within[1] {
			t.Errorf("%s fires %v after its cause, want up to %v", name, after, within[1])
		}
		delete(firing, key)
	}
	if len(firing) > 0 {
		t.Errorf("others fire: %v", firing)
	}
}

func first(r result) float64 {
	for _, v := range r {
		return v
	}
	return 0
}

// exposition is text for /api/v1/import/prometheus.
type exposition struct{ bytes.Buffer }

func (e *exposition) write(at time.Duration, name, labels string, v float64) {
	fmt.Fprintf(e, "%s{%s} %v %d\n", name, labels, v, simulated.Add(at).UnixMilli())
}

// noNotifier makes vmalert drop its alerts, which are in the series ALERTS.
var noNotifier = sync.OnceValue(func() error {
	return errors.Join(flag.Set("notifier.blackhole", "true"), notifier.Init(nil, ""), templates.Load(nil, url.URL{}))
})

// importText returns when the samples can be read.
func (s store) importText(t *testing.T, e exposition) {
	t.Helper()
	s.post(t, "/api/v1/import/prometheus", e.Bytes())
	s.post(t, "/internal/force_flush", nil)
}

// evaluate runs groups of the committed rules, with all of their stages, for a time.
func (s store) evaluate(t *testing.T, within time.Duration, names ...string) {
	t.Helper()
	if err := noNotifier(); err != nil {
		t.Fatal(err)
	}
	groups, err := config.ParseSilent([]string{filepath.Join(rulesDirectory, "*.yml")}, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	groups = slices.DeleteFunc(groups, func(g config.Group) bool {
		return !slices.ContainsFunc(names, func(name string) bool {
			rest, ok := strings.CutPrefix(g.Name, name)
			ok = ok && strings.TrimLeft(rest, "-123456") == ""
			found[name] = found[name] || ok
			return ok
		})
	})
	for _, name := range names {
		if !found[name] {
			t.Fatalf("no group has the name %s", name)
		}
	}
	written := s.flushing(t)
	zstd.CompressLevel(nil, []byte("outside"), 0) // all writes share its encoder, which a bubble would own
	metrics.GetOrCreateSummary("outside")         // the goroutine for all summaries never ends: the bubble must not have it
	synctest.Test(t, func(t *testing.T) {
		// A connection that is kept would read without end, and the time would not pass.
		transport := &http.Transport{DisableKeepAlives: true}
		ctx, cancel := context.WithCancel(t.Context())
		w, err := remotewrite.NewClient(ctx, remotewrite.Config{Addr: written, Concurrency: 1, FlushInterval: 2 * time.Second, MaxQueueSize: 1e6, Transport: transport})
		if err != nil {
			t.Fatal(err)
		}
		q := datasource.NewPrometheusClient(s.address, nil, false, &http.Client{Transport: transport})
		for _, one := range groups {
			g := rule.NewGroup(one, q, time.Minute, nil)
			g.Init()
			go g.Start(ctx, w, nil)
		}
		time.Sleep(within) // of the bubble: it passes at once whenever all groups wait for their next evaluation
		cancel()
		synctest.Wait()
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
}

// flushing is the address of a server that passes writes on to the store, and responds when they can be read.
func (s store) flushing(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		out, err := http.NewRequest(r.Method, s.address+r.URL.Path, bytes.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		out.Header = r.Header
		response, err := http.DefaultClient.Do(out)
		if err != nil {
			t.Error(err)
			return
		}
		defer response.Body.Close()
		if response.StatusCode >= http.StatusBadRequest {
			t.Errorf("write: %s", response.Status)
		}
		s.post(t, "/internal/force_flush", nil)
		w.WriteHeader(response.StatusCode)
	}))
	t.Cleanup(server.Close)
	return server.URL
}
