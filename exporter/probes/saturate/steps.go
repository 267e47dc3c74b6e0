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
	out.StepsAre = apart(k.opts.Sweep.Step)
	err = k.walk(ctx, s, r, d, sweep, out)
	for i, one := range sweep.Steps() {
		out.Steps[i].Loss, out.Steps[i].Lossless = one.Loss, one.Lossless
	}
	if rate, ok := sweep.Knee(); ok {
		out.Lossless = &rate
	}
	return out, err
}

// apart says what steps are that are transfers of their own.
func apart(step time.Duration) string {
	return fmt.Sprintf("bursts of %v, each from an idle link: its queue is empty then, and a token bucket full", step)
}

// leastApart is how long the steps of a search last that are transfers of their own.
const leastApart = time.Second

// searchApart is the search with a far end that knows no feedback. Between the steps the link
// is idle, which a search is not to be.
func (k *Kind) searchApart(ctx context.Context, s *heavy.Session, r *heavy.Run, d sample.Direction) (*Direction, error) {
	step := max(k.opts.Search.Step, leastApart)
	adjust, err := k.opts.search(d, k.allowed(s), k.opts.Duration, step)
	if err != nil {
		return nil, fmt.Errorf("saturate: %w", err)
	}
	out := k.begin(d)
	out.StepsAre = apart(step)
	out.remark("the far end is too old to steer a stream under way: the steps were %s; the rate found may be too high by what a bucket lets through", out.StepsAre)
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
	var left spans
	var leftBytes, most int64
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
			largest = max(largest, d.Value)
			*least = min(*least, d.Value)
		}
	}
	// n packets of one size have n-1 intervals.
	took := left.last.Sub(left.first)
	if took > 0 {
		f.Sent = float64(leftBytes-most) / took.Seconds()
	}
	came := arrivalsOf(t)
	f.Received = came.rate(0, took)
	if largest >= *least && told(f.Lost, f.Packets) {
		f.DelayVariation = largest - *least
	}
	return f
}

// told tells whether the delays of what arrived are those of the link: not where more than half was
// lost. Packets that are lost have no delay, or an infinite one (RFC 7679 section 5.2), and
// what is left of so many is no sample of them.
func told(lost, of int) bool { return 2*lost <= of }

func ratio(part, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(part) / float64(of)
}
