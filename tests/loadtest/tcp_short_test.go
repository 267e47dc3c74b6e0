package loadtest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/tests/lab"
	"oneway.example/tests/tcplog"
)

// A flow takes one round trip for the handshake, and one for each flight of segments in slow start (RFC 6928: ten, and then
// twice as many), as its end reaches the client in both directions: 7 segments are one flight, 42 are three, 104 are four. The
// link's log has the same time of each flow: from its first segment to the last with payload or, in forward direction, to the end
// of the load server's stream.
func TestShortFlowsTakeTheRoundTripsOfSlowStart(t *testing.T) {
	const rate = 50e6 / 8
	up, down := 35*time.Millisecond, 15*time.Millisecond // both directions have the same round trip
	client, _ := lab.Addresses()
	s := newSite(t, lab.Options{Segments: tcplog.Segments(client, loadcontrol.DefaultPort), Profile: lab.Profile{
		Name: "fixed", Forward: lab.Link{Rate: 8 * rate, Delay: up, Queue: 1_000_000}, Reverse: lab.Link{Rate: 8 * rate, Delay: down, Queue: 1_000_000},
	}})
	r := s.StartShort(t, "--flow-bytes=10kB", "--flow-bytes=60kB", "--flow-bytes=150kB", "--repetitions=10").FinishShort(t, 0)
	if len(r.Result.Sizes) != 6 {
		t.Fatalf("%+v", r.Result)
	}
	rounds := map[int64]time.Duration{10_000: 2, 60_000: 4, 150_000: 5}
	for _, z := range r.Result.Sizes {
		if z.Unfinished > 0 || z.Completion.Median == nil {
			t.Errorf("%s, %d bytes: %+v", z.Direction, z.FlowBytes, z)
			continue
		}
		// What the link adds is the transmission of the last flight at least, and of all payload at most.
		least := (rounds[z.FlowBytes] * (up + down)).Seconds()
		most := least + float64(z.FlowBytes)*1.1/rate
		m := z.Completion.Median
		t.Logf("%s, %6d bytes: median %.1f ms (%.1f to %.1f), least %.1f; %.0f to %.0f ms expected; handshake %.1f ms", z.Direction, z.FlowBytes,
			1e3*m.Value, 1e3*m.Lower, 1e3*known(m.Upper), 1e3**z.Completion.Least, 1e3*least, 1e3*most, 1e3**z.Connect)
		if *z.Completion.Least < least {
			t.Errorf("%s, %d bytes: %.1f ms are less than %d round trips", z.Direction, z.FlowBytes, 1e3**z.Completion.Least, rounds[z.FlowBytes])
		}
		within(t, fmt.Sprintf("%s, %d bytes: median", z.Direction, z.FlowBytes), m.Value, least, most+0.010)
		if *z.Connect < (up + down).Seconds() {
			t.Errorf("%s: handshake %v", z.Direction, *z.Connect)
		}
		within(t, z.Direction+": handshake", *z.Connect, 0.050, 0.055)
	}
	s.Drained(t)
	spans, turns, next := tcplog.Spans(s.Network.Log(sample.Forward), s.Network.Log(sample.Reverse)), loadtest.Turns(6, 10, 1), [6]int{}
	if len(spans) != len(turns) {
		t.Fatalf("the link's log has %d connections, want %d", len(spans), len(turns))
	}
	var later []time.Duration
	for i, cell := range turns {
		z := &r.Result.Sizes[cell]
		f, end := z.Flows[next[cell]], spans[i].Payload[sample.Reverse]
		next[cell]++
		if z.Direction == sample.Forward.String() {
			end = spans[i].Last[sample.Reverse]
		}
		truth := end.Sub(spans[i].Begin)
		later = append(later, time.Duration(*f.Completion*1e9)-truth)
		if later[i] < 0 {
			t.Errorf("flow %d, %s, %d bytes: %.3f ms; the link's log has %.3f", i, z.Direction, z.FlowBytes, 1e3**f.Completion, 1e3*truth.Seconds())
		}
	}
	slices.Sort(later)
	t.Logf("later than the link's log: least %v, median %v, 90 %%: %v, most %v", later[0], later[30], later[54], later[59])
	within(t, "median, ms later than the link's log", 1e3*later[30].Seconds(), 0, 1)
}
