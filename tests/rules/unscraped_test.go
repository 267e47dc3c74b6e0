package rules

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"oneway.example/tests/await"
	"oneway.example/tests/freeport"
	"oneway.example/tests/oneway"
	"oneway.example/tests/promserver"
)

// unscraped is the directory of the files for agents that a server cannot reach.
const unscraped = root + "/deploy/unscraped"

// outage is how long the link of such an agent is down.
const outage = time.Minute

func TestConfigurationsOfUnscrapedAgentsLoad(t *testing.T) {
	eachPromtool(t, func(t *testing.T, promtool string) {
		run(t, promtool, "check", "config", "--agent", unscraped+"/prometheus-agent.yml")
		run(t, promtool, "check", "config", unscraped+"/prometheus-server.yml")
	})
}

func TestConfigurationOfAnUnscrapedAgentIsValid(t *testing.T) {
	dir := t.TempDir()
	config, err := os.ReadFile(unscraped + "/oneway.yml")
	binary, building := oneway.Build(dir)
	if err := errors.Join(err, building, os.WriteFile(dir+"/oneway.yml", config, 0o600), os.WriteFile(dir+"/influxdb.token", []byte("secret\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	run(t, binary, "check-config", dir+"/oneway.yml")
}

// An agent that cannot be scraped, a Prometheus in agent mode beside it, and a server: after an outage of the link in which the
// server is killed as well, the server has each sample of each scrape, as the agent exposed it.
func TestPrometheusInAgentModeLosesNothingInAnOutage(t *testing.T) {
	const native, version2, version3 = "--enable-feature=native-histograms", "2.42", "3.8"
	for name, s := range map[string]delivery{
		"2.42":        {sender: version2, receiver: version2, senderFlags: []string{"--enable-feature=agent,native-histograms"}, receiverFlags: []string{native}},
		"3.8":         {sender: version3, receiver: version3, senderFlags: []string{"--agent"}},
		"3.8_to_2.42": {sender: version3, receiver: version2, senderFlags: []string{"--agent"}, receiverFlags: []string{native}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			programs := map[string]string{version2: need(t, "prometheus", "prometheus")}
			if s.current = s.sender == version3; s.current {
				programs[version3] = built(t, "prometheus", from38)
			}
			s.sender, s.receiver = programs[s.sender], programs[s.receiver]
			s.holds(t)
		})
	}
}

// delivery is a sender and a receiver: their versions, then their programs.
type delivery struct {
	sender, receiver           string
	senderFlags, receiverFlags []string
	current                    bool // the sender is 3.8 or later
}

// counted are the series that are compared: counters, and a native histogram by its count and sum.
var counted = []string{"oneway_packets_sent_total", "oneway_packets_received_total", "oneway_round_trips_received_total", "oneway_delay_seconds"}

func (d delivery) holds(t *testing.T) {
	scrapes := &exposed{agent: startAgent(t), values: map[string][]string{}}
	exporter := httptest.NewServer(scrapes)
	t.Cleanup(exporter.Close)
	config, err := os.ReadFile(unscraped + "/prometheus-server.yml")
	if err != nil {
		t.Fatal(err)
	}
	dir, address := t.TempDir(), freeport.Address(t)
	receive := func() *promserver.Server {
		return promserver.Start(t, promserver.Options{
			Program: d.receiver, Config: string(config), Data: dir + "/server", Address: address,
			Args: append(d.receiverFlags, "--web.enable-remote-write-receiver"),
		})
	}
	receiver := receive()
	link := &cutLink{to: address}
	link.listen(t)
	start(t, d.sender, append(d.senderFlags, "--config.file="+d.config(t, dir, exporter.URL, link.address), "--storage.agent.path="+dir+"/agent",
		"--storage.agent.retention.max-time=3d", "--web.listen-address="+freeport.Address(t))...)
	server := receiver.URL
	await.That(t, "samples arrive", func() bool { return len(query(t, server, `oneway_packets_sent_total{path="full"}`)) > 0 })

	link.cut(true)
	receiver.Kill(t)
	before := scrapes.taken()
	time.Sleep(outage / 2) // the outage is what is tested
	receiver = receive()
	time.Sleep(outage / 2) // as above; the server is back before the link
	if n := scrapes.taken() - before; n < int(outage/time.Second)*3/4 {
		t.Errorf("%d scrapes in an outage of %v: the sender has stopped to scrape", n, outage)
	}
	link.cut(false)
	scrapes.end() // no scrape after this has metrics: what is compared is complete
	want := scrapes.all()
	var differ []string
	if !await.Within(await.Timeout, func() bool {
		got := samples(t, server)
		differ = nil
		for series, values := range want {
			if !slices.Equal(got[series], values) {
				differ = append(differ, fmt.Sprintf("%s: %d samples, want %d\n got %.600v\nwant %.600v", series, len(got[series]), len(values), got[series], values))
			}
		}
		return len(differ) == 0
	}) {
		t.Errorf("%d of %d series differ:\n%s", len(differ), len(want), strings.Join(differ, "\n"))
	}
	up := series(t, server, `up{job="oneway"}[1h]`)
	if len(up) != 1 {
		t.Fatalf("%d series of up", len(up))
	}
	scraped, last, gap := 0, 0.0, 0.0
	for _, at := range slices.Sorted(maps.Keys(up[0].at)) {
		if up[0].at[at] == "1" {
			scraped++
		}
		if last > 0 {
			gap = max(gap, at-last)
		}
		last = at
	}
	if scraped != scrapes.taken() {
		t.Errorf("up is 1 in %d samples, want one for each of %d scrapes", scraped, scrapes.taken())
	}
	// A busy host scrapes late: the gap is the sender's, not one of the delivery.
	t.Logf("%d scrapes of 1 s, %d series with %d samples are compared; %.1f s are the longest time without a scrape", scrapes.taken(), len(want), length(want), gap)
	receiver.Kill(t)
}

func length(all map[string][]string) (n int) {
	for _, v := range all {
		n += len(v)
	}
	return n
}

// config is the sender's file with this target, link and scrape interval.
func (d delivery) config(t *testing.T, dir, exporter, link string) string {
	t.Helper()
	text, err := os.ReadFile(unscraped + "/prometheus-agent.yml")
	if err != nil {
		t.Fatal(err)
	}
	pairs := []string{
		`"localhost:9862"`, `"` + strings.TrimPrefix(exporter, "http://") + `"`, "scrape_interval: 10s", "scrape_interval: 1s",
		"https://prometheus.example.net", "http://" + link, "max_backoff: 30s", "max_backoff: 2s",
	}
	if d.current {
		pairs = append(pairs, "# From 3.8: scrape_native", "scrape_native")
	}
	file := filepath.Join(dir, "agent.yml")
	if err := os.WriteFile(file, []byte(strings.NewReplacer(pairs...).Replace(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// exposed passes scrapes on to the agent and remembers what it exposed.
type exposed struct {
	agent string

	mu     sync.Mutex
	n      int
	ended  bool
	values map[string][]string // by series, in the order of the scrapes
}

// ServeHTTP serves a scrape.
func (s *exposed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		http.Error(w, "the test has all it needs", http.StatusServiceUnavailable)
		return
	}
	to, _ := http.NewRequestWithContext(r.Context(), http.MethodGet, "http://"+s.agent+"/metrics", nil)
	to.Header.Set("Accept", r.Header.Get("Accept"))
	resp, err := http.DefaultTransport.RoundTrip(to)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
	if _, err := w.Write(body); err != nil {
		return
	}
	s.n++
	for d := expfmt.NewDecoder(strings.NewReader(string(body)), expfmt.ResponseFormat(resp.Header)); ; {
		var f dto.MetricFamily
		if d.Decode(&f) != nil {
			return
		}
		for _, m := range f.Metric {
			if slices.Contains(counted, f.GetName()) {
				s.keep(f.GetName(), m)
			}
		}
	}
}

// keep remembers a value of a full path, whose histograms are native and classic.
func (s *exposed) keep(name string, m *dto.Metric) {
	key := name
	for _, l := range m.Label {
		switch {
		case l.GetName() == "path" && l.GetValue() != "full":
			return
		case l.GetName() == "direction":
			key += " " + l.GetValue()
		}
	}
	value := text(m.GetCounter().GetValue())
	if h := m.Histogram; h != nil {
		value = text(float64(h.GetSampleCount())) + " " + text(h.GetSampleSum())
	}
	s.values[key] = append(s.values[key], value)
}

func text(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func (s *exposed) taken() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

func (s *exposed) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
}

func (s *exposed) all() map[string][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.values)
}

// stored is a series of the server, by time.
type stored struct {
	labels map[string]string
	at     map[float64]string
}

// samples are the values of the server that keep remembers, by the same keys, in the order of time.
func samples(t *testing.T, server string) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, name := range counted {
		for _, s := range series(t, server, name+`{path="full"}[1h]`) {
			key := strings.TrimSpace(name + " " + s.labels["direction"])
			for _, at := range slices.Sorted(maps.Keys(s.at)) {
				out[key] = append(out[key], s.at[at])
			}
		}
	}
	return out
}

// series are the raw samples of a range. A native histogram has its count and sum.
func series(t *testing.T, server, selector string) (all []stored) {
	t.Helper()
	resp, err := (&http.Client{Timeout: time.Minute}).PostForm(server+"/api/v1/query", url.Values{"query": {selector}})
	if err != nil {
		return nil // it has not begun to listen
	}
	defer resp.Body.Close()
	var reply struct {
		Data struct {
			Result []struct {
				Metric     map[string]string    `json:"metric"`
				Values     [][2]json.RawMessage `json:"values"`
				Histograms [][2]json.RawMessage `json:"histograms"`
			} `json:"result"`
		} `json:"data"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&reply); err != nil {
		return nil // it is not ready
	}
	for _, r := range reply.Data.Result {
		one := stored{labels: r.Metric, at: map[float64]string{}}
		for _, v := range slices.Concat(r.Values, r.Histograms) {
			at, err := strconv.ParseFloat(string(v[0]), 64)
			if err != nil {
				t.Fatal(err)
			}
			var number string
			var histogram struct{ Count, Sum string }
			if json.Unmarshal(v[1], &number) != nil {
				if err := json.Unmarshal(v[1], &histogram); err != nil {
					t.Fatalf("%s: %s", selector, v[1])
				}
				number = histogram.Count + " " + histogram.Sum
			}
			for i, part := range strings.Fields(number) { // one form of each number
				f, err := strconv.ParseFloat(part, 64)
				if err != nil {
					t.Fatal(err)
				}
				one.at[at] = strings.TrimSpace(map[bool]string{true: one.at[at] + " "}[i > 0] + text(f))
			}
		}
		all = append(all, one)
	}
	return all
}
