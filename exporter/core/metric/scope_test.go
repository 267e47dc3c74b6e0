package metric_test

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/output/promsink"
)

func TestScopeOpensEachSeriesAtItsFirstUseAndOnce(t *testing.T) {
	var sink metrictest.Sink
	s := metric.NewScope(&sink, "a", "stamp")
	if n := sink.Open(); n != 0 {
		t.Errorf("%d series are open before the first use", n)
	}
	s.Total(metric.PacketsSent, 7, "forward")
	s.Total(metric.PacketsSent, 9, "forward")
	s.Total(metric.PacketsSent, 0, "reverse")
	s.Set(metric.ProbeUp, 1)
	s.SetIf(metric.DelayMin, 0.03, true, "forward")
	s.SetIf(metric.DelayMin, 0.03, false, "reverse")
	if s.Series(metric.ProbeUp) != s.Series(metric.ProbeUp) {
		t.Error("the second use returned another handle")
	}
	want := map[string]float64{
		metrictest.Key(metric.PacketsSent, "a", "stamp", "forward"): 9,
		metrictest.Key(metric.PacketsSent, "a", "stamp", "reverse"): 0,
		metrictest.Key(metric.ProbeUp, "a", "stamp"):                1,
		metrictest.Key(metric.DelayMin, "a", "stamp", "forward"):    0.03,
	}
	if diff := cmp.Diff(want, sink.Present("")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := sink.Open(); n != len(want) {
		t.Errorf("%d series are open, want %d: a value that was never known has no series", n, len(want))
	}
}

func TestScopeClearsAGaugeWithoutAKnownValue(t *testing.T) {
	var sink metrictest.Sink
	s := metric.NewScope(&sink, "gps")
	s.SetIf(metric.GNSSFix, 3, true)
	s.SetIf(metric.GNSSFix, 3, false)
	if v, ok := sink.Value(metric.GNSSFix, "gps"); ok {
		t.Errorf("still %v", v)
	}
	s.SetIf(metric.GNSSFix, 2, true)
	if v, ok := sink.Value(metric.GNSSFix, "gps"); !ok || v != 2 {
		t.Errorf("%v, %v, want 2", v, ok)
	}
}

func TestScopeDropsOneSeries(t *testing.T) {
	var sink metrictest.Sink
	s := metric.NewScope(&sink, "gps")
	s.Total(metric.GNSSMalformed, 3, "too_long")
	s.Total(metric.GNSSMalformed, 4, "not_json")
	s.Drop(metric.GNSSMalformed, "too_long")
	s.Drop(metric.GNSSMalformed, "wrong_type")
	if diff := cmp.Diff(map[string]float64{"gps,not_json": 4}, sink.All(metric.GNSSMalformed)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.Total(metric.GNSSMalformed, 1, "too_long")
	if v, _ := sink.Value(metric.GNSSMalformed, "gps", "too_long"); v != 1 {
		t.Errorf("opened anew: %v, want 1", v)
	}
}

func TestScopeClosesAll(t *testing.T) {
	var sink metrictest.Sink
	stays := sink.Series(metric.ProbeUp, "a", "stamp")
	s := metric.NewScope(&sink, "a", "stamp")
	s.Set(metric.ProbeUp, 1)
	s.Total(metric.PacketsSent, 1, "forward")
	s.Close()
	s.Close()
	if n := sink.Open(); n != 1 {
		t.Errorf("%d series are open, want the one of another opener", n)
	}
	stays.Close()
	if n := sink.Open(); n != 0 {
		t.Errorf("%d series are open", n)
	}
}

func TestCountersOfARenewedScopeContinue(t *testing.T) {
	var sink metrictest.Sink
	old := metric.NewScope(&sink, "a", "stamp")
	old.Total(metric.PacketsSent, 100, "forward")
	old.Total(metric.RoundTripLost, 7)
	old.Set(metric.ProbeUp, 1)
	s := old
	var reordered metric.Place
	s.TotalAt(&reordered, metric.PacketsReordered, 5, "forward")
	histogram := s.Series(metric.Delay, "forward")
	s.Renew()
	if s.Series(metric.Delay, "forward") == histogram {
		t.Error("the handle is the closed one")
	}
	s.TotalAt(&reordered, metric.PacketsReordered, 2, "forward")
	s.Total(metric.PacketsSent, 3, "forward")
	for d, want := range map[*metric.Desc]map[string]float64{
		metric.PacketsSent: {"a,stamp,forward": 103}, metric.RoundTripLost: {"a,stamp": 7}, metric.PacketsReordered: {"a,stamp,forward": 7}, metric.ProbeUp: {},
	} {
		if diff := cmp.Diff(want, sink.All(d)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", d.Name, diff)
		}
	}
	s.Close()
	if n := sink.Open(); n != 0 {
		t.Errorf("%d series are open", n)
	}
}

func TestScopeDistinguishesLabels(t *testing.T) {
	var sink metrictest.Sink
	s := metric.NewScope(&sink, "a")
	long := strings.Repeat("x", 200)
	labels := [][]string{{"b", "c", "", ""}, {"bc", "", "", ""}, {"", "bc", "", ""}, {long, "", "", ""}, {long + "x", "", "", ""}}
	for i, more := range labels {
		s.Set(metric.ClockReferenceInfo, float64(i), more...)
	}
	for i, more := range labels {
		if v, _ := sink.Value(metric.ClockReferenceInfo, append([]string{"a"}, more...)...); v != float64(i) {
			t.Errorf("%q is %v, want %d", more, v, i)
		}
	}
}

func TestScopeLooksUpWithoutAllocation(t *testing.T) {
	sink := promsink.New(promsink.Options{})
	s := metric.NewScope(sink, "office", "stamp")
	total, labels := 0.0, []string{"192.0.2.1", "192.0.2.2", "46", "0", "100", "stamp"}
	write := func() {
		total++
		s.Total(metric.PacketsSent, total, "forward")
		s.Set(metric.PathInfo, 1, labels...)
		s.SetIf(metric.DelayMin, 0.02, total > 3, "forward")
		s.SetIf(metric.DelayMax, 0.02, false, "forward")
	}
	for range 4 {
		write()
	}
	if n := testing.AllocsPerRun(1000, write); n != 0 {
		t.Errorf("%v allocations per write, want 0", n)
	}
}

func TestScopeIsSafeForConcurrentUse(t *testing.T) {
	var sink metrictest.Sink
	s := metric.NewScope(&sink, "a")
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for i := range 100 {
				s.Update(func() { s.Series(metric.LoadServerBytes, fmt.Sprint(i%10)).Add(1) })
			}
		})
	}
	running.Wait()
	sum := 0.0
	for v := range maps.Values(sink.All(metric.LoadServerBytes)) {
		sum += v
	}
	if sum != 400 || sink.Open() != 10 {
		t.Errorf("%v counted in %d series, want 400 in 10", sum, sink.Open())
	}
}

// TestSinksAgreeOnTotals: metrictest.Sink counts as promsink.Sink does.
func TestSinksAgreeOnTotals(t *testing.T) {
	prom := promsink.New(promsink.Options{})
	fake := &metrictest.Sink{}
	for name, sink := range map[string]metric.Sink{"promsink": prom, "metrictest": fake} {
		value := func() (v float64) {
			if name == "metrictest" {
				v, _ = fake.Value(metric.GNSSConnections, "gps")
				return v
			}
			families, err := prom.Gather()
			if err != nil {
				t.Fatal(err)
			}
			return families[0].Metric[0].Counter.GetValue()
		}
		one, other := sink.Series(metric.GNSSConnections, "gps"), sink.Series(metric.GNSSConnections, "gps")
		for _, step := range []struct {
			what  string
			of    metric.Series
			total float64
			want  float64
		}{
			{"at first", one, 0, 0},
			{"first total", one, 5, 5},
			{"the same again", one, 5, 5},
			{"behind", one, 3, 5},
			{"no number", one, math.NaN(), 5},
			{"ahead", one, 7, 7},
			{"of another opener", other, 2, 9},
			{"lower, of another opener", other, 1, 9},
			{"ahead again", one, 8, 10},
		} {
			step.of.SetTotal(step.total)
			if got := value(); got != step.want {
				t.Errorf("%s: %s: %v, want %v", name, step.what, got, step.want)
			}
		}
		one.Close()
		again := sink.Series(metric.GNSSConnections, "gps")
		again.SetTotal(1)
		if got := value(); got != 11 {
			t.Errorf("%s: a new opener: %v, want 11", name, got)
		}
	}
}

func BenchmarkScope(b *testing.B) {
	s := metric.NewScope(metric.Discard{}, "office", "stamp")
	b.ReportAllocs()
	for b.Loop() {
		s.Set(metric.DelayQuantile, 0.02, "forward", "0.95")
	}
}

// places counts the writes to each series.
type places struct {
	metrictest.Sink
	writes int
}

type countedSeries struct {
	metric.Series
	in *places
}

func (s *countedSeries) Set(v float64)      { s.in.writes++; s.Series.Set(v) }
func (s *countedSeries) SetTotal(v float64) { s.in.writes++; s.Series.SetTotal(v) }

func (p *places) Series(d *metric.Desc, values ...string) metric.Series {
	return &countedSeries{p.Sink.Series(d, values...), p}
}

func TestPlacesAreWrittenOnlyWhenTheirValueChanges(t *testing.T) {
	var sink places
	s := metric.NewScope(&sink, "a", "stamp")
	var sent, jitter, never metric.Place
	publish := func(total uint64, v float64, known bool) (writes int) {
		sink.writes = 0
		s.SetIfAt(&never, metric.Hops, 3, false, "forward")
		s.TotalAt(&sent, metric.PacketsSent, total, "forward")
		s.SetIfAt(&jitter, metric.Jitter, v, known, "forward")
		return sink.writes
	}
	for i, step := range []struct {
		total  uint64
		v      float64
		known  bool
		writes int
	}{{0, 1, true, 2}, {0, 1, true, 0}, {5, 1, true, 1}, {5, 2, true, 1}, {5, 0, false, 1}, {5, 0, false, 0}, {6, 0, true, 2}} {
		if n := publish(step.total, step.v, step.known); n != step.writes {
			t.Errorf("step %d: %d writes, want %d", i, n, step.writes)
		}
		if v, known := sink.Value(metric.Jitter, "a", "stamp", "forward"); known != step.known || v != step.v {
			t.Errorf("step %d: the gauge is %v, %v", i, v, known)
		}
		if v, _ := sink.Value(metric.PacketsSent, "a", "stamp", "forward"); v != float64(step.total) {
			t.Errorf("step %d: the counter is %v", i, v)
		}
	}
	s.Renew()
	if n := publish(2, 0, false); n != 1 {
		t.Errorf("%d writes after Renew, want 1: that of the counter", n)
	}
	if v, known := sink.Value(metric.Jitter, "a", "stamp", "forward"); known {
		t.Errorf("the gauge of the previous session is still %v", v)
	}
	if v, _ := sink.Value(metric.PacketsSent, "a", "stamp", "forward"); v != 8 {
		t.Errorf("the counter is %v, want 8", v)
	}
	if n := sink.Open(); n != 2 {
		t.Errorf("%d series are open, want 2: a value that was never known has no series", n)
	}
	s.Close()
	if n := publish(9, 9, true); n != 0 || sink.Open() != 0 {
		t.Errorf("%d writes after Close, %d series are open", n, sink.Open())
	}
	var late metric.Place
	s.TotalAt(&late, metric.PacketsLost, 1, "forward")
	if n := sink.Open(); n != 0 {
		t.Errorf("%d series were opened after Close", n)
	}
}

func TestScopeDropsAFamilyAndUsesItsPlacesAgain(t *testing.T) {
	var sink metrictest.Sink
	s := metric.NewScope(&sink, "gps")
	s.Total(metric.GNSSMalformed, 3, "too_long")
	s.Set(metric.GNSSFix, 3)
	s.Total(metric.GNSSMalformed, 4, "not_json")
	s.DropAll(metric.GNSSMalformed)
	if n := sink.Open(); n != 1 {
		t.Errorf("%d series are open, want 1", n)
	}
	s.Total(metric.GNSSMalformed, 1, "wrong_type")
	s.Total(metric.GNSSConnections, 2)
	s.Renew()
	s.Total(metric.GNSSMalformed, 1, "wrong_type")
	if diff := cmp.Diff(map[string]float64{"gps,wrong_type": 2}, sink.All(metric.GNSSMalformed)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.Close()
	if n := sink.Open(); n != 0 {
		t.Errorf("%d series are open", n)
	}
}
