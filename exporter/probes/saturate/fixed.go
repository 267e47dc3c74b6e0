package saturate

import (
	"context"
	"time"

	"oneway.example/exporter/estimate/queue"
	"oneway.example/exporter/heavy"
	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/stream"
)

// What the idle phase must be to find the empty link: its packets take no more than a share
// of the rate that fills the link, and there are enough of them for a minimum.
const (
	idleShare  = 0.1
	idleLeast  = 10
	idleLonger = 10 * time.Second
)

// idle is the phase before the load: how many single packets, and how far apart. Where the
// configured interval would load a slow link, or leave too few packets, it is longer.
func (o *Options) idle(d sample.Direction) (n int, interval time.Duration) {
	if o.Idle.Duration == 0 {
		return 0, 0
	}
	sparse := time.Duration(float64(o.PacketBytes) / (idleShare * float64(o.Rate.Of(d))) * float64(time.Second))
	interval = min(max(o.Idle.Interval, sparse), idleLonger)
	n = int(o.Idle.Duration / interval)
	return max(n, min(idleLeast, int(idleLonger/interval))), interval
}

// idleTime is how long that phase takes.
func (o *Options) idleTime(d sample.Direction) time.Duration {
	n, interval := o.idle(d)
	return time.Duration(n) * interval
}

// plan is the idle phase, and the load right after it.
func (o *Options) plan(s *heavy.Session, d sample.Direction) (p stream.Plan, load int) {
	rate := s.Paced(o.PacketBytes, o.Rate.Of(d), o.Duration)
	n, interval := o.idle(d)
	if n == 0 {
		return s.Plan(rate), 0
	}
	idle := stream.Segment{PayloadBytes: rate.PayloadBytes, Interval: interval, Burst: 1, Bursts: n}
	return s.Plan(idle, rate), 1
}

// fixed offers one rate for a time.
func (k *Kind) fixed(ctx context.Context, s *heavy.Session, d sample.Direction) (*Direction, error) {
	p, load := k.opts.plan(s, d)
	t, err := s.Transfer(ctx, d, p, nil)
	if err != nil {
		return nil, err
	}
	if err := k.check(t); err != nil {
		return nil, err
	}
	packets := underQueue(t)
	skip := k.opts.Skip
	if skip == 0 {
		skip = -1 // none
	}
	found := queue.Analyse(packets, queue.Options{
		Load: load, Skip: skip, Drift: t.Drift(), StampError: t.StampError(),
	})
	return k.load(t, load, &found), nil
}

// underQueue is what the estimator of queues wants to know. What was not sent is no
// packet; one that came damaged only has no delay, and is lost (RFC 7680 section 2.4).
func underQueue(t *heavy.Transfer) []queue.Packet {
	all := make([]queue.Packet, 0, len(t.Packets))
	for i := range t.Packets {
		p := &t.Packets[i]
		if !p.Sent.Present() {
			continue
		}
		one := queue.Packet{Sent: p.Sent.At, IPBytes: int(p.IPBytes), Held: p.Sent.Held, Segment: int(p.Segment)}
		if p.Copies > 0 {
			one.Arrived = p.Arrived.At
		}
		all = append(all, one)
	}
	return all
}

// load is what is told of the load.
func (k *Kind) load(t *heavy.Transfer, from int, q *queue.Result) *Direction {
	out := k.begin(t.Direction)
	out.Counts = &t.Counts
	out.Dropped = uint64(t.HostDropped())
	out.Load = &Load{
		State: q.State.String(), Evidence: q.Evidence,
		Offered: q.Offered, Throughput: k.throughput(q),
		From: q.From, To: q.To, PaperBytes: known(q.PaperBytes, q.PaperBytes > 0), AtLeastBytes: known(q.AtLeast, q.AtLeast > 0),
	}
	l := out.Load
	if q.Received < q.Sent {
		// Those that the receiving host dropped are not the path's.
		dropped := min(t.HostDropped(), q.Sent-q.Received)
		l.Loss = float64(q.Sent-q.Received-dropped) / float64(q.Sent-dropped)
	}
	l.Rate, l.RateBound = amount(q.Rate)
	l.SizeBytes, l.SizeBound = amount(q.Size)
	l.Queue, l.QueueBound = duration(q.Delay, 0)
	// Absolute delays need both clocks; their difference does not.
	clocks := t.Bound()
	l.ClocksReason = clocks.Reason.String()
	l.Trusted = clocks.Reason == sample.OK
	l.Drift = t.Drift()
	idle, idleBound := duration(q.Idle, clocks.Error)
	full, fullBound := duration(q.Full, clocks.Error)
	if l.Trusted {
		l.Idle, l.IdleBound = idle, idleBound
		l.Full, l.FullBound = full, fullBound
		l.delays = loaded(t, from)
	}
	l.Shortfall = shortfall(t, from)
	l.PerSecond, l.First = bins(q.PerSecond, l.Trusted), bins(q.First, l.Trusted)
	return out
}

// coarse is the share of a second's octets that one packet may be: of fewer packets, a
// second's octets are too few figures of the rate.
const coarse = 0.01

// throughput is the median of the seconds, but of a link that passes few packets a second
// it is what passed in all of the time looked at.
func (k *Kind) throughput(q *queue.Result) float64 {
	if q.Rate.OK && float64(k.opts.PacketBytes) > coarse*q.Throughput {
		return q.Rate.Value
	}
	return q.Throughput
}

// loaded are the valid delays under load, in seconds.
func loaded(t *heavy.Transfer, from int) []float64 {
	all := make([]float64, 0, len(t.Packets))
	for i := range t.Packets {
		if int(t.Packets[i].Segment) < from {
			continue
		}
		if d := t.Delay(i); d.OK() {
			all = append(all, d.Value.Seconds())
		}
	}
	return all
}

// shortfall is the share of the load's planned packets that were not sent.
func shortfall(t *heavy.Transfer, from int) float64 {
	planned, sent := 0, 0
	for _, s := range t.Plan.Segments[from:] {
		planned += s.Packets()
	}
	for i := range t.Packets {
		if p := &t.Packets[i]; int(p.Segment) >= from && p.Sent.Present() {
			sent++
		}
	}
	return float64(planned-sent) / float64(planned)
}

func bins(from []queue.Bin, trusted bool) []Bin {
	all := make([]Bin, 0, len(from))
	for _, b := range from {
		one := Bin{Elapsed: b.Elapsed, Sent: b.Sent, Received: b.Received, Packets: b.Packets, Lost: b.Lost}
		if trusted && b.Count > 0 {
			one.Delays = &[3]time.Duration{b.Min, b.Median, b.Max}
		}
		all = append(all, one)
	}
	return all
}

// spans is first and last of those instants that are known.
type spans struct{ first, last instant.Time }

func (s *spans) add(t instant.Time) {
	if s.first == 0 || t < s.first {
		s.first = t
	}
	s.last = max(s.last, t)
}
