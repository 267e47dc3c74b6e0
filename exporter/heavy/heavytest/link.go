package heavytest

import (
	"context"
	"time"

	"oneway.example/exporter/control"
	"oneway.example/exporter/heavy"
	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/stream"
	"oneway.example/exporter/wait"
)

// Link is a heavy.Carrier of known behaviour. The zero value passes every packet at once.
type Link struct {
	// Rate in IP octets a second, behind a queue of Queue octets that drops at its tail;
	// zero: unlimited.
	Rate  float64
	Queue int
	// Delay of the empty link.
	Delay time.Duration
	// Offset is the far clock's reading less the near one's.
	Offset time.Duration
	// Near and Far are what the clocks say of themselves; the zero value: a bound of 10 us.
	Near, Far heavy.Clocks
	// Overhead is the octets of headers; zero: 28.
	Overhead int
	// Sleep has each transfer take its time.
	Sleep bool
	// Each may change a transfer's outcome before it is returned.
	Each func(d sample.Direction, c *heavy.Carried) error
	// Transfers counts them.
	Transfers int
}

// GoodClock is a clock that is never off by more than 10 us.
func GoodClock() heavy.Clocks {
	c := control.Clock{Bound: 10 * time.Microsecond, Reason: sample.OK.String()}
	return heavy.Clocks{Before: c, After: c}
}

// Carry is heavy.Carrier.
func (l *Link) Carry(ctx context.Context, d sample.Direction, p stream.Plan, _ time.Duration, progress func(heavy.Progress)) (*heavy.Carried, error) {
	l.Transfers++
	begin := instant.Now()
	if l.Sleep {
		for elapsed := time.Duration(0); elapsed < p.Duration(); elapsed = instant.Now().Sub(begin) {
			if !wait.For(ctx, min(100*time.Millisecond, p.Duration()-elapsed)) {
				return &heavy.Carried{Packets: 1, PayloadBytes: 100}, context.Cause(ctx)
			}
			progress(heavy.Progress{Elapsed: instant.Now().Sub(begin)})
		}
	}
	c := l.run(d, p, begin)
	if l.Each != nil {
		if err := l.Each(d, c); err != nil {
			return c, err
		}
	}
	return c, nil
}

// run is what becomes of a plan that begins at an instant of the near clock.
func (l *Link) run(d sample.Direction, p stream.Plan, begin instant.Time) *heavy.Carried {
	c := &heavy.Carried{
		Sent: &stream.Sent{Planned: p.Packets(), Begin: begin}, Received: &stream.Received{},
		Near: orGood(l.Near), Far: orGood(l.Far),
	}
	from, to := time.Duration(0), l.Offset
	if d == sample.Reverse {
		from, to = to, from
	}
	overhead := l.Overhead
	if overhead == 0 {
		overhead = 28
	}
	at, free := begin, begin
	seq := uint32(0)
	for _, s := range p.Segments {
		at = at.Add(s.Pause)
		for b := range s.Bursts {
			due := at.Add(time.Duration(b) * s.Interval)
			for range s.Burst {
				c.Sent.Packets = append(c.Sent.Packets, stream.SentPacket{
					Due: due.Add(from), Stamp: sample.Stamp{At: due.Add(from), Origin: sample.Kernel},
				})
				c.Packets++
				c.PayloadBytes += int64(s.PayloadBytes)
				if leaves, ok := l.pass(due, &free, s.PayloadBytes+overhead); ok {
					c.Received.Packets = append(c.Received.Packets, stream.ReceivedPacket{
						Seq: seq, PayloadBytes: uint16(s.PayloadBytes),
						Stamp: sample.Stamp{At: leaves.Add(l.Delay + to), Origin: sample.Kernel},
					})
				}
				seq++
			}
		}
		at = at.Add(time.Duration(s.Bursts) * s.Interval)
	}
	c.Sent.End = c.Sent.Packets[len(c.Sent.Packets)-1].Stamp.At
	return c
}

// pass is when a packet leaves the queue that came at an instant; false: it was dropped.
// free is when the link has sent all that is in the queue.
func (l *Link) pass(at instant.Time, free *instant.Time, size int) (leaves instant.Time, ok bool) {
	if l.Rate == 0 {
		return at, true
	}
	leaves = max(at, *free)
	waiting := leaves.Sub(at).Seconds() * l.Rate
	if waiting+float64(size) > float64(l.Queue)+0.5 {
		return 0, false
	}
	*free = leaves.Add(time.Duration(float64(size) / l.Rate * float64(time.Second)))
	return leaves, true
}

func orGood(c heavy.Clocks) heavy.Clocks {
	if c == (heavy.Clocks{}) {
		return GoodClock()
	}
	return c
}

var _ heavy.Carrier = (*Link)(nil)
