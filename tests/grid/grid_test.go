// Package grid compares every count and every delay that oneway reports with the emulated link's own log, over a grid
// of faults.
package grid

import (
	"fmt"
	"os"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/probes/stamp"
	"oneway.example/tests/lab"
	"oneway.example/tests/testbed"
	"oneway.example/tests/testseed"
)

func TestMain(m *testing.M) { os.Exit(lab.Main(m.Run)) }

func TestAllCountsEqualTheLinksLog(t *testing.T) {
	lab.Require(t)
	seed := testseed.Of(t)
	for _, loss := range []float64{0, 0.02, 0.20} {
		for _, duplicate := range []float64{0, 0.05} {
			for _, reorder := range []float64{0, 0.03} {
				for _, corrupt := range []float64{0, 0.01} {
					name := fmt.Sprintf("loss=%g/duplicate=%g/reorder=%g/corrupt=%g", loss, duplicate, reorder, corrupt)
					link := lab.Link{Delay: 5 * time.Millisecond, Loss: loss, Duplicate: duplicate, Reorder: reorder, Corrupt: corrupt}
					seed++
					own := seed
					t.Run(name, func(t *testing.T) {
						t.Parallel() // a run mostly waits, in networks of its own
						compare(t, link, own)
					})
				}
			}
		}
	}
}

// beginsWhole damages none of the first packets: before the remote end has received a Receipt it replies to a packet
// whose Receipt is damaged (TestFirstPacketWithoutItsReceiptIsCountedAsCorruptedLater of package reflector), and that
// undamaged reply counts as damaged here.
func beginsWhole(_ sample.Direction, key uint64, f lab.Faults) lab.Faults {
	f.Corrupt = f.Corrupt && key >= 10
	return f
}

// packets of one run, enough for every fault of the grid to occur.
const (
	packets  = 1000
	interval = 2 * time.Millisecond
	wait     = 2 * time.Second // longer than the stalls of a busy host: no packet may be late
)

func compare(t *testing.T, link lab.Link, seed uint64) {
	network := lab.Start(t, lab.Options{
		Profile: lab.Profile{Name: "grid", Forward: link, Reverse: link}, Seed: seed,
		Classifier: testbed.Classify, SpareOthers: true, Script: beginsWhole,
	})
	report, each := measure(t, network)
	if err := network.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if report.Reflector != "oneway" {
		t.Fatalf("reflector %q", report.Reflector)
	}
	for _, d := range []struct {
		direction sample.Direction
		got       stamp.DirectionReport
	}{{sample.Forward, report.Forward}, {sample.Reverse, report.Reverse}} {
		want := truthOf(network.Log(d.direction))
		got := counted(t, d.got)
		if got != want {
			t.Errorf("seed %d, %s:\n got %+v\nwant %+v", seed, d.direction, got, want)
		}
		t.Logf("%s: %+v", d.direction, got)
		if got.sent != got.received+got.lost+*d.got.HostDropped+got.outstanding {
			t.Errorf("%s: sent %d, received %d, lost %d, outstanding %d: the sum is wrong", d.direction, got.sent, got.received, got.lost, got.outstanding)
		}
		if d.got.Negative != 0 {
			t.Errorf("%s: %d negative delays", d.direction, d.got.Negative)
		}
		compareEach(t, d.direction, each, network.Log(d.direction))
	}
}

// counts are the integers that must be equal.
type counts struct{ sent, received, lost, duplicated, reordered, corrupted, late, outstanding uint64 }

func counted(t *testing.T, d stamp.DirectionReport) counts {
	t.Helper()
	for _, p := range []*uint64{d.Sent, d.Received, d.Lost, d.Duplicated, d.Reordered, d.Corrupted, d.Late, d.Outstanding} {
		if p == nil {
			t.Fatal("a count is absent with a oneway remote end")
		}
	}
	return counts{*d.Sent, *d.Received, *d.Lost, *d.Duplicated, *d.Reordered, *d.Corrupted, *d.Late, *d.Outstanding}
}

// truthOf returns the counts of both ends by the link's log.
func truthOf(log []lab.Record) counts {
	t := lab.TallyOf(log)
	return counts{sent: t.Sent, received: t.Received, lost: t.Lost, duplicated: t.Duplicated, reordered: t.Reordered, corrupted: t.Corrupted}
}

// clockError is the configured bound of the two hosts' common clock. It must cover nothing: the rest of the bound has
// to be sufficient.
const clockError = time.Microsecond

// measure runs a reflector on the server and a sender on the client.
func measure(t *testing.T, network *lab.Lab) (stamp.Report, []reported) {
	t.Helper()
	var each []reported
	report := testbed.Measure(t, network, testbed.Run{
		Reflector: network.Server.Addr4, ClockError: clockError, Packets: packets, Interval: interval, LossWait: wait,
		Each: func(p sample.Packet, forward, reverse sample.Delay) {
			each = append(each, reported{p, [2]sample.Delay{forward, reverse}})
		},
	})
	return report, each
}
