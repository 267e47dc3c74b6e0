package heavytest

import (
	"cmp"
	"context"
	"slices"
	"time"

	"oneway.example/exporter/heavy"
	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/stream"
)

// Steered is a Link whose far end knows plans with feedback. It implements heavy.Steerer, in
// simulated time.
type Steered struct {
	Link
	// LoseReport tells which reports are lost; nil: none is.
	LoseReport func(serial uint32) bool
}

// Feedback is heavy.Steerer.
func (*Steered) Feedback() bool { return true }

// Steer is heavy.Steerer.
func (l *Steered) Steer(_ context.Context, d sample.Direction, p stream.Plan, _ func(heavy.Progress), steer stream.Steer) (*heavy.Carried, error) {
	l.Transfers++
	f := &flight{Steered: l, plan: p, begin: instant.Now(), steering: stream.NewSteering(p, steer, 0)}
	f.tick = f.begin.Add(p.Feedback)
	c := f.run(d)
	if l.Each != nil {
		if err := l.Each(d, c); err != nil {
			return c, err
		}
	}
	return c, nil
}

// flight is a steered stream under way.
type flight struct {
	*Steered
	plan     stream.Plan
	begin    instant.Time
	steering *stream.Steering
	tally    stream.Tally
	tick     instant.Time // when the receiver looks next
	told     uint64
	waiting  []arrival // that the receiver has not counted
	reports  []report  // that the sender has not heard
}

type arrival struct {
	at     instant.Time
	seq    uint32
	micros uint32
}

type report struct {
	at instant.Time
	stream.Status
}

func (f *flight) run(d sample.Direction) *heavy.Carried {
	c := f.carried(f.plan, f.begin)
	from, to := f.offsets(d)
	way := f.open(f.begin)
	s := f.plan.Segments[0]
	size := s.PayloadBytes + f.overhead()
	var all []arrival
	for at := f.begin; at < f.begin.Add(f.plan.Duration()) && len(c.Sent.Packets) < s.Bursts; at = at.Add(f.steering.Interval(at.Sub(f.begin))) {
		f.until(at)
		seq := uint32(len(c.Sent.Packets))
		stamp := sample.Stamp{At: at.Add(from), Origin: sample.Kernel}
		c.Sent.Packets = append(c.Sent.Packets, stream.SentPacket{Due: stamp.At, Stamp: stamp})
		c.Packets++
		c.PayloadBytes += int64(s.PayloadBytes)
		if leaves, ok := f.fate(way, at, int(seq), size); ok {
			one := arrival{leaves.Add(f.Delay), seq, uint32(at.Sub(f.begin) / time.Microsecond)}
			all, f.waiting = append(all, one), append(f.waiting, one)
		}
	}
	c.Sent.Planned = len(c.Sent.Packets)
	c.Sent.End = c.Sent.Packets[len(c.Sent.Packets)-1].Stamp.At
	slices.SortStableFunc(all, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
	for _, one := range all {
		c.Received.Packets = append(c.Received.Packets, stream.ReceivedPacket{
			Seq: one.seq, PayloadBytes: uint16(s.PayloadBytes), Stamp: sample.Stamp{At: one.at.Add(to), Origin: sample.Kernel},
		})
	}
	return c
}

// until has the receiver report, and the sender hear, what is due until an instant.
func (f *flight) until(now instant.Time) {
	for ; f.tick <= now; f.tick = f.tick.Add(f.plan.Feedback) {
		f.waiting = slices.DeleteFunc(f.waiting, func(a arrival) bool {
			if a.at > f.tick {
				return false
			}
			f.tally.Add(a.seq, f.plan.Segments[0].PayloadBytes, false, a.at, a.micros)
			f.told += uint64(f.plan.Segments[0].PayloadBytes)
			return true
		})
		if f.told < stream.MinReport {
			continue
		}
		f.told = 0
		st := f.tally.Status(f.tick.Sub(f.begin))
		if f.LoseReport == nil || !f.LoseReport(st.Serial) {
			f.reports = append(f.reports, report{f.tick.Add(f.Delay), st})
		}
	}
	for len(f.reports) > 0 && f.reports[0].at <= now {
		f.steering.Reported(f.reports[0].Status, f.reports[0].at.Sub(f.begin))
		f.reports = f.reports[1:]
	}
}

var _ heavy.Steerer = (*Steered)(nil)
