package links

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"oneway.example/exporter/estimate/orderstat"
	"oneway.example/exporter/estimate/queue"
	"oneway.example/tests/bottleneck"
)

// Verdict is one run's result beside the truth.
type Verdict struct {
	Case Case
	Seed uint64
	Told queue.Result
	// Kind: the state is right. Unknown is never.
	Kind bool
	// True is the bytes of this test that the queue held when it refused, from..to; Sized: there
	// is such a size, Covered: the reported interval contains it, Narrow: its half is at most three
	// packets or a tenth. A size where there must be none is not Covered.
	True                    [2]float64
	Sized, Covered, Narrow  bool
	Held                    float64 // the largest backlog with an admitted packet, in bytes
	AtLeast                 bool    // the reported value is not above Held
	Delays                  [3]time.Duration
	Delay                   bool // each is within the reported bound
	Throughput              bool // each second is within 2 %
	WorstSecond, WorstDelay float64
}

// Judge runs a case.
func Judge(c Case, seed uint64) Verdict {
	packets, truth := c.Run(c.Sender, seed)
	v := Verdict{Case: c, Seed: seed, Told: queue.Analyze(packets, queue.Options{Load: 1, After: 2, StampError: 50 * time.Microsecond, Drift: 2e-6 + math.Abs(c.Drift)})}
	v.Kind = v.Told.State != queue.Unknown && slices.Contains(c.Kinds, v.Told.State)
	v.size(&truth)
	v.AtLeast = v.Told.AtLeast <= v.Held
	v.delay(&truth)
	v.throughput(&truth)
	return v
}

func (v *Verdict) size(truth *Truth) {
	var refused []float64
	size := float64(v.Case.Size)
	for i := truth.Load; i < truth.End; i++ {
		own := float64(truth.Own[i])
		switch truth.Outs[i].Outcome {
		case bottleneck.Refused:
			refused = append(refused, own)
		default:
			v.Held = max(v.Held, own+size)
		}
	}
	slices.Sort(refused)
	v.Sized = v.Case.Kinds[0] == queue.Filled
	switch {
	case v.Case.Limit > 0:
		v.True = [2]float64{float64(v.Case.Limit) - size, float64(v.Case.Limit)}
	case v.Sized && len(refused) > 0:
		// It held at most the backlog of a refused packet and that packet.
		v.True = [2]float64{orderstat.Quantile(refused, 0.5), orderstat.Quantile(refused, 0.5) + size}
	default: // it expires
		v.True = [2]float64{0, math.Inf(1)}
	}
	t := v.Told.Size
	if !v.Sized {
		v.Covered = !t.OK
		return
	}
	if slices.Contains(v.Case.Kinds, queue.Unknown) && !t.OK { // unknown is a permitted result
		v.Covered = true
		return
	}
	v.Covered = t.OK && t.Value-t.Bound <= v.True[1] && t.Value+t.Bound >= v.True[0]
	v.Narrow = t.OK && t.Bound <= max(3*size, 0.1*v.True[1])
}

// delay compares the full queue's delay: the same quantiles of packets admitted when it had no space for
// another.
func (v *Verdict) delay(truth *Truth) {
	var full []time.Duration
	least := time.Duration(math.MaxInt64)
	edge := v.True[0] - float64(v.Case.Size)/2
	for i := range truth.Arrived {
		if truth.Arrived[i] == 0 {
			continue
		}
		d := truth.Arrived[i].Sub(truth.Outs[i].Entry)
		if i < truth.Load || i >= truth.End {
			least = min(least, d)
			continue
		}
		if float64(truth.Own[i]+v.Case.Size) >= edge {
			full = append(full, d)
		}
	}
	slices.Sort(full)
	v.Delay = true
	if !v.Sized || v.Case.Limit > 0 || len(full) == 0 || !v.Told.Delay[0].OK {
		return
	}
	for i, q := range [...]float64{0.05, 0.5, 0.95} {
		v.Delays[i] = orderstat.Quantile(full, q) - least
		off := (v.Told.Delay[i].Value - v.Delays[i]).Abs()
		v.WorstDelay = max(v.WorstDelay, off.Seconds()/v.Told.Delay[i].Bound.Seconds())
		v.Delay = v.Delay && off <= v.Told.Delay[i].Bound
	}
}

// throughput compares the whole seconds of the load.
func (v *Verdict) throughput(truth *Truth) {
	least := time.Duration(math.MaxInt64)
	for i := range truth.Arrived {
		if truth.Arrived[i] != 0 {
			least = min(least, truth.Arrived[i].Sub(truth.Outs[i].Entry))
		}
	}
	begin := truth.Outs[truth.Load].Entry
	whole := int(truth.Outs[truth.End-1].Entry.Sub(begin) / time.Second)
	bytes := make([]float64, whole)
	for i := truth.Load; i < truth.End; i++ {
		if truth.Arrived[i] == 0 {
			continue
		}
		if k := int((truth.Arrived[i].Sub(begin) - least) / time.Second); k >= 0 && k < whole {
			bytes[k] += float64(v.Case.Size)
		}
	}
	v.Throughput = true
	for k, o := range bytes {
		if k >= len(v.Told.PerSecond) {
			break
		}
		// A packet may be on either side of each end.
		off := max(math.Abs(v.Told.PerSecond[k].Received-o)-2*float64(v.Case.Size), 0) / max(o, 1)
		v.WorstSecond = max(v.WorstSecond, off)
		v.Throughput = v.Throughput && off <= 0.02
	}
}

// Row is the verdict as a line of a table.
func (v *Verdict) Row() []string {
	t := &v.Told
	size, told := "-", "-"
	if v.Sized && !math.IsInf(v.True[1], 0) {
		size = fmt.Sprintf("%.1f", v.True[1]/1e3)
	}
	if t.Size.OK {
		told = fmt.Sprintf("%.1f ± %.1f", t.Size.Value/1e3, t.Size.Bound/1e3)
	}
	delay, added := "-", "-"
	if v.Delays[1] > 0 {
		delay = fmt.Sprintf("%.1f", v.Delays[1].Seconds()*1e3)
	}
	if t.Delay[1].OK {
		added = fmt.Sprintf("%.1f ± %.1f", t.Delay[1].Value.Seconds()*1e3, t.Delay[1].Bound.Seconds()*1e3)
	}
	least := "-"
	if t.AtLeast > 0 {
		least = fmt.Sprintf("%.1f", t.AtLeast/1e3)
	}
	rate := func(v float64) string { return fmt.Sprintf("%.3g", 8*v/1e6) }
	return []string{
		v.Case.Name, t.State.String(), size, told, fmt.Sprintf("%.1f", v.Held/1e3), least, delay, added,
		rate(t.Rates[0]) + " " + rate(t.Rates[1]) + " " + rate(t.Rates[2]), v.faults(),
	}
}

// Head names the columns of Row.
func Head() []string {
	return []string{"link", "kind", "true kB", "reported kB", "held kB", "at least kB", "true ms", "reported ms", "Mb/s: 5 %, 50 %, 95 %", ""}
}

func (v *Verdict) faults() string {
	var all []string
	for _, one := range []struct {
		ok   bool
		name string
	}{
		{v.Kind, "kind"}, {v.Covered, "size"}, {v.Narrow || !v.Sized, "wide"}, {v.AtLeast, "at least"}, {v.Delay, "delay"}, {v.Throughput, "throughput"},
	} {
		if !one.ok {
			all = append(all, one.name)
		}
	}
	if len(all) == 0 {
		return "ok"
	}
	return "NOT " + strings.Join(all, ", ")
}
