package interop

import (
	"context"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/stamp"
)

// TestDaemonDoesNotCountStatsQueriesAsLostReplies runs a path as the agent does: its statistics queries use numbers of a stateful
// reflector, too.
func TestDaemonDoesNotCountStatsQueriesAsLostReplies(t *testing.T) {
	requireSuite(t)
	for _, size := range []int{44, 172} {
		f := remote{"127.0.0.1", true, false, "NTP", "ntp"}
		peer, o := f.start(t)
		o.Interval, o.Size, o.LossTimeout = 20*time.Millisecond, size, 200*time.Millisecond
		env := newEnv(t)
		counts := &metrictest.Keeping{}
		env.Sink = counts
		p, err := stamp.NewType().NewProber(env, probe.Target{Path: "p", Probe: "stamp", Peer: peer}, o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		err = p.Run(ctx)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		sent, received := counted(counts, metric.PacketsSent, "forward"), counted(counts, metric.PacketsReceived, "reverse")
		if sent < 100 || received < sent-1 {
			t.Errorf("size %d: sent %v, received %v replies", size, sent, received)
		}
		if lost := counted(counts, metric.PacketsLost, "reverse"); lost != 0 {
			t.Errorf("size %d: lost %v replies on loopback, want 0", size, lost)
		}
	}
}

// counted is the sum of a family's counters of a direction.
func counted(sink *metrictest.Keeping, d *metric.Desc, direction string) (sum float64) {
	for labels, v := range sink.All(d) {
		if strings.HasSuffix(labels, ","+direction) {
			sum += v
		}
	}
	return sum
}
