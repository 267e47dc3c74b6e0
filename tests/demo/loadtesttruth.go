package main

import (
	"math"
	"slices"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/tests/lab"
)

// loadBytes is the default packet_bytes of probe saturation.
const loadBytes = 1410

// loadLog is one direction's load by the link's log: the idle packets before and after it, and the load in the order of
// entry.
type loadLog struct {
	idle, load []lab.Record
	begin      instant.Time
	// from and to are the part that the probe evaluated, since begin.
	from, to time.Duration
	// told is the probe's own throughput; its magnitude shows how it was computed.
	told float64
}

// transfersOf returns the packets of a run in the log, by the number of their transfer.
func transfersOf(log []lab.Record, r *run) map[uint64][]lab.Record {
	out := map[uint64][]lab.Record{}
	for _, one := range log {
		if one.Key&loadKey != 0 && r.sent(one.Entry) {
			out[one.Key&^loadKey>>32] = append(out[one.Key&^loadKey>>32], one)
		}
	}
	return out
}

// newLoadLog is nil if the run has no result.
func newLoadLog(log []lab.Record, d sample.Direction, r *run) *loadLog {
	if r == nil || r.Result != "completed" {
		return nil
	}
	l := &loadLog{}
	// The packets before the load, and those of the load: the largest of its segments.
	idle, until := 0, 0
	for _, t := range r.Transfers {
		if t.Direction != d.String() || len(t.Plan.Segments) < 2 {
			continue
		}
		before := 0
		for _, s := range t.Plan.Segments {
			n := s.Burst * s.Bursts
			if n > until-idle {
				idle, until = before, before+n
			}
			before += n
		}
	}
	for _, one := range r.Results.Directions {
		if one.Direction == d.String() && one.Load != nil {
			l.from, l.to, l.told = one.Load.From.duration(), one.Load.To.duration(), one.Load.Rate
		}
	}
	for _, packets := range transfersOf(log, r) {
		for _, p := range packets {
			if n := int(p.Key & math.MaxUint32); n >= idle && n < until {
				l.load = append(l.load, p)
			} else {
				l.idle = append(l.idle, p)
			}
		}
	}
	if len(l.idle) == 0 || len(l.load) == 0 || l.to <= l.from {
		return nil
	}
	l.begin = l.load[0].Entry
	return l
}

// holds reports whether a packet entered in the evaluated part.
func (l *loadLog) holds(r *lab.Record) bool {
	t := r.Entry.Sub(l.begin)
	return t >= l.from && t <= l.to
}

// least is the smallest true delay.
func least(all []lab.Record) bracket {
	b := bracket{math.Inf(1), math.Inf(1)}
	for i := range all {
		if arrived(&all[i]) {
			one := trueDelay(&all[i])
			b.least, b.most = min(b.least, one.least), min(b.most, one.most)
		}
	}
	return b
}

// coarse is the ratio of packet size to bytes per second from which on the probe computes the rate of the whole time,
// not the median of the seconds.
const coarse = 0.01

// throughput is the bytes that left uncorrupted: the median of the evaluated seconds, as the probe defines it
// (METRICS.md).
func (l *loadLog) throughput() *span {
	if loadBytes > coarse*l.told {
		return l.overall()
	}
	shift := least(append(slices.Clone(l.idle), l.load...)).least
	first, last := int(math.Ceil(l.from.Seconds())), int(l.to.Seconds())
	if last <= first {
		return nil
	}
	bytes := make([]float64, last-first)
	for i := range l.load {
		r := &l.load[i]
		if k := int(math.Floor(r.Exit.Middle().Sub(l.begin).Seconds()-shift)) - first; arrived(r) && k >= 0 && k < len(bytes) {
			bytes[k] += float64(r.Size)
		}
	}
	bytes = l.unpaused(bytes, first)
	slices.Sort(bytes)
	n := len(bytes)
	return exactly((bytes[(n-1)/2] + bytes[n/2]) / 2)
}

// pause is the longest time between entering packets that is not a pause of the sender.
const pause = 0.25

// unpaused omits, from first on, the seconds in which the sender paused, and the packets queued before its first
// packets after that, unless that is all of them.
func (l *loadLog) unpaused(bytes []float64, first int) (some []float64) {
	out := make([]bool, len(bytes))
	for i := 1; i < len(l.load); i++ {
		from, to := l.load[i-1].Entry.Sub(l.begin).Seconds(), l.load[i].Entry.Sub(l.begin).Seconds()
		for k := max(int(from)-first, 0); to-from > pause && k <= int(to+pause)-first && k < len(out); k++ {
			out[k] = true
		}
	}
	for k, n := range bytes {
		if !out[k] {
			some = append(some, n)
		}
	}
	if len(some) == 0 {
		return bytes
	}
	return some
}

// overall is the rate from the first arrival to the last.
func (l *loadLog) overall() *span {
	var begin, end instant.Time
	bytes := 0.0
	for i := range l.load {
		r := &l.load[i]
		if !l.holds(r) || !arrived(r) {
			continue
		}
		if at := r.Exit.Middle(); begin == 0 {
			begin, end = at, at
		} else {
			bytes, end = bytes+float64(r.Size), max(end, at)
		}
	}
	if end <= begin {
		return nil
	}
	return exactly(bytes / end.Sub(begin).Seconds())
}

// queueSize is the range of the queue's size by the log: at least what waited when a packet was admitted, with that
// packet, and less than what it would have contained with a dropped one.
func (l *loadLog) queueSize() *span {
	held, refused := 0, math.MaxInt
	for i := range l.load {
		if r := &l.load[i]; r.Outcome == lab.DroppedQueue {
			refused = min(refused, r.Queued+r.Size)
		} else {
			held = max(held, r.Queued+r.Size)
		}
	}
	if refused == math.MaxInt {
		return nil
	}
	return &span{float64(held), float64(refused - 1)}
}

// queueDelay is the median of what the full queue added to the delay of the empty path: for packets that left no space
// for another.
func (l *loadLog) queueDelay() *span {
	size, empty := l.queueSize(), least(l.idle)
	if size == nil {
		return nil
	}
	var full []bracket
	for i := range l.load {
		if r := &l.load[i]; arrived(r) && float64(r.Queued+2*r.Size) > size.Low {
			full = append(full, trueDelay(r))
		}
	}
	if len(full) == 0 {
		return nil
	}
	middle := func(of func(b bracket) float64) float64 { all := pick(full, of); return all[len(all)/2] }
	return (&span{middle(func(b bracket) float64 { return b.least }) - empty.most, middle(func(b bracket) float64 { return b.most }) - empty.least}).finite()
}

// trainCapacity is the true capacity by the trains of a size: (N-1) L bytes in the time between the exits of the first
// and the last packet. The probe takes the median of the clean ones; the log does not show which those are, only how
// many: of n trains of which any c may be clean, the median of the clean ones is within the span.
func trainCapacity(log []lab.Record, d sample.Direction, r *run, payload int) *span {
	if r == nil {
		return nil
	}
	clean := 0
	for _, one := range r.Results.Directions {
		for _, z := range one.Sizes {
			if one.Direction == d.String() && z.PayloadBytes == payload {
				clean = z.Trains["clean"]
			}
		}
	}
	transfers := transfersOf(log, r)
	var all []float64
	for _, t := range r.Transfers {
		if t.Direction != d.String() || len(t.Plan.Segments) == 0 || t.Plan.Segments[0].PayloadBytes != payload || t.Plan.Segments[0].Burst < 2 {
			continue
		}
		all = append(all, capacities(nearest(transfers, t.Begin), t.Plan.Segments[0].Burst)...)
	}
	slices.Sort(all)
	n := len(all)
	if clean == 0 || n < clean {
		return nil
	}
	half := (clean+1)/2 - 1
	return &span{all[half], all[n-1-half]}
}

// nearest is the transfer whose start is nearest to a time.
func nearest(transfers map[uint64][]lab.Record, begin instant.Time) (best []lab.Record) {
	for _, t := range transfers {
		if best == nil || t[0].Entry.Sub(begin).Abs() < best[0].Entry.Sub(begin).Abs() {
			best = t
		}
	}
	return best
}

// capacities are those of a transfer's complete trains.
func capacities(packets []lab.Record, length int) (all []float64) {
	byNumber := map[int]*lab.Record{}
	for i := range packets {
		byNumber[int(packets[i].Key&math.MaxUint32)] = &packets[i]
	}
	for first := 0; byNumber[first] != nil; first += length {
		bytes, whole := 0, true
		for i := first; i < first+length && whole; i++ {
			whole = byNumber[i] != nil && arrived(byNumber[i])
			if whole && i > first {
				bytes += byNumber[i].Size
			}
		}
		if !whole {
			continue
		}
		if span := byNumber[first+length-1].Exit.Middle().Sub(byNumber[first].Exit.Middle()); span > 0 {
			all = append(all, float64(bytes)/span.Seconds())
		}
	}
	return all
}
