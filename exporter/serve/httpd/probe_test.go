package httpd

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"oneway.example/exporter/agent/ondemand"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/output/promsink"
	"oneway.example/exporter/probe"
)

// second is a measurement of a second that logs.
type second struct {
	log    *slog.Logger
	sink   metric.Sink
	target probe.Target
}

func (second) Fits(netip.Addr) bool { return true }

func (second) Longest(uint64) time.Duration { return 2 * time.Second }

func (o second) Measure(ctx context.Context, _ uint64) (probe.Outcome, error) {
	o.log.Debug("A long story", "text", strings.Repeat("x", 2*maxSteps))
	o.sink.Series(metric.Delay, o.target.Path, o.target.Probe, "forward").Observe(0.01)
	select {
	case <-ctx.Done():
		return probe.Outcome{}, ctx.Err()
	case <-time.After(time.Second):
	}
	return probe.Outcome{Received: 1}, nil
}

// probing is a handler with a module, one measurement at a time and a pause of 10 s.
func probing(t *testing.T) http.Handler {
	t.Helper()
	targets, err := ondemand.NewTargets([]string{"192.0.2.0/24"}, []int{862})
	if err != nil {
		t.Fatal(err)
	}
	own := promsink.New(promsink.Options{})
	s := ondemand.New(ondemand.Options{Sink: own, Log: slog.New(slog.DiscardHandler)})
	s.Configure(&ondemand.Config{
		Targets: targets, Port: 862, MaxConcurrent: 1, TargetPause: 10 * time.Second,
		Modules: []ondemand.Module{{Name: "m", Type: "fake", Count: 1, New: func(sink metric.Sink, log *slog.Logger, to probe.Target) (probe.Once, error) {
			return second{log, sink, to}, nil
		}}},
	})
	return Handler(Options{
		Source: &fakeSource{onDemand: s}, Registry: NewRegistry(), Sink: own,
		ProbeSink: func() ProbeSink { return promsink.New(promsink.Options{}) },
	})
}

func TestProbeRepliesWithItsOwnMetricsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := probing(t)
		w := get(t, h, http.MethodGet, "/probe?target=192.0.2.1&module=m", "Accept", "text/plain")
		body := w.Body.String()
		for _, want := range []string{
			"probe_success 1\n", "probe_duration_seconds 1\n", "probe_loss_ratio 0\n", `oneway_delay_seconds_count{direction="forward",path="192.0.2.1",probe="m"} 1` + "\n",
		} {
			if !strings.Contains(body, want) {
				t.Errorf("status %d without %q:\n%s", w.Code, want, body)
			}
		}
		if problems, err := promlint.New(strings.NewReader(body)).Lint(); err != nil || len(problems) > 0 || strings.Contains(body, "go_") || strings.Contains(body, "on_demand") {
			t.Errorf("%v %v in\n%s", problems, err, body)
		}
		for target, want := range map[string]string{
			"application/openmetrics-text;version=1.0.0": "# EOF\n", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited": "probe_success",
		} {
			time.Sleep(20 * time.Second) // simulated time (synctest): the pause between measurements of a target
			w := get(t, h, http.MethodGet, "/probe?target=192.0.2.1&module=m", "Accept", target)
			if kind := w.Header().Get("Content-Type"); !strings.HasPrefix(kind, target[:20]) || !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s: %s, %q", target, kind, w.Body)
			}
		}
		if after := get(t, h, http.MethodGet, "/metrics", "Accept", "text/plain").Body.String(); strings.Contains(after, "192.0.2.1") || strings.Contains(after, "\nprobe_success") ||
			!strings.Contains(after, `oneway_on_demand_requests_total{result="success"} 3`) {
			t.Errorf("/metrics has the series of a request, or does not count it:\n%s", after)
		}
	})
}

func TestProbeWithDebugShowsItsSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := probing(t)
		body := get(t, h, http.MethodGet, "/probe?target=192.0.2.1&module=m&debug=true").Body.String()
		if !strings.Contains(body, "msg=Measuring peer=192.0.2.1:862") || !strings.Contains(body, "\nprobe_success 1\n") || len(body) > 2*maxSteps {
			t.Errorf("%d bytes:\n%.4000s", len(body), body)
		}
		if w := get(t, h, http.MethodGet, "/probe?target=192.0.3.1&module=m&debug=true"); w.Code != http.StatusForbidden {
			t.Errorf("status %d:\n%s", w.Code, w.Body)
		}
	})
}

func TestProbeIsRefusedWithAReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := probing(t)
		const good = "/probe?target=192.0.2.1&module=m"
		for _, c := range []struct {
			method, url, timeout string
			want                 int
			text                 string
		}{
			{http.MethodGet, "/probe", "", 400, "The query has no target; it must have one"},
			{http.MethodGet, "/probe?target=192.0.2.1", "", 400, "The query has no module; it must have one"},
			{http.MethodGet, "/probe?target=&module=m", "", 400, "The target of the query is empty; it must have one"},
			{http.MethodGet, "/probe?target=fe80::1&module=m", "", 400, "a link-local IPv6 address cannot be measured on demand"},
			{http.MethodGet, "/probe?target=[fe80::1%25eth0]:862&module=m", "", 400, "a link-local IPv6 address cannot be measured on demand"},
			{http.MethodGet, good + "&target=192.0.2.2", "", 400, "The query has 2 values of target"},
			{http.MethodGet, "/probe?target=192.0.2.1&module=", "", 400, "The module of the query is empty"},
			{http.MethodGet, good + "&x=" + strings.Repeat("y", maxQuery), "", 400, "bytes; it may have 1024"},
			{http.MethodGet, good + "&%zz", "", 400, "not valid"},
			{http.MethodGet, "/probe?target=a%20b&module=m", "", 400, "is no host name"},
			{http.MethodGet, "/probe?target=10.0.0.1&module=m", "", 403, "not in the targets"},
			{http.MethodGet, "/probe?target=192.0.2.1&module=n", "", 403, "no module"},
			{http.MethodGet, "/probe?target=192.0.2.1:53&module=m", "", 403, "Port 53"},
			{http.MethodGet, good, "NaN", 400, "it must be seconds above zero"},
			{http.MethodGet, good, "-1", 400, "it must be seconds"},
			{http.MethodGet, good, "2.4", 400, "needs up to 2s"},
			{http.MethodHead, good, "", 405, ""},
			{http.MethodGet, good, "10", 200, "probe_success 1"},
			{http.MethodGet, good, "5", 429, "less than 10s ago"},
			{http.MethodGet, good, "1e300", 200, "probe_success 1"},
		} {
			w := get(t, h, c.method, c.url, timeoutHeader, c.timeout)
			if w.Code != c.want || !strings.Contains(w.Body.String(), c.text) || c.want == 429 && w.Header().Get("Retry-After") == "" {
				t.Errorf("%s %.80s, timeout %q: %d %.300s, want %d %s", c.method, c.url, c.timeout, w.Code, w.Body, c.want, c.text)
			}
		}
	})
}

func TestProbesBeyondTheLimitAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := probing(t)
		codes := make(chan int, 40)
		for i := range cap(codes) {
			go func() {
				codes <- get(t, h, http.MethodGet, fmt.Sprintf("/probe?target=192.0.2.%d&module=m", i), timeoutHeader, "5.5").Code
			}()
		}
		got := map[int]int{}
		for range cap(codes) {
			got[<-codes]++
		}
		// Of 5 s a measurement may take 2: four begin, after 0, 1, 2 and 3 s.
		if got[200] != 4 && got[200] != 3 || got[200]+got[503] != cap(codes) {
			t.Errorf("replies by status: %v", got)
		}
	})
}

func TestWithoutTheSectionThereAreNoProbes(t *testing.T) {
	h := Handler(Options{
		Source: &fakeSource{onDemand: ondemand.New(ondemand.Options{Sink: metric.Discard{}, Log: slog.New(slog.DiscardHandler)})}, Registry: NewRegistry(),
		ProbeSink: func() ProbeSink { return promsink.New(promsink.Options{}) },
	})
	for _, url := range []string{"/probe", "/probe?target=192.0.2.1&module=m"} {
		if w := get(t, h, http.MethodGet, url); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "on_demand") {
			t.Errorf("%s: %d %s", url, w.Code, w.Body)
		}
	}
}

func TestProbeEndsBeforeTheScraperGivesUp(t *testing.T) {
	for timeout, want := range map[string]time.Duration{"": time.Minute, "10": 9500 * time.Millisecond, "60.25": 59750 * time.Millisecond, "120": time.Minute} {
		if within, wrong := probeTime(http.Header{timeoutHeader: {timeout}}); within != want || wrong != "" {
			t.Errorf("timeout %q: %v, %q, want %v", timeout, within, wrong, want)
		}
	}
}

// FuzzProbe: no query makes the handler fail, and nothing outside the list is measured.
func FuzzProbe(f *testing.F) {
	f.Add("target=192.0.2.1&module=m", "10")
	f.Add("target=fe80::1%25eth0&module=m&debug=true", "1e9")
	f.Fuzz(func(t *testing.T, query, timeout string) {
		r := &http.Request{Header: http.Header{timeoutHeader: {timeout}}}
		r.URL = httptest.NewRequest(http.MethodGet, "http://a/probe", nil).URL
		r.URL.RawQuery = query
		if p, wrong := probeQuery(r); wrong == "" && (p.Target == "" || p.Module == "") {
			t.Errorf("%q is accepted as %+v", query, p)
		}
		if within, wrong := probeTime(r.Header); wrong == "" && within > ondemand.MaxTime {
			t.Errorf("timeout %q is %v", timeout, within)
		}
	})
}

// TestEachRefusalHasAStatus: the results of requests but those that are measured, or whose client has gone, have a status of HTTP.
func TestEachRefusalHasAStatus(t *testing.T) {
	for _, result := range metric.OnDemandRequests.Values.Names(metric.ResultL) {
		status, replied := statusOf(ondemand.Kind(result)), result != "success" && result != "failure" && result != "canceled"
		if replied != (status >= 400 && http.StatusText(status) != "") {
			t.Errorf("%s: the status is %d", result, status)
		}
	}
}
