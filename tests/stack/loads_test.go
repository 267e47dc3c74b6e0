package stack

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"oneway.example/tests/await"
)

// loadTests are load tests of a path of its own, each once in 100 s. The link has 20 Mbit/s.
const loadTests = `  - name: ` + pathLoad + `
    peer: "` + addressB + `"
    probes:
      - {type: stamp, interval: 50ms}
      - {type: saturation, every: 100s, token_file: token, pin: "%[1]s", rate: {forward: 25Mbit, reverse: 25Mbit}, duration: 6s, skip: 1s, idle: {duration: 2s, interval: 40ms}, drain_timeout: 2s}
      - {type: tcp, every: 100s, token_file: token, pin: "%[1]s", duration: 4s, flows: 2, max_bytes: 50MB}
`

// moreLoadTests are those of the other pages of the dashboards.
const moreLoadTests = `      - {type: saturation, name: sweep, every: 150s, token_file: token, pin: "%[1]s", mode: sweep, rate: {forward: 25Mbit, reverse: 25Mbit}, sweep: {factor: 2, step: 1s}, drain_timeout: 2s}
      - {type: train, every: 150s, token_file: token, pin: "%[1]s", trains: 5, train_packets: 10, train_interval: 100ms, group_pause: 0s}
      - {type: size_sweep, every: 150s, token_file: token, pin: "%[1]s", packet_bytes: [64, 512], packet_rates: [100, 500], cell_duration: 2s, drain_timeout: 2s}
      - {type: tcp, name: two-way, every: 150s, token_file: token, pin: "%[1]s", duration: 8s, overlap_start: 2s, overlap_duration: 3s, max_bytes: 50MB}
      - {type: tcp_sweep, every: 150s, token_file: token, pin: "%[1]s", send_buffer_bytes: [32KiB, auto], cell_duration: 3s, omit: 1s, repetitions: 1, max_bytes: 50MB}
      - {type: tcp_short, every: 150s, token_file: token, pin: "%[1]s", flow_bytes: [10kB], repetitions: 8}
      - {type: message, every: 150s, token_file: token, pin: "%[1]s", duration: 2s}
`

const pathLoad = "a-to-b-load"

// startLoads adds the load tests to the configuration of a.
func (s *stack) startLoads(t *testing.T) {
	t.Helper()
	var status struct {
		LoadServer struct {
			Pin string `json:"pin"`
		} `json:"load_server"`
	}
	await.That(t, "the load server has its key", func() bool {
		getJSON(t, s.b.url(t, "9862")+"/api/v1/status", &status)
		return status.LoadServer.Pin != ""
	})
	tests := loadTests
	if !smoke() {
		tests += moreLoadTests
	}
	s.reconfigure(t, s.configA+fmt.Sprintf(tests, status.LoadServer.Pin))
}

// header is one line of the list of runs.
type header struct {
	ID     string `json:"id"`
	Path   string `json:"path"`
	Probe  string `json:"probe"`
	Result string `json:"result"`
	Reason string `json:"reason"`
}

// runs are the stored runs of agent a, newest first.
func (s *stack) runs(t *testing.T) (all []header) {
	t.Helper()
	getJSON(t, s.a.url(t, "9862")+"/runs", &all)
	return all
}

// ran waits until a probe has a completed run, and returns the newest.
func (s *stack) ran(t *testing.T, probe string) header {
	t.Helper()
	var newest header
	if !await.Within(settle, func() bool {
		all := s.runs(t)
		i := slices.IndexFunc(all, func(h header) bool { return h.Probe == probe && h.Result == "completed" })
		if i >= 0 {
			newest = all[i]
		}
		return i >= 0
	}) {
		t.Fatalf("probe %s has no completed run: %+v", probe, s.runs(t))
	}
	return newest
}

// value is one number of a run: its series, and its field in the report.
type value struct {
	query string
	want  float64
	// count: an integer, which must be equal.
	count bool
}

// sameRun compares the newest run of saturation and of tcp in all sinks.
func (s *stack) sameRun(t *testing.T) {
	s.startLoads(t)
	for _, probe := range []string{"saturation", "tcp"} {
		run := s.ran(t, probe)
		values := s.report(t, run)
		for _, p := range s.stores {
			s.holds(t, p, run, values)
		}
	}
}

// holds compares what a Prometheus has of a run with its report.
func (s *stack) holds(t *testing.T, p *store, run header, values []value) {
	t.Helper()
	for _, v := range values {
		found := p.eventually(t, v.query)
		got := found[0].number(t)
		if len(found) != 1 || v.count && got != v.want || math.Abs(got-v.want) > 1e-12*math.Abs(v.want) {
			t.Errorf("%s, run %s: %s is %v, want %v", p.name, run.ID, v.query, found, v.want)
		}
	}
	t.Logf("%s has the %d values of run %s of %s", p.name, len(values), run.ID, run.Probe)
}

// report are the values of a run's report, with the series that have them.
func (s *stack) report(t *testing.T, run header) (out []value) {
	t.Helper()
	var report struct {
		Begin   int64 `json:"begin_ns"`
		End     int64 `json:"end_ns"`
		Forward int64 `json:"forward_sent_bytes"`
		Reverse int64 `json:"reverse_sent_bytes"`
		Results struct {
			Directions []struct {
				Direction     string      `json:"direction"`
				Throughput    *float64    `json:"throughput_bytes_per_second"`
				Retransmitted *float64    `json:"retransmitted_ratio"`
				RTT           *[3]float64 `json:"rtt_quartiles_seconds"`
				RTTMin        *float64    `json:"rtt_min_seconds"`
				Load          *struct {
					Offered    float64     `json:"offered_bytes_per_second"`
					Throughput float64     `json:"throughput_bytes_per_second"`
					Loss       float64     `json:"loss_ratio"`
					Underrun   float64     `json:"sender_underrun_ratio"`
					Rates      *[3]float64 `json:"rate_quantiles_bytes_per_second"`
				} `json:"load"`
			} `json:"directions"`
		} `json:"results"`
	}
	getJSON(t, s.a.url(t, "9862")+"/runs/"+run.ID, &report)
	labels := fmt.Sprintf("path=%q,probe=%q", run.Path, run.Probe)
	// Gauges of a run appear together, so those of this run are the ones beside its end.
	at := fmt.Sprintf("oneway_run_timestamp_seconds{%s} == %.9f", labels, float64(report.End)/1e9)
	add := func(name, more string, want *float64, count bool) {
		if want != nil {
			out = append(out, value{fmt.Sprintf("%s{%s%s} and on (path, probe) (%s)", name, labels, more, at), *want, count})
		}
	}
	add("oneway_run_duration_seconds", "", new(float64(report.End-report.Begin)/1e9), false)
	for _, d := range report.Results.Directions {
		direction := fmt.Sprintf(",direction=%q", d.Direction)
		add("oneway_tcp_throughput_bytes_per_second", direction, d.Throughput, false)
		add("oneway_tcp_retransmitted_ratio", direction, d.Retransmitted, false)
		add("oneway_tcp_rtt_min_seconds", direction, d.RTTMin, false)
		if d.Load == nil {
			continue
		}
		add("oneway_udp_throughput_bytes_per_second", direction, &d.Load.Throughput, false)
		add("oneway_udp_offered_bytes_per_second", direction, &d.Load.Offered, false)
		add("oneway_udp_sender_underrun_ratio", direction, &d.Load.Underrun, false)
		add("oneway_saturation_loss_ratio", direction, &d.Load.Loss, false)
		if d.Load.Rates != nil {
			for i, rank := range []string{"0.05", "0.5", "0.95"} {
				add("oneway_udp_rate_bytes_per_second", direction+fmt.Sprintf(",quantile_rank=%q", rank), &d.Load.Rates[i], false)
			}
		}
	}
	if len(out) < 5 {
		t.Fatalf("run %s has %d values: %s", run.ID, len(out), strings.TrimSpace(fmt.Sprint(out)))
	}
	return out
}
