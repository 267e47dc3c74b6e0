package grid

import (
	"testing"
	"time"

	"oneway.example/exporter/sample"
	"oneway.example/tests/lab"
)

// TestEveryDelayLiesWithinItsBoundOfTheTruth compares packet by packet, both
// ways, under jitter, loss and reordering.
func TestEveryDelayLiesWithinItsBoundOfTheTruth(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	link := lab.Link{Delay: 20 * time.Millisecond, Jitter: 8 * time.Millisecond, Loss: 0.02, Reorder: 0.02}
	network := lab.Start(t, lab.Options{
		Profile: lab.Profile{Name: "truth", Forward: link, Reverse: link}, Seed: seed,
		Classifier: testPacket, SpareOthers: true,
	})
	var got []reported
	measure(t, network, func(p sample.Packet, forward, reverse sample.Delay) {
		got = append(got, reported{p, [2]sample.Delay{forward, reverse}})
	})
	if err := network.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(got) < packets*9/10 {
		t.Fatalf("%d packets reported", len(got))
	}
	for _, d := range sample.Directions() {
		compareEach(t, d, got, network.Log(d))
	}
}

// reported is what the sender said of one packet.
type reported struct {
	sample.Packet
	delay [2]sample.Delay
}

func compareEach(t *testing.T, d sample.Direction, got []reported, log []lab.Record) {
	t.Helper()
	truth := map[uint64]*lab.Record{}
	stall := time.Duration(0) // see checkDelay
	for i := range log {
		truth[log[i].Key] = &log[i]
		if log[i].Fate == lab.Delivered && !log[i].Held {
			stall = max(stall, log[i].Late())
		}
	}
	worst, coarse := time.Duration(0), 0
	for _, g := range got {
		key, v := g.Seq, g.delay[d]
		if d == sample.Reverse {
			key = g.ReverseSeq
		}
		r := truth[key]
		if r == nil || r.Fate != lab.Delivered {
			t.Errorf("%s: packet %d was reported, and the link did not deliver it: %+v", d, key, r)
			continue
		}
		if !v.OK() {
			t.Errorf("%s: packet %d has no valid delay: %v", d, key, v.Reason)
			continue
		}
		if v.Bound > time.Millisecond {
			coarse++ // a user-space stamp stood in, and the bound says so
		}
		// The truth itself is known to half the width of the exit's interval.
		off := (v.Value - r.Delay()).Abs() - r.Exit.Width()/2
		worst = max(worst, off)
		if off > v.Bound+stall {
			t.Errorf("%s: packet %d: reported %v, true %v, bound %v (T1 %v, T3 %v)", d, key, v.Value, r.Delay(), v.Bound, g.T1.Origin, g.T3.Origin)
		}
	}
	t.Logf("%s: %d delays, worst error %v, %d with a user-space stamp", d, len(got), worst, coarse)
}
