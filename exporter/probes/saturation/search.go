package saturation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/estimate/ratesearch"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffictypes/udptraffic"
)

// search runs the load adjustment, in one transfer without a pause.
func (k *Kind) search(ctx context.Context, s *udptraffic.Session, r *loadtest.Run, d sample.Direction) (*Direction, error) {
	length, most := k.opts.Duration, float64(k.opts.Rate.Of(d))
	limits := s.Limits()
	if limits.Duration > 0 {
		length = min(length, limits.Duration)
	}
	if limits.BytesPerSecond > 0 { // of UDP payload
		size := float64(k.opts.PacketBytes)
		most = min(most, limits.BytesPerSecond*size/(size-float64(s.Overhead())))
	}
	adjust, err := k.opts.search(d, most, length)
	if err != nil {
		return nil, fmt.Errorf("saturation: %w", err)
	}
	r.Phase(d.String() + ": search")
	plan := s.Plan(s.PacedSegment(k.opts.PacketBytes, option.Rate(most), length))
	plan.Feedback = k.opts.every(most)
	f := follower{adjust: adjust, overhead: s.Overhead(), packetBytes: k.opts.PacketBytes}
	t, err := k.checked(s.AdjustRate(ctx, d, plan, f.adjustRate))
	if t == nil {
		return nil, err
	}
	out := &Direction{Direction: d.String(), Rate: k.opts.Rate.Of(d), Dropped: uint64(t.HostDropped()), Partial: t.Cut}
	if length < k.opts.Duration {
		out.remark("the search took %v, the limit of the token, instead of %v", length, k.opts.Duration)
	}
	out.evaluate(t, f.reports, most, k.opts.Search.Lower)
	return out, err
}

// follower runs the load adjustment by reports of a running stream.
type follower struct {
	adjust      *ratesearch.Adjustment
	overhead    int
	packetBytes int
	reports     int
	last        stream.Status
	pace        time.Duration
}

// adjustRate is a stream.Adjuster.
func (f *follower) adjustRate(st stream.Status) time.Duration {
	grew := func(now, before uint32) int { return int(max(0, int64(now)-int64(before))) }
	one := ratesearch.Feedback{
		Packets: grew(st.Expected, f.last.Expected), Reordered: grew(st.Reordered, f.last.Reordered),
		Duplicate: grew(st.Duplicates, f.last.Duplicates), DelayVariation: -1,
	}
	received := grew(st.Packets, f.last.Packets)
	one.Lost = max(0, one.Packets-received)
	if took := int64(st.Elapsed) - int64(f.last.Elapsed); took > 0 {
		one.Received = float64(max(0, int64(st.Bytes)-int64(f.last.Bytes))+int64(received)*int64(f.overhead)) / time.Duration(took).Seconds()
	}
	if st.Variation != stream.NoVariation {
		one.DelayVariation = time.Duration(st.Variation) * time.Microsecond
	}
	f.reports++
	f.last = st
	f.adjust.Observe(one)
	if next, more := f.adjust.Next(); more {
		f.pace = time.Duration(float64(f.packetBytes) / next.Rate * float64(time.Second))
	}
	return f.pace
}

// Of the evaluation: the length of the parts, over which a rate must hold (dt of RFC 9097), and the share of the
// highest rate that counts as reaching it.
const (
	part      = time.Second
	minPart   = 10 // in a search
	reached   = 0.95
	unsteady  = 1.2 // times the median of the parts with a seemingly full link
	burstFrom = 1.1 // times the sustained rate: a higher rate of a part gets a note
)

// evaluate finds the rate of the link after a search.
func (d *Direction) evaluate(t *udptraffic.Transfer, reports int, most float64, lower time.Duration) {
	length := t.Plan.Duration()
	width := min(part, length/minPart)
	if t.Cut != "" { // stopped: whole parts
		length = max(width, t.Duration().Truncate(width))
	}
	a := arrivalsOf(t)
	d.StepsDescription = "parts of one transfer without a pause"
	d.Steps = stepsOf(t, &a, grid(length, width))
	best := d.best().Received
	switch {
	case reports == 0 && d.Partial != "":
		return
	case reports == 0:
		d.remark("no feedback of the receiver arrived: the rate was never adjusted, and the link's rate is unknown")
		return
	case best == 0:
		return
	}
	d.Maximum = &best
	from, low, full := a.sustained(t, width, lower)
	if !full { // the link may be faster than the highest offered rate
		from = length - width
	}
	found := stepsOf(t, &a, []time.Duration{from, from + width})[0]
	best = max(best, found.Received) // it may begin between two parts
	switch {
	case full && low > 0 && found.Received > unsteady*low:
		d.Unsteady = true
		d.remark("packets were lost or delayed at rates from %s to %s: the link's rate varies, or the cause is not a full queue; the sustained rate is unknown", unit.BytesPerSecond.Format(low), unit.BytesPerSecond.Format(found.Received))
		return
	case full:
	case found.Offered < reached*most:
		d.Unlimited = true
		if d.Partial != "" {
			d.remark("the search ended before the link was full; its rate is higher")
			return
		}
		d.remark("the link was never full: the sender did not reach higher rates in the time, or it received no feedback")
		return
	default:
		d.remark("the link carried the highest offered rate; its own rate may be higher")
	}
	d.Sustained = &found
	if best > burstFrom*found.Received {
		d.remark("up to %s passed in a part of the time, and %s when the link was full: a token bucket, or a varying rate", unit.BytesPerSecond.Format(best), unit.BytesPerSecond.Format(found.Received))
	}
	if found.Underrun > underrunNoted {
		d.remark("the sender did not send %s of the planned packets: it cannot keep the rate", unit.Ratio.Format(found.Underrun))
	}
}

// A link is full if more than congestionLoss of congestionPackets consecutive packets are lost, which the load
// adjustment treats as congestion.
const (
	congestionLoss    = 2
	congestionPackets = 20
	// representativeRank is the rank of the part that represents all.
	representativeRank = 0.9
)

// sustained returns the begin of the part of the time that has the link's sustained rate, of those that begin while
// the link is full, that is, while packets queue or are dropped. A token bucket is then empty, so no such part
// exceeds the sustained rate; some are below it if the search left the link idle. The result is a high quantile
// instead of the maximum, because queued packets may arrive at once after an outage. median is that of all these
// parts. False: the link is never full.
func (a *arrivals) sustained(t *udptraffic.Transfer, width, lower time.Duration) (from time.Duration, median float64, ok bool) {
	if len(a.at) == 0 {
		return 0, 0, false
	}
	last := a.at[len(a.at)-1].Add(-width)
	var next instant.Time
	var full []window
	lost := 0
	for i := range t.Packets {
		p := &t.Packets[i]
		if p.Lost() {
			lost++
		}
		if i >= congestionPackets && t.Packets[i-congestionPackets].Lost() {
			lost--
		}
		if p.Copies == 0 || p.Reordered || !p.Sent.Present() || p.Arrived.At < next || p.Arrived.At > last {
			continue
		}
		if a.waited(p) < lower && lost <= congestionLoss {
			continue
		}
		next = p.Arrived.At.Add(width / congestionPackets)
		begins := p.Arrived.At.Sub(a.origin)
		full = append(full, window{begins, a.rate(begins, begins+width)})
	}
	if len(full) == 0 {
		return 0, 0, false
	}
	slices.SortFunc(full, func(x, y window) int { return cmp.Compare(x.rate, y.rate) })
	return full[int(representativeRank*float64(len(full)-1))].from, full[len(full)/2].rate, true
}

// window is a part of the time and its rate.
type window struct {
	from time.Duration
	rate float64
}
