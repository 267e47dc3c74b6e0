package loadtest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/loadtest"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/record"
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
