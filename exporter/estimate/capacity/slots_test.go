package capacity

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"oneway.example/tests/testseed"
)

// slotted is a train over a link that may send so many bytes at each multiple of slot, as a recorded cellular link does: what a packet
// leaves of an opportunity begins the next one. The first packet meets an idle link.
func slotted(rng *rand.Rand, n, size, bytes int, slot time.Duration) Train {
	t := Train{IPBytes: size}
	sent := epoch
	first := slot - time.Duration(rng.Int64N(int64(slot)))
	for i := range n {
		// The first packet has an opportunity of its own; the rest of it begins the second one.
		opportunity := math.Ceil(float64((i+1)*size)/float64(bytes)) - 1
		noise := time.Duration(rng.NormFloat64() * float64(2*us))
		t.Packets = append(t.Packets, Packet{
			Sent:    sent.Add(time.Duration(i) * 2 * us),
			Arrived: sent.Add(20*ms + first + time.Duration(opportunity)*slot + time.Duration(i)*10*us + noise),
		})
	}
	return t
}

// The first packet of each train waits for an opportunity. So the last one is later than over an even link, by the same part of a slot in
// every train: trains agree, and all are off.
func TestIntervalCoversTheRateOfSlotsThatCarryOneToTwoPackets(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 0))
	const bytes = 1504
	told := 0
	for _, slot := range []time.Duration{4 * ms, 12 * ms, 24 * ms} {
		for size := 760; size <= 1500; size += 20 {
			for _, packets := range []int{15, 25, 50} {
				if opportunities := math.Ceil(float64(packets*size) / bytes); float64(packets)-opportunities < fewGrouped {
					continue // a train of packets with an opportunity each looks like one over an even link
				}
				var verdicts []Verdict
				for range 10 {
					verdicts = append(verdicts, Evaluate(slotted(rng, packets, size, bytes, slot), Options{StampError: 25 * us}))
				}
				s := Summarize(verdicts, 3)
				if !s.OK {
					continue
				}
				told++
				if rate := bytes / slot.Seconds(); rate < s.Low || rate > s.High {
					t.Errorf("slots of %v, %d packets of %d bytes: %.0f..%.0f B/s, want them to enclose %.0f: %v", slot, packets, size, s.Low, s.High, rate, s.Trains)
				}
			}
		}
	}
	if told < 100 {
		t.Errorf("%d of the runs have a capacity, want at least 100", told)
	}
	t.Logf("%d runs have a capacity", told)
}
