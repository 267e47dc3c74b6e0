package loadtesttest

import (
	"cmp"
	"context"
	"slices"
	"time"

	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/ipheader"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/exporter/probe/endclock"
)

// Link is a udp.Carrier that delivers every packet. It does not adjust rates: see Simulate.
type Link struct {
	// Delay of each packet.
	Delay time.Duration
	// Sleep makes each transfer take its planned time.
	Sleep bool
	// Each may change the outcome of a transfer.
	Each func(d sample.Direction, c *udptraffic.CarrierResult) error
	// Transfers is the number of calls of Transfer.
	Transfers int
}

// Transfer implements udp.Carrier.
func (l *Link) Transfer(ctx context.Context, d sample.Direction, p stream.Plan, _ time.Duration, progress func(loadtest.Progress), _ stream.Adjuster) (*udptraffic.CarrierResult, error) {
	l.Transfers++
	begin := instant.Now()
	if l.Sleep {
		for elapsed := time.Duration(0); elapsed < p.Duration(); elapsed = instant.Now().Sub(begin) {
			if !ctxtime.Sleep(ctx, min(100*time.Millisecond, p.Duration()-elapsed)) {
				return &udptraffic.CarrierResult{Packets: 1, PayloadBytes: 100}, context.Cause(ctx)
			}
			progress(loadtest.Progress{Elapsed: instant.Now().Sub(begin)})
		}
	}
	c := Simulate(p, begin, nil, func(at instant.Time, _, _ int) (instant.Time, bool) { return at.Add(l.Delay), true })
	if l.Each != nil {
		if err := l.Each(d, c); err != nil {
			return c, err
		}
	}
	return c, nil
}

var _ udptraffic.Carrier = (*Link)(nil)

// Overhead is the bytes of the IPv4 and UDP headers of a packet of Simulate.
const Overhead = ipheader.IPv4 + ipheader.UDP

// Simulate is a stream over IPv4 in simulated time with one clock. Each packet leaves when it is due, and
// pass returns its arrival; false: it is lost. pace, if not nil, returns the interval to the next
// packet instead of the plan's.
func Simulate(p stream.Plan, begin instant.Time, pace func(at instant.Time) time.Duration, pass func(at instant.Time, seq, ipBytes int) (instant.Time, bool)) *udptraffic.CarrierResult {
	c := &udptraffic.CarrierResult{
		Sent: &stream.Sent{Planned: p.Packets(), Begin: begin}, Received: &stream.Received{}, Local: GoodClock(), Remote: GoodClock(),
	}
	at, end := begin, begin.Add(p.Duration())
	for _, s := range p.Segments {
		at = at.Add(s.Pause)
		for range s.Bursts {
			interval := s.Interval
			if pace != nil {
				if at >= end {
					break
				}
				interval = pace(at)
			}
			for range s.Burst {
				seq, stamp := len(c.Sent.Packets), sample.Stamp{At: at, Origin: sample.Kernel}
				c.Sent.Packets = append(c.Sent.Packets, stream.SentPacket{Due: at, Stamp: stamp})
				c.Sent.End = at
				c.PayloadBytes += int64(s.PayloadBytes)
				var ok bool
				if stamp.At, ok = pass(at, seq, s.PayloadBytes+Overhead); ok {
					c.Received.Packets = append(c.Received.Packets, stream.ReceivedPacket{Seq: uint32(seq), PayloadBytes: uint16(s.PayloadBytes), Stamp: stamp})
				}
			}
			at = at.Add(interval)
		}
	}
	c.Packets = len(c.Sent.Packets)
	slices.SortStableFunc(c.Received.Packets, func(a, b stream.ReceivedPacket) int { return cmp.Compare(a.Stamp.At, b.Stamp.At) })
	return c
}

// GoodClock returns a clock with an error bound of 10 us.
func GoodClock() endclock.Span {
	c := endclock.State{Bound: 10 * time.Microsecond, Reason: sample.OK.String()}
	return endclock.Span{Before: c, After: c}
}
