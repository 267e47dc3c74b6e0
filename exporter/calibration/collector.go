package calibration

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"oneway.example/exporter/sample"
)

const (
	// MinCount is how many packets each direction needs: "at least hundreds" (RFC
	// 7679 section 3.7.3), of which the outer 2.5 % are then five or more.
	MinCount = 200
	// keptShare is the share of the replies that must have been usable: the 95 % of a
	// selection would be the 95 % of nothing.
	keptShare = 0.95
)

// Collector gathers the delays of a back-to-back run. Make it with NewCollector; its
// methods are not for concurrent use.
type Collector struct {
	want     sample.Origin
	answered int
	delays   [2][]observation
	left     map[string]int // why answers were left out
}

// NewCollector expects count packets whose local stamps are of the given origin, which
// is sample.Kernel or sample.Hardware.
func NewCollector(want sample.Origin, count int) *Collector {
	c := &Collector{want: want, left: map[string]int{}}
	for d := range c.delays {
		c.delays[d] = make([]observation, 0, max(count, 0))
	}
	return c
}

// Add takes one answered packet; it fits probes/stamp's Prober.OnPacket.
func (c *Collector) Add(p sample.Packet, forward, reverse sample.Delay) {
	c.answered++
	for i, d := range []struct {
		delay    sample.Delay
		from, to sample.Stamp
		local    sample.Stamp
	}{{forward, p.T1, p.T2, p.T1}, {reverse, p.T3, p.T4, p.T4}} {
		name := sample.Direction(i).String()
		switch {
		// A bound too large for so small a delay is no reason not to know it.
		case d.delay.Reason != sample.OK && d.delay.Reason != sample.BoundTooLarge:
			c.left[name+": "+words(d.delay.Reason.String())]++
		case d.local.Origin != c.want || !driver(d.from.Origin) || !driver(d.to.Origin):
			c.left[fmt.Sprintf("%s: stamps of origin %s and %s", name, words(d.from.Origin.String()), words(d.to.Origin.String()))]++
		default:
			c.delays[i] = append(c.delays[i], observation{d.delay.Value, d.from.TXUncertainty})
		}
	}
}

func words(label string) string { return strings.ReplaceAll(label, "_", " ") }

// driver tells whether a stamp was taken below user space. The remote end's transmit
// stamps come later, as a FollowUp.
func driver(o sample.Origin) bool {
	return o == sample.Kernel || o == sample.Hardware || o == sample.FollowUp
}

// ErrUnusable says that a run does not make a calibration.
var ErrUnusable = errors.New("too few usable packets for a calibration")

// Result is the error of both directions, given the true delay of one way: wire
// length plus size over rate. It may be called once.
func (c *Collector) Result(trueDelay time.Duration) (forward, reverse Direction, err error) {
	for i, all := range c.delays {
		if len(all) < MinCount || float64(len(all)) < keptShare*float64(c.answered) {
			return forward, reverse, fmt.Errorf("calibration: %w: %s: %d of %d answers, want at least %d and %.0f %% of them%s",
				ErrUnusable, sample.Direction(i), len(all), c.answered, MinCount, 100*keptShare, c.because())
		}
	}
	return summarize(c.delays[sample.Forward], trueDelay), summarize(c.delays[sample.Reverse], trueDelay), nil
}

// because lists why answers were left out, in a fixed order.
func (c *Collector) because() string {
	var why []string
	for reason, n := range c.left {
		why = append(why, fmt.Sprintf("%d %s", n, reason))
	}
	if len(why) == 0 {
		return ""
	}
	slices.Sort(why)
	return " (left out: " + strings.Join(why, "; ") + ")"
}
