package probes_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/loadtesttest"
	"oneway.example/exporter/probes"
	"oneway.example/exporter/probes/message"
	"oneway.example/exporter/probes/saturation"
	"oneway.example/exporter/probes/sizesweep"
	"oneway.example/exporter/probes/tcp"
	"oneway.example/exporter/probes/tcpshort"
	"oneway.example/exporter/probes/tcpsweep"
	"oneway.example/exporter/probes/train"
)

// begunByRuns are the counters that do not exist before the first run, with the reason.
func begunByRuns() map[*metric.Desc]string {
	return map[*metric.Desc]string{
		metric.TCPTimeouts: "a run tells whether the kernel of the sender counts them",
	}
}

// TestCountersOfARunExistBefore: an increase since before the first run includes it. That a run adds to no other counters is
// what keeps the list of each Kind complete.
func TestCountersOfARunExistBefore(t *testing.T) {
	const short = 200 * time.Millisecond
	tests := map[string]func(*testing.T){
		"saturation": countersOf(saturation.NewType(), func(o *saturation.Options) {
			o.Rate, o.Duration = option.PerDirection{Forward: 100_000, Reverse: 100_000}, time.Second
		}),
		"size_sweep": countersOf(sizesweep.NewType(), func(o *sizesweep.Options) {
			o.PacketBytes, o.PacketRates, o.CellDuration, o.Repetitions = []int{200}, []int{100}, short, 1
		}),
		"train": countersOf(train.NewType(), func(o *train.Options) {
			o.PayloadBytes, o.Trains, o.MinClean, o.TrainInterval, o.Repeats, o.LongTrainPackets, o.PathMTU = []int{100, 1000}, 3, 3, 20*time.Millisecond, 2, 0, false
		}),
		"tcp": countersOf(tcp.NewType(), func(o *tcp.Options) { o.Duration, o.Omit = time.Second, 0 }),
		"tcp_sweep": countersOf(tcpsweep.NewType(), func(o *tcpsweep.Options) {
			o.SendBuffers, o.CellDuration, o.Omit, o.Repetitions = []tcpsweep.Size{100_000}, time.Second, 0, 1
		}),
		"tcp_short": countersOf(tcpshort.NewType(), func(o *tcpshort.Options) { o.Repetitions = 8 }),
		"message":   countersOf(message.NewType(), func(o *message.Options) { o.Duration = time.Second }),
	}
	var types []string
	for _, one := range probes.All() {
		_, options := one.Document()
		if slices.ContainsFunc(options, func(d option.Described) bool { _, ok := d.(*loadsession.Options); return ok }) {
			types = append(types, one.Name()) // a load server of this program is its remote end
		}
	}
	if names := slices.Sorted(maps.Keys(tests)); !slices.Equal(names, slices.Sorted(slices.Values(types))) {
		t.Errorf("tests of %q, types %q", names, types)
	}
	for name, test := range tests {
		t.Run(name, test)
	}
}

// countersOf compares the counters after a run with those before.
func countersOf[O any](of loadsession.Type[O], change func(*O)) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		own, sink := of.Defaults(), &metrictest.Keeping{}
		change(&own)
		var before map[string]float64
		outcome, err := loadtesttest.Run(t, of, loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{}), own, sink, func(loadtest.Progress) {
			if before == nil {
				before = counters(sink)
			}
		})
		// On a busy host the trains leave with gaps, and none may be clean: the counters say so.
		if err != nil && !runreason.Find(outcome.Reason).Counted {
			t.Fatal(err)
		}
		for key, v := range before {
			if v != 0 {
				t.Errorf("%s is %v before the run", key, v)
			}
		}
		for key := range counters(sink) {
			reason := err != nil && strings.HasPrefix(key, metric.Runs.Name) // a reason begins with its first run
			if _, ok := before[key]; !ok && !reason {
				t.Errorf("%s begins with the run", key)
			}
		}
	}
}

// counters are the counters and histograms of a sink that do not begin with a run.
func counters(sink *metrictest.Keeping) map[string]float64 {
	all := map[string]float64{}
	for _, g := range metric.Groups(metric.Declared(probes.All())...) {
		for _, d := range g.Descs {
			if begunByRuns()[d] == "" && d.Kind != metric.Gauge {
				maps.Copy(all, sink.Present(d.Name+"{"))
			}
		}
	}
	return all
}
