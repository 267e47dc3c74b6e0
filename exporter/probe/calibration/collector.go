package calibration

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/unit"
)

const (
	// MinCount is the number of packets that each direction needs: "at least hundreds" (RFC 7679 section 3.7.3); the
	// outer 2.5 % are then at least five packets.
	MinCount = 200
	// keptShare is the share of the replies that must be usable: the 95 % interval of a selection is not the one of all
	// packets.
	keptShare = 0.95
)

// Collector collects the delays of a back-to-back run. Make it with NewCollector; its methods are not safe for concurrent
// use.
type Collector struct {
	want      sample.Origin
	answered  int
	delays    [2][]observation
	discarded map[string]int // discarded replies by reason
}

// NewCollector makes a collector for count packets whose local timestamps are of the given origin, sample.Kernel or
// sample.Hardware.
func NewCollector(want sample.Origin, count int) *Collector {
	c := &Collector{want: want, discarded: map[string]int{}}
	for d := range c.delays {
		c.delays[d] = make([]observation, 0, max(count, 0))
	}
	return c
}

// Add adds a packet with a reply; it fits Prober.OnPacket of probes/stamp.
func (c *Collector) Add(p sample.Packet, forward, reverse sample.Delay) {
	c.answered++
	for i, d := range []struct {
		delay    sample.Delay
		from, to sample.Stamp
		local    sample.Stamp
	}{{forward, p.T1, p.T2, p.T1}, {reverse, p.T3, p.T4, p.T4}} {
		name := sample.Direction(i).String()
		switch {
		// A bound that is too large for a small delay does not matter here.
		case d.delay.Reason != sample.OK && d.delay.Reason != sample.BoundTooLarge:
			c.discarded[name+": "+metric.Words(d.delay.Reason.String())]++
		case d.local.Origin != c.want || !driver(d.from.Origin) || !driver(d.to.Origin):
			c.discarded[fmt.Sprintf("%s: timestamps of origin %s and %s", name, metric.Words(d.from.Origin.String()), metric.Words(d.to.Origin.String()))]++
		default:
			c.delays[i] = append(c.delays[i], observation{d.delay.Value, d.from.TXUncertainty})
		}
	}
}

// driver reports whether a timestamp was taken below user space. The TX timestamps of the remote end arrive later, as a
// FollowUp.
func driver(o sample.Origin) bool {
	return o == sample.Kernel || o == sample.Hardware || o == sample.FollowUp
}

// ErrTooFewPackets is the error of a run with too few usable packets.
var ErrTooFewPackets = errors.New("too few usable packets for a calibration")

// Result is the error of both directions. trueDelay is the true one-way delay: propagation delay plus packet size divided by
// rate. It may be called once.
func (c *Collector) Result(trueDelay time.Duration) (forward, reverse Direction, err error) {
	for i, all := range c.delays {
		if len(all) < MinCount || float64(len(all)) < keptShare*float64(c.answered) {
			return forward, reverse, fmt.Errorf("calibration: %w: %s: %d of %d replies, want at least %d and %s of them%s",
				ErrTooFewPackets, sample.Direction(i), len(all), c.answered, MinCount, unit.Ratio.Format(keptShare), c.because())
		}
	}
	return summarize(c.delays[sample.Forward], trueDelay), summarize(c.delays[sample.Reverse], trueDelay), nil
}

// because lists the reasons of discarded replies, in a fixed order.
func (c *Collector) because() string {
	var why []string
	for reason, n := range c.discarded {
		why = append(why, fmt.Sprintf("%d %s", n, reason))
	}
	if len(why) == 0 {
		return ""
	}
	slices.Sort(why)
	return " (left out: " + strings.Join(why, "; ") + ")"
}
