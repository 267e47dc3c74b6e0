package train

import (
	"fmt"
	"slices"
	"strconv"

	"oneway.example/exporter/estimate/capacity"
	"oneway.example/exporter/heavy"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/sample"
)

// Result is what a run found: the report's "result".
type Result struct {
	Directions []*Direction `json:"directions"`
}

// Direction is what was found in one direction.
type Direction struct {
	Direction sample.Direction `json:"-"`
	Way       string           `json:"direction"`
	// PathMTU is in octets of IP packet; zero: not found, or not searched for.
	PathMTU int     `json:"path_mtu_bytes,omitempty"`
	Sizes   []*Size `json:"sizes"`
}

// Size is what the trains of one size said. Rates are in IP octets a second.
type Size struct {
	PayloadBytes int `json:"payload_bytes"`
	// PacketBytes is the IP packet, header included; WireBytes with the headers of its
	// fragments: what the rates count.
	PacketBytes int `json:"packet_bytes"`
	WireBytes   int `json:"wire_bytes"`
	// Fragmented: the packets are larger than the path's MTU; nil: that is not known.
	Fragmented *bool `json:"fragmented,omitempty"`
	// TrainPackets is the length of the last train: shorter than configured where the
	// slowest link's queue does not hold as many.
	TrainPackets int `json:"train_packets"`
	// Trains counts all trains by result; those that are clean have a share in the rest.
	Trains map[string]int `json:"trains"`
	// Median, P5 and P95 are of the clean trains' capacities; nil: refused.
	Median *float64 `json:"capacity_bytes_per_second,omitempty"`
	P5     *float64 `json:"capacity_5th_percentile_bytes_per_second,omitempty"`
	P95    *float64 `json:"capacity_95th_percentile_bytes_per_second,omitempty"`
	// Dispersion is the mean time from packet to packet at the receiver, in seconds.
	Dispersion *float64 `json:"dispersion_seconds,omitempty"`
	// Capacities are those of the clean trains, ascending: the whole distribution.
	Capacities []float64 `json:"capacities_bytes_per_second"`
	// Refusal is why there is no capacity, in words.
	Refusal string `json:"refusal,omitempty"`
	// Evidence has, for each result but clean, what was found wrong with the last such train.
	Evidence map[string]string `json:"evidence,omitempty"`
}

// conclude fills in what the verdicts say.
func (z *Size) conclude(verdicts []capacity.Verdict, minClean int) {
	z.Trains, z.Evidence = map[string]int{}, map[string]string{}
	for _, v := range verdicts {
		z.Trains[v.Result.String()]++
		if v.Result != capacity.Clean {
			z.Evidence[v.Result.String()] = v.Evidence
		}
	}
	all := capacity.Summarise(verdicts)
	if len(all) == 0 {
		z.Refusal = "no train was sent"
		return
	}
	// Whether the sender held a train up is seen in that train's own stamps: others are no
	// more suspect for it. What the path or the receiver does, it does to all of them.
	others := capacity.Summarise(slices.DeleteFunc(slices.Clone(verdicts), func(v capacity.Verdict) bool {
		return v.Result == capacity.SenderPace || v.Result == capacity.Unstamped
	}))
	z.Capacities = all[0].Capacities
	if len(others) == 0 || !others[0].OK || len(z.Capacities) < minClean {
		z.Refusal = refusal(all[0], verdicts, minClean)
		return
	}
	s := others[0]
	z.Median, z.P5, z.P95 = &s.Median, &s.P5, &s.P95
	z.Dispersion = new(s.MeanGap.Seconds())
}

// refusal says why trains say nothing of the capacity: what was wrong with most of them.
func refusal(s capacity.Summary, verdicts []capacity.Verdict, want int) string {
	clean, worst, evidence := s.Trains[capacity.Clean], capacity.Lost, ""
	for _, r := range capacity.Results() {
		if r != capacity.Clean && s.Trains[r] > s.Trains[worst] {
			worst = r
		}
	}
	for _, v := range verdicts {
		if v.Result == worst {
			evidence = v.Evidence
		}
	}
	why := fmt.Sprintf("%d of %d trains clean, %d %v", clean, len(verdicts), s.Trains[worst], worst)
	if clean < want {
		why = fmt.Sprintf("%d of %d trains clean (want %d), %d %v", clean, len(verdicts), want, s.Trains[worst], worst)
	}
	if evidence != "" {
		why += ", such as: " + evidence
	}
	return why
}

// best is the size whose capacity stands for the direction: the largest that is not
// fragmented and has one, since small packets show more of what hosts add to each. Nil:
// there is none.
func (d *Direction) best() (best *Size) {
	for _, z := range d.Sizes {
		whole := z.Fragmented == nil || !*z.Fragmented
		if z.Median != nil && whole && (best == nil || z.PacketBytes > best.PacketBytes) {
			best = z
		}
	}
	return best
}

// summary is a direction in a few lines.
func (d *Direction) summary() (lines []probe.Result) {
	line := func(quantity, value string) {
		lines = append(lines, probe.Result{Quantity: quantity, Direction: d.Way, Value: value})
	}
	if z := d.best(); z != nil {
		line("capacity", fmt.Sprintf("%s (5th percentile %s, trains of %d B)", heavy.Rate(*z.Median).Words(), heavy.Rate(*z.P5).Words(), z.PacketBytes))
	} else if len(d.Sizes) > 0 {
		line("capacity", "refused: "+d.Sizes[0].Refusal)
	}
	if d.PathMTU > 0 {
		line("path MTU", fmt.Sprintf("%d B", d.PathMTU))
	}
	return lines
}

// publish gives the values of a direction to the sink.
func (d *Direction) publish(v *heavy.Values) {
	if d.PathMTU > 0 {
		v.Set(metric.PathMTU, float64(d.PathMTU), d.Way)
	}
	for _, z := range d.Sizes {
		size := strconv.Itoa(z.PacketBytes)
		for _, r := range capacity.Results() {
			v.Add(metric.Trains, float64(z.Trains[r.String()]), d.Way, size, r.String())
		}
		if z.Fragmented != nil {
			fragmented := 0.0
			if *z.Fragmented {
				fragmented = 1
			}
			v.Set(metric.TrainFragmented, fragmented, d.Way, size)
		}
		if z.Median == nil {
			continue
		}
		v.ObserveAll(metric.TrainCapacity, z.Capacities, d.Way, size)
		v.Set(metric.Capacity, *z.P5, d.Way, size, "0.05")
		v.Set(metric.Capacity, *z.Median, d.Way, size, "0.5")
		v.Set(metric.Capacity, *z.P95, d.Way, size, "0.95")
		v.Set(metric.TrainDispersion, *z.Dispersion, d.Way, size)
	}
}
