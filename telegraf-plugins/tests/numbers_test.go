package tests

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/influxdata/telegraf"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"oneway.example/tests/await"
	"oneway.example/tests/freeport"
)

// pathsConf has a reflector, a path to it, and a path to nobody.
func pathsConf(own, peer, nobody int) string {
	return fmt.Sprintf(`
clock: {source: static, bound: 1ms}
reflector: {listen: ["127.0.0.1:%d"]}
paths:
  - name: there
    peer: 127.0.0.1:%d
    labels: {site: "paris, 2"}
    probes: [{type: stamp, interval: 20ms, window: 1s, loss_timeout: 100ms}]
  - name: gone
    peer: 127.0.0.1:%d
    probes: [{type: stamp, interval: 20ms, window: 1s, loss_timeout: 100ms}]
`, own, peer, nobody)
}

// recording forwards to an agent and keeps its replies.
type recording struct {
	*httptest.Server
	mu      sync.Mutex
	replies [][]*dto.MetricFamily
}

func record(t *testing.T, agent string) *recording {
	t.Helper()
	to, err := url.Parse(agent)
	if err != nil {
		t.Fatal(err)
	}
	r := &recording{}
	forward := &httputil.ReverseProxy{Transport: &http.Transport{DisableCompression: true}}
	forward.Rewrite = func(request *httputil.ProxyRequest) {
		request.SetURL(to)
		request.Out.Header.Del("Accept-Encoding") // the recorded body is not compressed
	}
	forward.ModifyResponse = func(response *http.Response) error {
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return err
		}
		response.Body = io.NopCloser(bytes.NewReader(body))
		decoder, families := expfmt.NewDecoder(bytes.NewReader(body), expfmt.ResponseFormat(response.Header)), []*dto.MetricFamily(nil)
		for {
			f := new(dto.MetricFamily)
			if err := decoder.Decode(f); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return err
			}
			families = append(families, f)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.replies = append(r.replies, families)
		return nil
	}
	r.Server = httptest.NewServer(forward)
	t.Cleanup(r.Close)
	return r
}

func (r *recording) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.replies)
}

// TestTelegrafHasTheNumbersOfTheScrape compares what Telegraf writes with the same replies of the agent, by a conversion of
// its own.
func TestTelegrafHasTheNumbersOfTheScrape(t *testing.T) {
	t.Parallel()
	a, b, nobody := int(freeport.Port(t)), int(freeport.Port(t)), int(freeport.Port(t))
	agent(t, pathsConf(b, a, nobody))
	_, url := agent(t, pathsConf(a, b, nobody))
	proxy := record(t, url)
	w := telegrafWith(t, pluginBinary, fmt.Sprintf("[[inputs.oneway]]\nurl = %q\ninterval = \"1s\"\n", proxy.URL))
	const scrapes = 6
	await.That(t, "the replies", func() bool { return proxy.count() >= scrapes })
	w.end(t, syscall.SIGTERM)
	byTime := map[int64][]telegraf.Metric{}
	for _, m := range w.metrics(t) {
		if m.Tags()["host"] != "collector" {
			t.Fatalf("%v has no global tag of Telegraf", m)
		}
		m.RemoveTag("host")
		byTime[m.Time().UnixNano()] = append(byTime[m.Time().UnixNano()], m)
	}
	times := slices.Sorted(maps.Keys(byTime))
	if len(times) < scrapes-1 || len(times) > proxy.count() {
		t.Fatalf("points of %d times for %d scrapes", len(times), proxy.count())
	}
	// At its end Telegraf may close the pipe before it has read the last points.
	times = times[:len(times)-1]
	compared := 0
	for i, at := range times {
		compared += compare(t, proxy.replies[i], byTime[at])
	}
	t.Logf("%d numbers of %d scrapes are equal", compared, len(times))
	if compared < 100*len(times) {
		t.Errorf("%d numbers, want more: the agent has not measured", compared)
	}
	all := w.metrics(t)
	if up := last(named(all, "oneway_probe", "path", "gone", "site", "none"), "probe_up"); up != 0.0 {
		t.Errorf("path gone: probe_up %v, want 0", up)
	}
	if up := last(named(all, "oneway_probe", "path", "there"), "probe_up"); up != 1.0 {
		t.Errorf("path there: probe_up %v, want 1", up)
	}
}

// compare checks that the families of the agent and the points are the same numbers, and returns how many.
func compare(t *testing.T, families []*dto.MetricFamily, points []telegraf.Metric) (numbers int) {
	t.Helper()
	have := map[string]any{}
	for _, p := range points {
		if strings.HasPrefix(p.Name(), "oneway_hour") { // which no scrape has: now and then there is a row of the hour so far
			continue
		}
		if p.Name() == "oneway_scrape" {
			if p.Fields()["up"] != 1.0 {
				t.Errorf("%v", p)
			}
			continue
		}
		// The other fields of an info family are its labels.
		facts := map[string]string{}
		for k, v := range p.Fields() {
			facts[k] = fmt.Sprint(v)
		}
		info := ""
		for k := range facts {
			if strings.HasSuffix(k, "_info") {
				info = k
			}
		}
		delete(facts, info)
		for k, v := range p.Fields() {
			labels := p.Tags()
			if k == info {
				maps.Copy(labels, facts)
			} else if info != "" {
				continue
			}
			have[key(k, labels)] = v
		}
	}
	want := map[string]any{}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "oneway_") || f.GetName() == "oneway_build_info" || f.GetName() == "oneway_path_labels_info" {
			continue
		}
		for _, m := range f.GetMetric() {
			expect(want, strings.TrimPrefix(f.GetName(), "oneway_"), m)
		}
	}
	for k, v := range want {
		if have[k] != v {
			t.Errorf("scrape of %v: %s is %v (%[3]T) in Telegraf, %v (%[4]T) in the scrape", points[0].Time(), k, have[k], v)
		}
	}
	for k, v := range have {
		if _, ok := want[k]; !ok {
			t.Errorf("%s is %v in Telegraf, and not in the scrape", k, v)
		}
	}
	return len(want)
}

// expect adds the fields of a series.
func expect(want map[string]any, name string, m *dto.Metric) {
	labels := map[string]string{}
	for _, l := range m.GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	if labels["path"] == "there" {
		labels["site"] = "paris, 2" // by the configuration
	}
	if rank, ok := labels["quantile_rank"]; ok {
		delete(labels, "quantile_rank")
		v, _ := strconv.ParseFloat(rank, 64)
		percent := "p" + strings.ReplaceAll(strconv.FormatFloat(100*v, 'f', -1, 64), ".", "_")
		if !strings.Contains(name, "quantile") { // the rank stands before the unit
			name = strings.Replace(name, "_seconds", "_quantile_seconds", 1)
		}
		name = strings.Replace(name, "quantile", percent, 1)
	}
	switch {
	case m.Counter != nil:
		want[key(name, labels)] = int64(m.Counter.GetValue())
	case m.Gauge != nil:
		want[key(name, labels)] = m.Gauge.GetValue()
	case m.Histogram != nil:
		want[key(name+"_count", labels)], want[key(name+"_sum", labels)] = int64(m.Histogram.GetSampleCount()), m.Histogram.GetSampleSum()
		buckets := m.Histogram.GetBucket()
		for _, b := range buckets {
			labels["le"] = strconv.FormatFloat(b.GetUpperBound(), 'g', -1, 64)
			want[key(name+"_bucket", labels)] = int64(b.GetCumulativeCount())
		}
		if len(buckets) > 0 {
			labels["le"] = "+Inf"
			want[key(name+"_bucket", labels)] = int64(m.Histogram.GetSampleCount())
		}
	}
}

// key names a number by its field and labels.
func key(field string, labels map[string]string) string {
	parts := []string{field}
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		if labels[k] != "" && labels[k] != "none" {
			parts = append(parts, k+"="+labels[k])
		}
	}
	return strings.Join(parts, ",")
}

// TestEmbeddedAgentDeliversEachIntervalAndNothingVanishes runs the agent inside of the plugin.
func TestEmbeddedAgentDeliversEachIntervalAndNothingVanishes(t *testing.T) {
	t.Parallel()
	a, b, nobody := int(freeport.Port(t)), int(freeport.Port(t)), int(freeport.Port(t))
	agent(t, pathsConf(b, a, nobody))
	w := telegrafWith(t, pluginBinary, fmt.Sprintf("[[inputs.oneway]]\nconfig_file = %q\ninterval = \"1s\"\n", write(t, "oneway.yml", pathsConf(a, b, nobody))))
	await.That(t, "every packet to nobody is lost, and those to the other agent are not", func() bool {
		all := w.metrics(t)
		gone := named(all, "oneway_packets_round_trip", "path", "gone")
		lost, _ := last(gone, "round_trips_lost_total").(int64)
		return lost > 50 && last(gone, "round_trips_received_total") == int64(0) && last(gone, "round_trip_loss_ratio") == 1.0 && last(named(all, "oneway_probe", "path", "gone"), "probe_up") == 0.0 &&
			last(named(all, "oneway_packets", "path", "there", "direction", "forward"), "loss_ratio") == 0.0 &&
			last(named(all, "oneway_probe", "path", "there"), "probe_up") == 1.0
	}, &w.log)
	// Counters grow, and are conserved in each point.
	var times []time.Time
	var sent int64
	for _, m := range named(w.metrics(t), "oneway_packets", "path", "there", "direction", "forward") {
		f := m.Fields()
		number := func(key string) int64 {
			switch v := f[key].(type) {
			case int64:
				return v
			case float64:
				return int64(v)
			}
			return 0
		}
		times = append(times, m.Time())
		if now := number("packets_sent_total"); now < sent {
			t.Errorf("sent %d after %d", now, sent)
		} else {
			sent = now
		}
		if got := number("packets_received_total") + number("packets_lost_total") + number("packets_host_dropped_total") + number("packets_outstanding"); got != sent {
			t.Errorf("sent %d, but received, lost, dropped and outstanding are %d: %v", sent, got, m)
		}
	}
	if sent == 0 || len(times) < 2 {
		t.Fatalf("%d packets in %d points", sent, len(times))
	}
	for i := 1; i < len(times); i++ {
		if gap := times[i].Sub(times[i-1]); gap%time.Second != 0 || gap == 0 || !times[i].Equal(times[i].Truncate(time.Second)) {
			t.Errorf("a point at %v, %v after the one before; want whole seconds", times[i], gap)
		}
	}
}
