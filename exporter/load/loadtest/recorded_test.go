package loadtest_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/families"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/output/point"
	"oneway.example/exporter/output/point/series"
	"oneway.example/exporter/output/promsink"
	"oneway.example/tests/testseed"
)

// TestValuesOfACompletedRunAreRecorded compares them with the sink's.
func TestValuesOfACompletedRunAreRecorded(t *testing.T) {
	in(t, func(t *testing.T) {
		recorder := &record.Recorder{}
		b := newBench(t, func(b *bench) {
			b.env.Recorder = recorder
			b.kind.publish = func(v *loadtest.Values, _ int) {
				v.Set(metric.UDPThroughput, 1, "forward")
				v.Set(metric.UDPThroughput, 2, "forward") // replaces it
				v.Set(metric.QueueDelay, 0.25, "forward", "0.5")
				v.Observe(metric.LoadedDelay, 0.3, "forward")
				v.ObserveAll(metric.LoadedDelay, []float64{0.1, 0.2}, "forward")
				v.Add(metric.TCPUnfinished, 2, "forward", "1000")
				v.Add(metric.TCPUnfinished, 1, "forward", "1000")
			}
		})
		listener := recorder.Results().Listen(4)
		defer listener.Close()
		b.start()
		time.Sleep(time.Hour + time.Minute) // simulated time (synctest)
		var got [4]record.Result
		if n, missed := listener.Take(got[:]); n != 2 || missed != 0 {
			t.Fatalf("%d results and %d missed, want those of two runs", n, missed)
		}
		if r := got[1]; r.Path != "office" || r.Probe != "saturation" || r.Run != b.prober.LastRun() || r.Begin == 0 || r.Begin == got[0].Begin {
			t.Errorf("%+v, want run %s", r, b.prober.LastRun())
		}
		values := map[string][]float64{}
		for _, v := range got[1].Values {
			values[v.Desc.Name+" "+strings.Join(v.Labels, " ")] = v.Values
		}
		duration, _ := b.sink.Value(metric.RunDuration, "office", "saturation")
		want := map[string][]float64{
			"oneway_udp_throughput_bytes_per_second forward": {2},
			"oneway_queue_delay_seconds forward 0.5":         {0.25},
			"oneway_saturation_delay_seconds forward":        {0.3, 0.1, 0.2},
			"oneway_tcp_unfinished_flows_total forward 1000": {3},
			"oneway_run_duration_seconds ":                   {duration},
		}
		if diff := cmp.Diff(want, values); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		b.end()
	})
}

func TestValuesCostNothingWithoutListeners(t *testing.T) {
	v := loadtest.NewValues(metric.NewScope(metric.Discard{}, "office", "saturation"))
	labels := []string{"forward"}
	v.Replace("run", func(v *loadtest.Values) {
		v.Add(metric.TCPTimeouts, 1, labels...) // opens the series
		if n := testing.AllocsPerRun(100, func() { v.Add(metric.TCPTimeouts, 1, labels...) }); n > 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

// TestPointsOfARunHaveTheNumbersOfTheScrape publishes a value of every family of a path and probe.
func TestPointsOfARunHaveTheNumbersOfTheScrape(t *testing.T) {
	in(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(testseed.Of(t), 0))
		recorder, sink := &record.Recorder{}, promsink.New(promsink.Options{})
		b := newBench(t, nil)
		b.kind.publish = func(v *loadtest.Values, _ int) { publishAll(rng, v) }
		b.env.Recorder, b.env.Sink = recorder, sink
		var err error
		if b.prober, err = loadtest.NewProber(b.env, target, b.opts, b.test()); err != nil {
			t.Fatal(err)
		}
		b.prober.Exactly()
		listener := recorder.Results().Listen(1)
		defer listener.Close()
		b.start()
		time.Sleep(time.Minute) // simulated time (synctest)
		var results [1]record.Result
		if n, _ := listener.Take(results[:]); n != 1 {
			t.Fatal("no result")
		}
		scrape, run := map[string]string{}, map[string]string{}
		if err := series.New(families.All()).Convert(sink, 1, func(p *point.Point) { fields(p, scrape) }); err != nil {
			t.Fatal(err)
		}
		point.NewRaw(families.All()).Result(&results[0], func(p *point.Point) { fields(p, run) })
		n := 0
		for key, value := range run {
			switch want, found := scrape[strings.Replace(key, point.RunPrefix, point.Prefix, 1)]; {
			case strings.HasSuffix(key, " "+point.RunField):
				if value != strconv.Quote(b.prober.LastRun()) {
					t.Errorf("%s = %s", key, value)
				}
			case !found || value != want:
				t.Errorf("%s = %s, the scrape has %s", key, value, want)
			default:
				n++
			}
		}
		if n < 150 {
			t.Errorf("%d fields are equal, want those of all families", n)
		}
		b.end()
	})
}

// publishAll publishes values of every family of a path and probe that the runner itself does not write.
func publishAll(rng *rand.Rand, v *loadtest.Values) {
	for _, g := range families.All() {
		for _, d := range g.Descs {
			if len(d.Labels) < 2 || d.Labels[1] != metric.Probe || g.Title == metric.TitleRuns {
				continue
			}
			for i := range 3 {
				labels := make([]string, len(d.Labels)-2)
				for k := range labels {
					labels[k] = []string{"0.05", "0.5", "1"}[i]
				}
				switch d.Kind {
				case metric.Counter:
					v.Add(d, float64(rng.IntN(1000)), labels...)
				case metric.Gauge:
					v.Set(d, rng.ExpFloat64(), labels...)
				case metric.Histogram:
					v.ObserveAll(d, []float64{rng.ExpFloat64(), rng.ExpFloat64(), 100 * rng.Float64()}, labels...)
				}
			}
		}
	}
}

// fields adds the fields of a point by measurement, tags and key.
func fields(p *point.Point, to map[string]string) {
	tags := slices.DeleteFunc(slices.Clone(p.Tags), func(t point.Tag) bool { return t.Key == point.LocalHourTag || t.Key == point.DayTypeTag })
	for _, f := range p.Fields {
		to[fmt.Sprint(p.Measurement, tags, " ", f.Key)] = f.Value.String()
	}
}
