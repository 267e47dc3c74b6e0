package saturation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/estimate/queue"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/exporter/probe/report"
)

// Limits of an idle phase: its packets take a small share of the load's rate, suffice for a minimum, and do not
// exceed the segments of a plan.
const (
	idleShare        = 0.1
	minIdlePackets   = 10
	maxIdlePackets   = 250
	idleLongerFactor = 10 * time.Second
)

// idle returns the number of single packets of an idle phase and their mean interval. The interval is longer than
// configured if that would load a slow link.
func (o *Options) idle(d sample.Direction) (n int, interval time.Duration) {
	if o.Mode != ModeFixed || o.Idle.Duration == 0 {
		return 0, 0
	}
	sparse := time.Duration(float64(o.PacketBytes) / (idleShare * float64(o.Rate.Of(d))) * float64(time.Second))
	interval = min(max(o.Idle.Interval, sparse, o.Idle.Duration/maxIdlePackets), idleLongerFactor)
	n = int(o.Idle.Duration / interval)
	return max(n, min(minIdlePackets, int(idleLongerFactor/interval))), interval
}

// plan is an idle phase, the load right after it, which is segment number load, and another idle phase.
func (o *Options) plan(s *udptraffic.Session, d sample.Direction) (p stream.Plan, load int) {
	rate := s.PacedSegment(o.PacketBytes, o.Rate.Of(d), o.Duration)
	n, interval := o.idle(d)
	all := append(idlePackets(n, interval, rate.PayloadBytes), rate)
	return s.Plan(append(all, idlePackets(n, interval, rate.PayloadBytes)...)...), n
}

// idlePackets are n packets, each at a random time in the first half of its own interval: evenly spaced packets may
// hide the transmission slots of a link, random ones do not. A segment each.
func idlePackets(n int, interval time.Duration, payload int) []stream.Segment {
	all := make([]stream.Segment, n, 2*n+1)
	for i := range all {
		pause := time.Duration(rand.Int64N(int64(interval)/2 + 1))
		all[i] = stream.Segment{Pause: pause, PayloadBytes: payload, Interval: interval - pause, Burst: 1, Bursts: 1}
	}
	return all
}

// fixed offers one rate for a time.
func (k *Kind) fixed(ctx context.Context, s *udptraffic.Session, d sample.Direction) (*Direction, error) {
	p, load := k.opts.plan(s, d)
	t, err := k.checked(s.Transfer(ctx, d, p, nil))
	if t == nil {
		return nil, err
	}
	if t.Cut != "" && plannedOf(t, load) == 0 {
		return k.unloaded(t), err
	}
	packets := underQueue(t)
	skip := k.opts.Skip
	if skip == 0 {
		skip = -1 // none
	}
	found := queue.Analyze(packets, queue.Options{
		Load: load, After: load + 1, Skip: skip, Drift: t.Drift(), StampError: t.StampError(),
	})
	out := k.load(t, load, &found)
	if err == nil && out.Load.noResult {
		err = k.noResult(out, found.Interrupted)
	}
	return out, err
}

// noResult marks a load whose path was interrupted, or whose timestamps are impossible, as partial, and returns the error of its run.
func (k *Kind) noResult(d *Direction, interrupted bool) error {
	d.Partial = d.Load.Evidence
	causes := "as after a step of a clock, behind a queue of the sending host that holds packets for seconds, or if the remote end's are wrong"
	if interrupted {
		causes = fmt.Sprintf("though the control connection works: the path was interrupted, or a firewall or a smaller MTU drops packets of %d bytes", k.opts.PacketBytes)
	}
	return &loadtest.Failure{Reason: runreason.NoResult, Err: fmt.Errorf(
		"saturation: %s: %s, %s", d.Direction, d.Partial, causes)}
}

// leastSent is the share of the planned packets that must be sent where they do not fill the link: with fewer, the rate is the
// sender's, and no result of the path.
const leastSent = 0.9

// judgeSent marks a direction whose load was not sent and did not fill the link as partial. What the load server kept back while the path to
// it was interrupted leaves the rate of the rest.
func (l *Load) judgeSent(d *Direction) {
	if l.Underrun <= 1-leastSent || l.noResult || l.State != queue.NotFilled.String() && l.State != queue.Unknown.String() {
		return
	}
	l.unsent = runreason.SenderSlow
	cause := "it cannot keep the rate"
	if l.refused(d.Counts) {
		l.unsent, cause = runreason.NoResult, fmt.Sprintf("its kernel refused %d: %s", d.Counts.Refused, errtext.Refused)
	}
	d.Partial = fmt.Sprintf("the sender did not send %s of the planned packets, and the rest did not fill the link: %s", unit.Ratio.Format(l.Underrun), cause)
}

// unsent is the error of a run with directions whose load was not sent; nil: there are none.
func unsent(directions []*Direction) error {
	for _, d := range directions {
		if d.Load != nil && d.Load.unsent != "" {
			return &loadtest.Failure{Reason: d.Load.unsent, Err: fmt.Errorf("saturation: %s: %s", d.Direction, d.Partial)}
		}
	}
	return nil
}

// unloaded is the result of a transfer that was stopped before its load: the smallest delay of the idle link.
func (k *Kind) unloaded(t *udptraffic.Transfer) *Direction {
	d := &Direction{Direction: t.Direction.String(), Rate: k.opts.Rate.Of(t.Direction), Counts: &t.Counts, Partial: t.Cut}
	for i := range t.Packets {
		if one := t.Delay(i); one.OK() && (d.idle == nil || one.Value < d.idle.Value) {
			d.idle = &one
		}
	}
	return d
}

// underQueue converts a transfer for the queue estimator. Packets that were not sent are left out; one that arrived
// only corrupted has no delay and is lost (RFC 7680 section 2.4).
func underQueue(t *udptraffic.Transfer) []queue.Packet {
	all := make([]queue.Packet, 0, len(t.Packets))
	for i := range t.Packets {
		p := &t.Packets[i]
		if !p.Sent.Present() {
			continue
		}
		one := queue.Packet{Sent: p.Sent.At, IPBytes: int(p.IPBytes), TXUncertainty: p.Sent.TXUncertainty, Segment: int(p.Segment)}
		if p.Copies > 0 {
			one.Arrived = p.Arrived.At
		}
		all = append(all, one)
	}
	return all
}

// load is the result of the load, segment number load.
func (k *Kind) load(t *udptraffic.Transfer, load int, q *queue.Result) *Direction {
	clocks := t.Bound() // absolute delays need both clocks; their differences do not
	planned := plannedOf(t, load)
	l := &Load{
		State: q.State.String(), Evidence: q.Evidence,
		Offered: q.Offered, Throughput: k.throughput(q), mean: q.Mean, From: report.Seconds(q.From), To: report.Seconds(q.To), Varies: q.Varies,
		Underrun:     float64(max(0, planned-q.Sent-t.Counts.Withheld)) / float64(max(1, planned)),
		Withheld:     float64(max(0, min(planned-q.Sent, t.Counts.Withheld))) / float64(max(1, planned)),
		noResult:     q.Interrupted || q.Impossible,
		AtLeastBytes: known(q.AtLeast, q.AtLeast > 0),
		SizeRange:    known([2]float64{q.Size.Value - q.Size.Bound, q.Size.Value + q.Size.Bound}, q.Size.OK && q.Size.OneSided),
		SizeBytes:    known(q.Size.Value, q.Size.OK && !q.Size.OneSided), SizeBound: known(q.Size.Bound, q.Size.OK && !q.Size.OneSided),
		Rates: known(q.Rates, q.Rate.OK),
		Drift: t.Drift(), Trusted: clocks.Reason == sample.OK, ClocksReason: clocks.Reason.String(),
	}
	if q.Received < q.Sent {
		// Packets dropped by the receiving host are not lost by the path.
		dropped := min(t.HostDropped(), q.Sent-q.Received)
		l.Loss = float64(q.Sent-q.Received-dropped) / float64(q.Sent-dropped)
	}
	if q.Delay[0].OK {
		l.Queue, l.QueueBound = &[3]report.Seconds{}, &[3]report.Seconds{}
		for i, one := range q.Delay {
			l.Queue[i], l.QueueBound[i] = report.Seconds(one.Value), report.Seconds(one.Bound)
		}
	}
	if l.Trusted {
		l.Idle, l.IdleBound = duration(q.Idle, clocks.Error)
		l.Full, l.FullBound = duration(q.Full, clocks.Error)
		l.delays = loaded(t, load)
	}
	l.PerSecond, l.First = bins(q.PerSecond, l.Trusted), bins(q.First, l.Trusted)
	d := &Direction{
		Direction: t.Direction.String(), Rate: k.opts.Rate.Of(t.Direction), Load: l, Counts: &t.Counts, Dropped: uint64(t.HostDropped()), Partial: t.Cut,
	}
	l.judgeSent(d)
	l.remark(d)
	return d
}

// plannedOf is the number of packets of a segment; of a stopped transfer, of those whose time came.
func plannedOf(t *udptraffic.Transfer, segment int) (n int) {
	if t.Cut == "" {
		return t.Plan.Segments[segment].Packets()
	}
	for i := range t.Packets {
		if int(t.Packets[i].Segment) == segment {
			n++
		}
	}
	return n
}

// coarse is the largest share of a second's bytes for one packet: with larger packets, a second's bytes are too
// coarse for a rate.
const coarse = 0.01

// throughput is the median over the seconds; for a link with few packets a second, or whose path was interrupted, the mean over
// all.
func (k *Kind) throughput(q *queue.Result) float64 {
	if q.Interrupted || float64(k.opts.PacketBytes) > coarse*q.Throughput {
		return q.Mean
	}
	return q.Throughput
}

// loaded are the valid delays of the load's segment, in seconds.
func loaded(t *udptraffic.Transfer, load int) []float64 {
	all := make([]float64, 0, len(t.Packets))
	for i := range t.Packets {
		if d := t.Delay(i); int(t.Packets[i].Segment) == load && d.OK() {
			all = append(all, d.Value.Seconds())
		}
	}
	return all
}

func bins(from []queue.Bin, trusted bool) []Bin {
	all := make([]Bin, 0, len(from))
	for _, b := range from {
		one := Bin{Elapsed: report.Seconds(b.Elapsed), Sent: b.Sent, Received: b.Received, Packets: b.Packets, Lost: b.Lost}
		if trusted && b.Count > 0 {
			one.Delays = &[3]report.Seconds{report.Seconds(b.Min), report.Seconds(b.Median), report.Seconds(b.Max)}
		}
		all = append(all, one)
	}
	return all
}
