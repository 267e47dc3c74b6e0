package stack

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"oneway.example/tests/await"
)

// loadTests are load tests of a path of its own, each once in an interval. The link has 20 Mbit/s.
const loadTests = `  - name: ` + pathLoad + `
    peer: "` + addressB + `"
    probes:
      - {type: stamp, interval: 50ms}
      - {type: saturation, every: %[2]s, token_file: token, pin: "%[1]s", rate: {forward: 25Mbit, reverse: 25Mbit}, duration: 6s, skip: 1s, idle: {duration: 2s, interval: 40ms}, drain_timeout: 2s}
      - {type: tcp, every: %[2]s, token_file: token, pin: "%[1]s", duration: 4s, flows: 2, max_bytes: 50MB}
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
	tests, every := loadTests, "40s"
	if !smoke() {
		tests, every = tests+moreLoadTests, "100s"
	}
	s.reconfigure(t, s.configA+fmt.Sprintf(tests, status.LoadServer.Pin, every))
}

// header is one line of the list of runs.
type header struct {
	ID     string `json:"id"`
	Path   string `json:"path"`
	Probe  string `json:"probe"`
	Kind   string `json:"kind"`
	Result string `json:"result"`
	Reason string `json:"reason"`
}

// runs are the stored runs of agent a, newest first.
func (s *stack) runs(t *testing.T) []header {
	t.Helper()
	var list struct {
		Runs []header `json:"runs"`
	}
	getJSON(t, s.a.url(t, "9862")+"/runs", &list)
	return list.Runs
}

// runsSettle waits for a run that is done. Where this host stands still during each, by what the agent says of the newest, it waits on.
func (s *stack) runsSettle(t *testing.T, done func() bool) bool {
	t.Helper()
	for range 3 {
		if await.Within(settle, done) {
			return true
		}
		if all := s.runs(t); len(all) == 0 || all[0].Reason != "host_paused" {
			return false
		}
		t.Logf("this host stands still during the runs: %+v", s.runs(t)[0])
	}
	return false
}

// ran waits until a probe has a completed run, and returns the newest.
func (s *stack) ran(t *testing.T, probe string) header {
	t.Helper()
	var newest header
	if !s.runsSettle(t, func() bool {
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

// newest is the newest completed run of a probe, or the newest incident report of a path where there is no probe; nil: none.
func (s *stack) newest(t *testing.T, probe, path string) *header {
	t.Helper()
	for _, h := range s.runs(t) {
		if h.Path == path && (probe == "" && h.Kind == "incident" || h.Probe == probe && h.Result == "completed") {
			return &h
		}
	}
	return nil
}

// value is one number of a run: its family, and what the report has.
type value struct {
	family string
	labels [][2]string
	want   float64
	// count: an integer of all runs, which must be equal.
	count bool
}

// matches compares counts exactly and values to the precision of a float64.
func (v value) matches(got float64) bool {
	return got == v.want || !v.count && math.Abs(got-v.want) <= 1e-12*math.Abs(v.want)
}

// query selects the series.
func (v value) query() string {
	var b strings.Builder
	for _, l := range v.labels {
		fmt.Fprintf(&b, "%s=%q,", l[0], l[1])
	}
	return v.family + "{" + b.String() + "}"
}

// sameRun compares the newest run of saturation and of tcp in all sinks.
func (s *stack) sameRun(t *testing.T) {
	s.startLoads(t)
	for _, probe := range []string{"saturation", "tcp"} {
		run := s.ran(t, probe)
		values, end := s.report(t, run)
		for _, p := range s.stores {
			p.holds(t, run, values, end)
		}
		s.inInflux(t, run, values, end)
	}
}

// holds compares what a Prometheus has of a run with its report. Gauges of a run appear together, so those of this run are
// beside its end.
func (p *store) holds(t *testing.T, run header, values []value, end time.Time) {
	t.Helper()
	at := fmt.Sprintf("oneway_run_timestamp_seconds{path=%q,probe=%q} == %.9f", run.Path, run.Probe, float64(end.UnixNano())/1e9)
	for _, v := range values {
		if v.count { // a later run that is not completed changes it, and not the gauges
			p.had(t, run, v)
			continue
		}
		found := p.eventually(t, v.query()+" and on (path, probe) ("+at+")")
		if len(found) != 1 || !v.matches(found[0].number(t)) {
			t.Errorf("%s, run %s: %s is %v, want %v", p.name, run.ID, v.query(), found, v.want)
		}
	}
	t.Logf("%s has the %d values of run %s of %s", p.name, len(values), run.ID, run.Probe)
}

// had compares a counter, which other runs increase, with its values since the run.
func (p *store) had(t *testing.T, run header, v value) {
	t.Helper()
	var found []sample
	if !await.Within(settle, func() bool {
		var err error
		found, err = p.try(t, v.query()+"[10m]")
		return err == nil && slices.ContainsFunc(found, func(one sample) bool {
			return slices.ContainsFunc(one.Values, func(at [2]any) bool { return v.matches(sample{Metric: one.Metric, Value: at}.number(t)) })
		})
	}) {
		t.Errorf("%s, run %s: %s had %v, want %v", p.name, run.ID, v.query(), found, v.want)
	}
}

// report are the values of a run's report and its end.
func (s *stack) report(t *testing.T, run header) (out []value, end time.Time) {
	t.Helper()
	r := s.body(t, run.ID)
	add := func(family string, want *float64, labels ...[2]string) {
		if want != nil {
			out = append(out, value{family, append([][2]string{{"path", run.Path}, {"probe", run.Probe}}, labels...), *want, false})
		}
	}
	add("oneway_run_duration_seconds", new(r.End.Sub(r.Begin).Seconds()))
	for _, d := range r.Results.Directions {
		direction := [2]string{"direction", d.Direction}
		add("oneway_tcp_retransmitted_ratio", d.Retransmitted, direction)
		add("oneway_tcp_rtt_min_seconds", d.RTTMin, direction)
		for i, rank := range []string{"0.25", "0.5", "0.75"} {
			if d.RTT != nil {
				add("oneway_tcp_rtt_seconds", &d.RTT[i], direction, [2]string{"quantile_rank", rank})
			}
		}
		if d.Load == nil {
			add("oneway_tcp_throughput_bytes_per_second", d.Throughput, direction)
			continue
		}
		add("oneway_udp_throughput_bytes_per_second", &d.Load.Throughput, direction)
		add("oneway_udp_offered_bytes_per_second", &d.Load.Offered, direction)
		add("oneway_udp_sender_underrun_ratio", &d.Load.Underrun, direction)
		add("oneway_saturation_loss_ratio", &d.Load.Loss, direction)
		for i, rank := range []string{"0.05", "0.5", "0.95"} {
			if d.Load.Rates != nil {
				add("oneway_udp_rate_bytes_per_second", &d.Load.Rates[i], direction, [2]string{"quantile_rank", rank})
			}
		}
	}
	if len(out) < 5 {
		t.Fatalf("run %s has %d values: %+v", run.ID, len(out), r)
	}
	// The counters have all runs until this one.
	var sent [2]float64
	for _, h := range s.runs(t) {
		if h.Path == run.Path && h.Probe == run.Probe && h.ID <= run.ID {
			one := s.body(t, h.ID)
			sent[0], sent[1] = sent[0]+float64(one.Forward), sent[1]+float64(one.Reverse)
		}
	}
	for i, d := range []string{"forward", "reverse"} {
		out = append(out, value{"oneway_run_sent_bytes_total", [][2]string{{"path", run.Path}, {"probe", run.Probe}, {"direction", d}}, sent[i], true})
	}
	return out, r.End
}

// body is the report of a run.
func (s *stack) body(t *testing.T, id string) report {
	t.Helper()
	var whole struct {
		Body report `json:"body"`
	}
	getJSON(t, s.a.url(t, "9862")+"/runs/"+id, &whole)
	return whole.Body
}

// report is the part of a report that is compared.
type report struct {
	Begin   time.Time `json:"begin"`
	End     time.Time `json:"end"`
	Forward int64     `json:"forward_sent_bytes"`
	Reverse int64     `json:"reverse_sent_bytes"`
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
