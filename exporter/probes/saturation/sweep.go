package saturation

import (
	"context"
	"fmt"
	"math"
	"time"

	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/estimate/ratesearch"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/exporter/probe/report"
)

// sweep offers one rate after the other, each in its own transfer, before which the queue is empty.
func (k *Kind) sweep(ctx context.Context, s *udptraffic.Session, r *loadtest.Run, d sample.Direction) (*Direction, error) {
	sweep, err := k.opts.sweep(d)
	if err != nil {
		return nil, fmt.Errorf("saturation: %w", err)
	}
	out := &Direction{
		Direction: d.String(), Rate: k.opts.Rate.Of(d),
		StepsDescription: fmt.Sprintf("bursts of %v, each from an idle link: its queue is empty then, and a token bucket full", k.opts.Sweep.Step),
	}
	least := time.Duration(math.MaxInt64) // the smallest delay of all steps
	for next, more := sweep.Next(); more; next, more = sweep.Next() {
		r.Phase(fmt.Sprintf("%s: step %d, %s", d, len(out.Steps)+1, unit.BytesPerSecond.Format(next.Rate)))
		var t *udptraffic.Transfer
		t, err = k.checked(s.Transfer(ctx, d, s.Plan(s.PacedSegment(k.opts.PacketBytes, option.Rate(next.Rate), next.Duration)), nil))
		if err != nil {
			break
		}
		f := feedback(t, &least)
		sweep.Observe(f)
		seen := sweep.Steps()[len(out.Steps)]
		out.Dropped += uint64(t.HostDropped())
		out.Steps = append(out.Steps, Step{
			Offered: next.Rate, Duration: report.Seconds(next.Duration), Sent: f.Sent, Received: f.Received, Loss: seen.Loss, Lossless: seen.Lossless,
			Underrun: t.Counts.Underrun(), Variation: known(report.Seconds(f.DelayVariation), f.DelayVariation >= 0), Counts: t.Counts,
		})
	}
	if rate, ok := sweep.MaxLossless(); ok {
		out.Lossless = &rate
	}
	if err != nil {
		out.Partial = errtext.Words(err)
	}
	return out, err
}

// feedback is the result of one step; it updates least, the smallest delay so far. Only differences of delays are
// used, so a constant clock offset cancels.
func feedback(t *udptraffic.Transfer, least *time.Duration) ratesearch.Feedback {
	f := ratesearch.Feedback{
		Packets: t.Counts.Sent - t.HostDropped(), Lost: t.Counts.Lost - t.HostDropped(), Reordered: t.Counts.Reordered, Duplicate: t.Counts.Duplicated,
		DelayVariation: -1,
	}
	var first, last instant.Time
	var leftBytes, most int64
	largest := time.Duration(math.MinInt64)
	for i := range t.Packets {
		p := &t.Packets[i]
		if !p.Sent.Present() {
			continue
		}
		if first == 0 || p.Sent.At < first {
			first = p.Sent.At
		}
		last = max(last, p.Sent.At)
		leftBytes += int64(p.IPBytes)
		most = max(most, int64(p.IPBytes))
		if d := t.Delay(i); d.Reason != sample.NoStamp {
			largest = max(largest, d.Value)
			*least = min(*least, d.Value)
		}
	}
	// n packets of one size have n-1 intervals.
	took := last.Sub(first)
	if took > 0 {
		f.Sent = float64(leftBytes-most) / took.Seconds()
	}
	received := arrivalsOf(t)
	f.Received = received.rate(0, took)
	if largest >= *least && representative(f.Lost, f.Packets) {
		f.DelayVariation = largest - *least
	}
	return f
}

// representative reports whether the received packets represent the delays of the link: not if more than half was
// lost, since lost packets have no delay, or an infinite one (RFC 7679 section 5.2).
func representative(lost, of int) bool { return 2*lost <= of }
