// Package accuracy compares reported delays with the kernel's own times of the same packets, taken by packet sockets.
package accuracy

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/probes/stamp"
	"oneway.example/tests/capture"
	"oneway.example/tests/lab"
	"oneway.example/tests/precision"
	"oneway.example/tests/testbed"
)

func TestMain(m *testing.M) { os.Exit(lab.Main(m.Run)) }

const (
	packets  = 800
	interval = 4 * time.Millisecond
	// rounds: a busy machine may spoil one, wrong timestamps fail all of them.
	rounds = 5

	wantMedian   = 5 * time.Microsecond
	wantP99      = 20 * time.Microsecond
	wantCoverage = 0.999
)

// TestReportedDelayIsTheKernels measures over a veth pair and compares, packet by packet, the reported delay with the
// times of packet sockets at both ends of the pair. At least one of the rounds must meet each limit: that of coverage
// on every machine, those of precision on a quiet one.
func TestReportedDelayIsTheKernels(t *testing.T) {
	lab.Require(t)
	network := lab.Start(t, lab.Options{Profile: lab.Profile{Name: "accuracy"}})
	kept := map[string]bool{}
	for round := range rounds {
		met := true
		for limit, err := range compare(t, network) {
			if err != nil {
				t.Logf("round %d: %v", round, err)
			}
			kept[limit] = kept[limit] || err == nil
			met = met && kept[limit]
		}
		if met {
			return
		}
	}
	for limit, ok := range kept {
		if err := fmt.Errorf("%s: no good round among %d", limit, rounds); !ok && limit == "coverage" {
			t.Error(err)
		} else if !ok {
			precision.Missed(t, err)
		}
	}
}

// compare runs a round and returns an error for each limit that it exceeds.
func compare(t *testing.T, network *lab.Lab) map[string]error {
	var captures [2]*capture.Capture
	for i, host := range []*lab.Host{network.Client, network.Server} {
		err := host.Do(func() (err error) { captures[i], err = capture.Open("lan0"); return err })
		if err != nil {
			t.Fatal(err)
		}
	}
	var delays [2][]time.Duration
	report := testbed.Measure(t, network, testbed.Run{
		Reflector: network.Server.LAN4, ClockError: time.Microsecond, Packets: packets, Interval: interval,
		Each: func(_ sample.Packet, forward, reverse sample.Delay) {
			delays[sample.Forward] = append(delays[sample.Forward], forward.Value)
			delays[sample.Reverse] = append(delays[sample.Reverse], reverse.Value)
		},
	})
	var seen [2][]capture.Packet
	for i := range captures {
		var err error
		if seen[i], err = captures[i].Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if *report.Forward.Received != packets || report.RoundTrip.Received != packets {
		t.Fatalf("received %d forward and %d round trip of %d packets on a link without loss", *report.Forward.Received, report.RoundTrip.Received, packets)
	}
	verdicts := map[string]error{"coverage": coverage(t, report)}
	for _, d := range sample.Directions() {
		verdicts[d.String()] = judge(t, d, delays[d], truth(d, seen))
	}
	return verdicts
}

// coverage expects kernel timestamps for nearly all packets. That of T3 is received by Follow-Up Telemetry.
func coverage(t *testing.T, r stamp.Report) error {
	var errs []error
	for event, origin := range map[string]string{"t1": "kernel", "t2": "kernel", "t3": "follow_up", "t4": "kernel"} {
		ratio := float64(r.Stamps[event][origin]) / packets
		t.Logf("%s: %.4f %s", event, ratio, origin)
		if ratio < wantCoverage {
			errs = append(errs, fmt.Errorf("%s: kernel timestamps for %.4f of the packets, want %v: %v", event, ratio, wantCoverage, r.Stamps[event]))
		}
	}
	return errors.Join(errs...)
}

// truth is the delay of each packet of a direction between the two ends, in order.
func truth(d sample.Direction, seen [2][]capture.Packet) (all []time.Duration) {
	from, to := seen[0], seen[1]
	if d == sample.Reverse {
		from, to = to, from
	}
	left := map[uint32]capture.Packet{}
	for _, p := range from {
		if seq, ok := testPacket(p, d); ok && p.Outgoing {
			left[seq] = p
		}
	}
	for _, p := range to {
		if seq, ok := testPacket(p, d); ok && !p.Outgoing && left[seq].At != 0 {
			all = append(all, p.At.Sub(left[seq].At))
		}
	}
	return all
}

func testPacket(p capture.Packet, d sample.Direction) (seq uint32, ok bool) {
	port := p.Destination
	if d == sample.Reverse {
		port = p.Source
	}
	if port != testbed.Port {
		return 0, false
	}
	return testbed.TestPacket(p.Head[:min(p.Bytes, capture.HeadBytes)])
}

// judge compares the n-th reported delay with the n-th true one: the link neither loses nor reorders.
func judge(t *testing.T, d sample.Direction, got, want []time.Duration) error {
	if len(got) != packets || len(want) != packets {
		t.Fatalf("%s: %d delays reported, %d packets captured, want %d", d, len(got), len(want), packets)
	}
	wrong := make([]time.Duration, packets)
	for i := range got {
		wrong[i] = (got[i] - want[i]).Abs()
	}
	slices.Sort(wrong)
	slices.Sort(want)
	median, p99 := wrong[packets/2], wrong[packets*99/100]
	t.Logf("%s: error of the reported delay p50 %v, p99 %v, max %v; true delay p50 %v, p99 %v",
		d, median, p99, wrong[packets-1], want[packets/2], want[packets*99/100])
	if median >= wantMedian || p99 >= wantP99 {
		return fmt.Errorf("%s: error of the reported delays is %v (median) and %v (99 %%), want below %v and %v", d, median, p99, wantMedian, wantP99)
	}
	return nil
}
