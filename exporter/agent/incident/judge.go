package incident

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/estimate/orderstat"
)

// Constants of the judgment; see the package documentation.
const (
	windowTime, windowPackets = 10 * time.Second, 30

	minDelays    = 24 // delays of a kind in a window: fewer have no median
	windowDelays = 64 // of a kind kept of a window, at most

	memory           = time.Hour // of a baseline
	memoryDelays     = 256
	baselineTime     = 5 * time.Minute
	baselineQuantile = 0.98 // quantile of a baseline's delays
	minShift         = 2 * time.Millisecond
	minLoss          = 0.01
	unlikely         = 23
	priorLosses      = 8 // in bursts of two, the initial burst statistics of a baseline
	newNormal        = 30 * time.Minute
	recoveryOfTest   = windowTime // after a load test: its queue drains, and its losses are reported
)

// deviation is a quantity that has left its baseline.
type deviation struct {
	// Quantity is delay or loss, Direction forward, reverse or empty: the round trip.
	Quantity, Direction string
	// Value and Baseline are medians in seconds, or ratios.
	Value, Baseline float64
	// Bound is the part of the difference that the clocks' errors may explain, in seconds.
	Bound float64
}

// Deviation is a quantity that has left its baseline: the delay, or the loss.
type Deviation struct {
	// Quantity is delay or loss.
	Quantity string `json:"quantity"`
	// Direction is forward or reverse; absent: the round trip.
	Direction string `json:"direction,omitempty"`
	// Delay is the median of the last window, BaselineDelay that of the baseline.
	Delay         *float64 `json:"delay_seconds,omitempty"`
	BaselineDelay *float64 `json:"baseline_delay_seconds,omitempty"`
	// Bound is the part of the difference that the clocks' errors may explain.
	Bound *float64 `json:"error_bound_seconds,omitempty"`
	// Loss is the share of lost packets of the last window, BaselineLoss that of the baseline.
	Loss         *float64 `json:"loss_ratio,omitempty"`
	BaselineLoss *float64 `json:"baseline_loss_ratio,omitempty"`
}

// document is the form of d in a report.
func (d deviation) document() Deviation {
	out := Deviation{Quantity: d.Quantity, Direction: d.Direction}
	if d.Quantity == loss {
		out.Loss, out.BaselineLoss = &d.Value, &d.Baseline
	} else {
		out.Delay, out.BaselineDelay, out.Bound = &d.Value, &d.Baseline, &d.Bound
	}
	return out
}

// String describes the deviation.
func (d deviation) String() string {
	if d.Quantity == loss {
		return fmt.Sprintf("loss of %s, before %s", unit.Ratio.Format(d.Value), unit.Ratio.Format(d.Baseline))
	}
	now, before := time.Duration(d.Value*1e9), time.Duration(d.Baseline*1e9)
	return fmt.Sprintf("%s delay of %s, before %s", cmp.Or(d.Direction, "round trip"), unit.Duration(now), unit.Duration(before))
}

// Triggers of a report.
const (
	delay = "delay"
	loss  = "loss"
)

// delays judges the delays of one direction, or the round trips.
type delays struct {
	seen           int             // in the window
	values, bounds []time.Duration // of a random sample of it

	established time.Duration
	baseline    []time.Duration // upper ends of delays, fewer of older ones
	deviating   time.Time       // since when; zero: near the baseline
	recovery    time.Duration   // the median below which it is near the baseline again
}

func (d *delays) add(value, bound time.Duration) {
	d.seen++
	if len(d.values) < windowDelays {
		d.values, d.bounds = append(d.values, value), append(d.bounds, bound)
	} else if i := rand.IntN(d.seen); i < windowDelays {
		d.values[i], d.bounds[i] = value, bound
	}
}

func (d *delays) clear() { d.seen, d.values, d.bounds = 0, d.values[:0], d.bounds[:0] }

// close judges the window; it returns true if this window raised the delay above its baseline.
func (d *delays) close(length time.Duration, now time.Time) (found deviation, risen bool) {
	if len(d.values) < minDelays {
		return found, false
	}
	value, bound := orderstat.Quantile(orderstat.Sorted(d.values), 0.5), orderstat.Quantile(orderstat.Sorted(d.bounds), 0.5)
	tops := orderstat.Sorted(d.baseline)
	before := orderstat.Quantile(tops, 0.5)
	switch {
	case !d.deviating.IsZero():
		if now.Sub(d.deviating) >= newNormal {
			*d = delays{}
		} else if value <= d.recovery {
			d.deviating = time.Time{}
		}
		return found, false
	case d.established >= baselineTime && len(tops) == memoryDelays && value-bound > max(before+minShift, before+before/4, orderstat.Quantile(tops, baselineQuantile)):
		d.deviating, d.recovery = now, before+(value-before)/2
		return deviation{Quantity: delay, Value: value.Seconds(), Baseline: before.Seconds(), Bound: bound.Seconds()}, true
	}
	d.established += length
	renewed := memoryDelays * length.Hours() / memory.Hours() / float64(len(d.values))
	for i, v := range d.values {
		if len(d.baseline) < memoryDelays {
			d.baseline = append(d.baseline, v+d.bounds[i])
		} else if rand.Float64() < renewed {
			d.baseline[rand.IntN(memoryDelays)] = v + d.bounds[i]
		}
	}
	return found, false
}

// losses judges the packets without a reply within the loss timeout.
type losses struct {
	window  counts
	burst   float64 // consecutive losses so far
	lastSeq uint64  // of the last lost one

	established time.Duration
	baseline    counts    // older ones with less weight
	deviating   time.Time // since when; zero: near the baseline
}

// counts are packets, the lost ones of them, and the sum of the squares of all bursts' lengths.
type counts struct{ decided, lost, squares float64 }

func (l *losses) add(p *record.Packet) {
	l.window.decided++
	if p.Outcome != record.Lost {
		return
	}
	if l.burst++; p.Seq != l.lastSeq+1 {
		l.burst = 1
	}
	l.lastSeq = p.Seq
	l.window.lost++
	l.window.squares += 2*l.burst - 1
}

// close judges the window; it returns true if this window raised the loss above its baseline.
func (l *losses) close(length time.Duration, now time.Time) (found deviation, risen bool) {
	w, b := l.window, &l.baseline
	ratio, before := w.lost/w.decided, b.lost/max(b.decided, 1)
	burst := (b.squares + 2*priorLosses) / (b.lost + priorLosses)
	differs := ratio-before >= minLoss && chernoffExponent(w.lost, w.decided, (b.lost+1)/(b.decided+2)) > unlikely*burst
	switch {
	case !l.deviating.IsZero():
		if now.Sub(l.deviating) >= newNormal {
			*l = losses{}
		} else if !differs {
			l.deviating = time.Time{}
		}
		return found, false
	case l.established >= baselineTime && differs:
		l.deviating = now
		return deviation{Quantity: loss, Value: ratio, Baseline: before}, true
	}
	l.established += length
	fade := math.Exp(-length.Seconds() / memory.Seconds())
	*b = counts{fade*b.decided + w.decided, fade*b.lost + w.lost, fade*b.squares + w.squares}
	return found, false
}

// chernoffExponent limits the probability that at least k of n events with probability p each, p below k/n, occur: it
// is at most exp(-chernoffExponent) (Chernoff).
func chernoffExponent(k, n, p float64) float64 {
	sum := k * math.Log(k/(n*p))
	if k < n {
		sum += (n - k) * math.Log((n-k)/(n*(1-p)))
	}
	return sum
}

// judge judges a path's packets in windows.
type judge struct {
	begun  time.Time // begin of the window, with its first packet
	era    uint64
	delays [3]delays // forward, reverse, and of the round trip
	losses losses
	// disproved is the time of the last delay that was negative by more than its bound, so that a clock is wrong by more than the bounds.
	disproved time.Time
	quiet     time.Time // packets before it do not count
}

// pause discards the current window and delays the next one: a load test last affected the path at that time.
func (j *judge) pause(last time.Time) {
	j.clear()
	j.quiet = last.Add(recoveryOfTest)
}

// add adds a packet, and returns the deviations of the window that ends with it.
func (j *judge) add(p *record.Packet, now time.Time) (left []deviation) {
	if now.Before(j.quiet) {
		return nil
	}
	if p.Era != j.era {
		j.era, j.disproved = p.Era, time.Time{}
		j.delays[sample.Forward], j.delays[sample.Reverse] = delays{}, delays{}
	}
	if length := now.Sub(j.begun); j.losses.window.decided >= windowPackets && length >= windowTime {
		left = j.close(length, now)
	}
	if j.losses.window.decided == 0 {
		j.begun = now
	}
	if p.Outcome == record.Late {
		return left // recorded as lost before
	}
	j.losses.add(p)
	for i, d := range []sample.Delay{p.Forward, p.Reverse} {
		if d.OK() {
			j.delays[i].add(d.Value, d.Bound)
			if d.ProvesFault() {
				j.disproved = now
			}
		}
	}
	if trip, ok := p.RoundTrip(); ok {
		j.delays[2].add(trip, 0)
	}
	return left
}

// close ends the window.
func (j *judge) close(length time.Duration, now time.Time) (left []deviation) {
	if now.Sub(j.disproved) < sample.FaultTime {
		j.delays[sample.Forward].clear()
		j.delays[sample.Reverse].clear()
	}
	for i, direction := range []string{sample.Forward.String(), sample.Reverse.String(), ""} {
		if d, risen := j.delays[i].close(length, now); risen {
			d.Direction = direction
			left = append(left, d)
		}
	}
	if d, risen := j.losses.close(length, now); risen {
		left = append(left, d)
	}
	j.clear()
	return left
}

// clear begins a new window.
func (j *judge) clear() {
	for i := range j.delays {
		j.delays[i].clear()
	}
	j.losses.window = counts{}
}
