package loadserver

import (
	"strings"
	"testing"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/output/promsink"
	"oneway.example/tests/remoteend"
)

func TestMetricsOfALoadServer(t *testing.T) {
	s := newSite(t, Options{}, "a")
	s.stop()
	sink := promsink.New(promsink.Options{})
	s.sink = sink
	s.start()
	p := s.ready("a", 1<<20)
	if _, err := p.Start(t.Context(), transferOf(1, sample.Reverse)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := s.join("a", 1); remoteend.Refusal(t, err).Reason != loadcontrol.Busy {
		t.Errorf("%v", err)
	}
	if _, err := remoteend.Endpoint(t, p.Local().Addr()).Join(12345).Send(t.Context(), 1, p.at(), transferOf(1, sample.Forward).Plan, stream.SendOptions{}); err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{
		`oneway_load_server_sessions`:                                                  1,
		`oneway_load_server_connections`:                                               1,
		`oneway_load_server_requests_total opened`:                                     1,
		`oneway_load_server_requests_total started`:                                    1,
		`oneway_load_server_requests_total busy`:                                       1,
		`oneway_load_server_requests_total unauthorized`:                               0,
		`oneway_load_server_sessions_ended_total closed`:                               0,
		`oneway_load_server_bytes_total reverse a`:                                     50_000,
		`oneway_load_server_bytes_total forward a`:                                     -1,
		`oneway_load_server_packets_discarded_total ` + stream.UnknownSession.String(): 100,
	}
	remoteend.Eventually(t, "the metrics", func() bool {
		got := gathered(t, sink)
		for name, v := range want {
			if g, ok := got[name]; ok != (v >= 0) || ok && g != v {
				return false
			}
		}
		return true
	})
	s.stop()
	for name := range gathered(t, sink) {
		if strings.HasPrefix(name, "oneway_load_server") {
			t.Errorf("%s exists without a load server", name)
		}
	}
}

// gathered returns every value by name and labels.
func gathered(t *testing.T, sink *promsink.Sink) map[string]float64 {
	t.Helper()
	families, err := sink.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			name := f.GetName()
			for _, l := range m.Label {
				name += " " + l.GetValue()
			}
			all[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return all
}
