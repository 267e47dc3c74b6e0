package saturate

import (
	"context"
	"fmt"
	"math"
	"time"

	"oneway.example/exporter/estimate/search"
	"oneway.example/exporter/heavy"
	"oneway.example/exporter/sample"
)

// lossless is what a step gives that loses nothing.
func lossless(s search.Step) search.Feedback {
	return search.Feedback{Sent: s.Rate, Received: s.Rate, Packets: 1, DelayVariation: 0}
}

// sweep offers one rate after the other. Each is a transfer of its own: the queue is empty
// again before the next.
func (k *Kind) sweep(ctx context.Context, s *heavy.Session, r *heavy.Run, d sample.Direction) (*Direction, error) {
	sweep, err := k.opts.sweep(d)
	if err != nil {
		return nil, fmt.Errorf("saturate: %w", err)
	}
	out := k.begin(d)
	err = k.walk(ctx, s, r, d, sweep, out)
	for i, one := range sweep.Steps() {
		out.Steps[i].Loss, out.Steps[i].Lossless = one.Loss, one.Lossless
	}
	if rate, ok := sweep.Knee(); ok {
		out.Lossless = &rate
	}
	return out, err
}

// search lets the load adjustment choose the rates.
func (k *Kind) search(ctx context.Context, s *heavy.Session, r *heavy.Run, d sample.Direction) (*Direction, error) {
	adjust, err := k.opts.search(d, k.allowed(s))
	if err != nil {
		return nil, fmt.Errorf("saturate: %w", err)
	}
	out := k.begin(d)
	err = k.walk(ctx, s, r, d, adjust, out)
	if rate, ok := adjust.Maximum(); ok {
		out.Maximum = &rate
	}
	return out, err
}

// maxSteps of a direction: an algorithm that never ends is ended.
const maxSteps = 1000

// walk takes the steps that an algorithm asks for.
func (k *Kind) walk(ctx context.Context, s *heavy.Session, r *heavy.Run, d sample.Direction, a search.Algorithm, out *Direction) error {
	least := time.Duration(math.MaxInt64) // the smallest delay of all steps
	for range maxSteps {
		next, more := a.Next()
		if !more {
			return nil
		}
		r.Phase(fmt.Sprintf("%s: step %d, %s", d, len(out.Steps)+1, heavy.Rate(next.Rate).Words()))
		t, err := s.Transfer(ctx, d, s.Plan(s.Paced(k.opts.PacketBytes, heavy.Rate(next.Rate), next.Duration)), nil)
		if err == nil {
			err = k.check(t)
		}
		if err != nil {
			return err
		}
		f := feedback(t, &least)
		a.Observe(f)
		out.Dropped += uint64(t.HostDropped())
		out.Steps = append(out.Steps, Step{
			Offered: next.Rate, Duration: next.Duration, Sent: f.Sent, Received: f.Received,
			Loss: ratio(f.Lost, f.Packets), Shortfall: t.Counts.Shortfall(), Variation: f.DelayVariation, Counts: t.Counts,
		})
	}
	return fmt.Errorf("saturate: %s: no end after %d steps", d, maxSteps)
}

// feedback is what one step gave; least is the smallest delay so far, and brought up to
// date. Delays are compared with each other only: a constant offset of the clocks cancels.
func feedback(t *heavy.Transfer, least *time.Duration) search.Feedback {
	f := search.Feedback{
		Packets: t.Counts.Sent - t.HostDropped(), Lost: t.Counts.Lost - t.HostDropped(), Reordered: t.Counts.Reordered, Duplicate: t.Counts.Duplicated,
		DelayVariation: -1,
	}
	var left, came spans
	var leftBytes, cameBytes, most int64
	largest := time.Duration(math.MinInt64)
	for i := range t.Packets {
		p := &t.Packets[i]
		if !p.Sent.Present() {
			continue
		}
		left.add(p.Sent.At)
		leftBytes += int64(p.IPBytes)
		most = max(most, int64(p.IPBytes))
		if d := t.Delay(i); d.Reason != sample.NoStamp {
			came.add(p.Arrived.At)
			cameBytes += int64(p.IPBytes)
			largest = max(largest, d.Value)
			*least = min(*least, d.Value)
		}
	}
	// n packets of one size have n-1 intervals.
	f.Sent, f.Received = rateOf(leftBytes-most, left), rateOf(cameBytes-most, came)
	if cameBytes > 0 {
		f.DelayVariation = largest - *least
	}
	return f
}

func rateOf(octets int64, s spans) float64 {
	took := s.last.Sub(s.first)
	if octets <= 0 || took <= 0 {
		return 0
	}
	return float64(octets) / took.Seconds()
}

func ratio(part, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(part) / float64(of)
}
