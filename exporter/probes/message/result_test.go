package message

import (
	"testing"

	"oneway.example/exporter/loadtest"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/metric/metrictest"
	"oneway.example/exporter/stream"
	"oneway.example/exporter/traffic/udp"
)

// A path that loses all packets of UDP has a known throughput and a known loss.
func TestLossOfAllPacketsIsPublished(t *testing.T) {
	k := &Kind{opts: DefaultOptions()}
	p := k.ofUDP(&udp.Transfer{Counts: udp.Counts{Sent: 10, Lost: 10}, Sent: &stream.Sent{}, Received: &stream.Received{}})
	p.Direction, p.Transport = "forward", UDP
	sink := &metrictest.Keeping{}
	v := loadtest.NewValues(metric.NewScope(sink, "a-to-b", "message"))
	v.Replace("run", func(v *loadtest.Values) {
		k.Publish(v, &loadtest.Run{Body: &Result{MessageBytes: 512, Parts: []Part{p}}})
	})
	for family, want := range map[*metric.Desc]float64{metric.MessageThroughput: 0, metric.MessageLoss: 1} {
		if got, ok := sink.Value(family, "a-to-b", "message", "forward", "512", "udp"); !ok || got != want {
			t.Errorf("%s is %v, %v; want %v", family.Name, got, ok, want)
		}
	}
}
