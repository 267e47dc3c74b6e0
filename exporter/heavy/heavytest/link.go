package heavytest

import (
	"cmp"
	"context"
	"slices"
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
	// Burst, if above zero, is a token bucket of so many octets, full at first and filled at
	// Rate: while it lasts, the link passes Peak octets a second.
	Burst, Peak float64
	// Delay of the empty link.
	Delay time.Duration
	// Offset is the far clock's reading less the near one's.
	Offset time.Duration
	// Near and Far are what the clocks say of themselves; the zero value: a bound of 10 us.
	Near, Far heavy.Clocks
	// Overhead is the octets of headers; zero: 28.
	Overhead int
	// Lose tells which packets are lost for another reason; nil: none is. Late is how much longer
	// than others a packet takes that passes; nil: none does.
	Lose func(seq int) bool
	Late func(seq int) time.Duration
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
	c := l.carried(p, begin)
	from, to := l.offsets(d)
	overhead, way := l.overhead(), l.open(begin)
	at := begin
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
				if leaves, ok := l.fate(way, due, int(seq), s.PayloadBytes+overhead); ok {
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
	if l.Late != nil {
		slices.SortStableFunc(c.Received.Packets, func(a, b stream.ReceivedPacket) int { return cmp.Compare(a.Stamp.At, b.Stamp.At) })
	}
	return c
}

func (l *Link) carried(p stream.Plan, begin instant.Time) *heavy.Carried {
	return &heavy.Carried{
		Sent: &stream.Sent{Planned: p.Packets(), Begin: begin}, Received: &stream.Received{},
		Near: orGood(l.Near), Far: orGood(l.Far),
	}
}

// offsets are those of the sender's and of the receiver's clock.
func (l *Link) offsets(d sample.Direction) (from, to time.Duration) {
	if d == sample.Reverse {
		return l.Offset, 0
	}
	return 0, l.Offset
}

func (l *Link) overhead() int {
	if l.Overhead == 0 {
		return 28
	}
	return l.Overhead
}

// fate is when a packet leaves the link; false: it is lost.
func (l *Link) fate(way *passage, at instant.Time, seq, size int) (leaves instant.Time, ok bool) {
	if leaves, ok = way.pass(at, size); !ok || l.Lose != nil && l.Lose(seq) {
		return 0, false
	}
	if l.Late != nil {
		leaves = leaves.Add(l.Late(seq))
	}
	return leaves, true
}

func orGood(c heavy.Clocks) heavy.Clocks {
	if c == (heavy.Clocks{}) {
		return GoodClock()
	}
	return c
}

var _ heavy.Carrier = (*Link)(nil)
