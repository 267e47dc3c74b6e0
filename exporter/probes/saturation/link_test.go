package saturation_test

import (
	"context"
	"slices"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/loadtesttest"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/exporter/probe/endclock"
)

// bottleneck is a udp.Carrier of known behavior. The zero value passes every packet at once.
type bottleneck struct {
	// Rate in IP bytes a second, behind a queue of Queue bytes that drops at its tail;
	// zero: unlimited.
	Rate  float64
	Queue int
	// Burst, if above zero, is a token bucket of so many bytes, initially full and filled at Rate: until it is
	// empty, the link passes Peak bytes a second.
	Burst, Peak float64
	// Delay of the empty link.
	Delay time.Duration
	// Offset is the remote clock's reading less the local one's.
	Offset time.Duration
	// Local and Remote are the reported clock qualities; the zero value: a bound of 10 us.
	Local, Remote endclock.Span
	// Lose reports which packets are lost for another reason; nil: none. Late is the additional delay of a packet;
	// nil: none.
	Lose func(seq int) bool
	Late func(seq int) time.Duration
	// LoseReport reports which reports of a plan with feedback are lost; nil: none.
	LoseReport func(serial uint32) bool
	// Each may change a transfer's outcome before it is returned.
	Each func(d sample.Direction, c *udptraffic.CarrierResult) error
	// Transfers counts the transfers.
	Transfers int
}

// Transfer is udp.Carrier.
func (l *bottleneck) Transfer(_ context.Context, d sample.Direction, p stream.Plan, _ time.Duration, _ func(loadtest.Progress), adjustRate stream.Adjuster) (*udptraffic.CarrierResult, error) {
	l.Transfers++
	c := l.carryPlan(d, p, instant.Now(), adjustRate)
	if l.Each != nil {
		if err := l.Each(d, c); err != nil {
			return c, err
		}
	}
	return c, nil
}

// carryPlan carries a plan that begins at an instant of the local clock.
func (l *bottleneck) carryPlan(d sample.Direction, p stream.Plan, begin instant.Time, adjustRate stream.Adjuster) *udptraffic.CarrierResult {
	f := &feedback{bottleneck: l, plan: p, begin: begin}
	var pace func(instant.Time) time.Duration
	if adjustRate != nil {
		f.adjusting, f.tick, pace = stream.NewRateControl(p, adjustRate, 0), begin.Add(p.Feedback), f.pace
	}
	way := l.open(begin)
	c := loadtesttest.Simulate(p, begin, pace, func(at instant.Time, seq, size int) (instant.Time, bool) {
		arrives, ok := l.outcome(way, at, seq, size)
		if ok && adjustRate != nil {
			f.waiting = append(f.waiting, arrival{arrives, uint32(seq), size - loadtesttest.Overhead, uint32(at.Sub(begin) / time.Microsecond)})
		}
		return arrives, ok
	})
	if adjustRate != nil {
		c.Sent.Planned = len(c.Sent.Packets)
	}
	from, to := time.Duration(0), l.Offset // of the sender's and the receiver's clock
	if d == sample.Reverse {
		from, to = to, from
	}
	c.Sent.End = c.Sent.End.Add(from)
	for i := range c.Sent.Packets {
		one := &c.Sent.Packets[i]
		one.Due, one.Stamp.At = one.Due.Add(from), one.Stamp.At.Add(from)
	}
	for i := range c.Received.Packets {
		one := &c.Received.Packets[i]
		one.Stamp.At = one.Stamp.At.Add(to)
	}
	if l.Local != (endclock.Span{}) {
		c.Local = l.Local
	}
	if l.Remote != (endclock.Span{}) {
		c.Remote = l.Remote
	}
	return c
}

// outcome returns when a packet arrives; false: it is lost.
func (l *bottleneck) outcome(way *passage, at instant.Time, seq, size int) (arrives instant.Time, ok bool) {
	leaves, ok := way.pass(at, size)
	if !ok || l.Lose != nil && l.Lose(seq) {
		return 0, false
	}
	if l.Late != nil {
		leaves = leaves.Add(l.Late(seq))
	}
	return leaves.Add(l.Delay), true
}

// feedback is the reports of a running stream's receiver to its sender.
type feedback struct {
	*bottleneck
	plan       stream.Plan
	begin      instant.Time
	adjusting  *stream.RateControl
	tally      stream.StatusCounter
	tick       instant.Time // the receiver's next report
	unreported uint64
	waiting    []arrival // not counted by the receiver yet
	reports    []report  // not received by the sender yet
}

type arrival struct {
	at     instant.Time
	seq    uint32
	bytes  int
	micros uint32
}

type report struct {
	at instant.Time
	stream.Status
}

// pace is the time to the next packet, by the reports received so far.
func (f *feedback) pace(now instant.Time) time.Duration {
	for ; f.tick <= now; f.tick = f.tick.Add(f.plan.Feedback) {
		f.waiting = slices.DeleteFunc(f.waiting, func(a arrival) bool {
			if a.at > f.tick {
				return false
			}
			f.tally.Add(a.seq, a.bytes, false, a.at, a.micros)
			f.unreported += uint64(a.bytes)
			return true
		})
		if f.unreported < stream.MinReport {
			continue
		}
		f.unreported = 0
		st := f.tally.Status(f.tick.Sub(f.begin))
		if f.LoseReport == nil || !f.LoseReport(st.Serial) {
			f.reports = append(f.reports, report{f.tick.Add(f.Delay), st})
		}
	}
	for len(f.reports) > 0 && f.reports[0].at <= now {
		f.adjusting.HandleReport(f.reports[0].Status, f.reports[0].at.Sub(f.begin))
		f.reports = f.reports[1:]
	}
	return f.adjusting.Interval(now.Sub(f.begin))
}

// passage is the state of a bottleneck while packets pass it in the order of time.
type passage struct {
	*bottleneck
	free   instant.Time // when all queued packets are sent
	level  float64      // bytes in the bucket, as of filled
	filled instant.Time
}

func (l *bottleneck) open(begin instant.Time) *passage {
	return &passage{bottleneck: l, free: begin, level: l.Burst, filled: begin}
}

// pass returns when a packet that arrived at an instant leaves; false: it was dropped.
func (p *passage) pass(at instant.Time, size int) (leaves instant.Time, ok bool) {
	if p.Rate == 0 {
		return at, true
	}
	leaves = max(at, p.free)
	bytes, speed := float64(size), p.Rate
	if p.Burst > 0 {
		speed = p.Peak
		p.fill(leaves)
		if lacks := bytes - p.level; lacks > 0 {
			leaves = leaves.Add(seconds(lacks / p.Rate))
		}
	}
	if waiting := leaves.Sub(at).Seconds() * p.Rate; waiting > 0 && waiting+bytes > float64(p.Queue)+0.5 {
		return 0, false
	}
	if p.Burst > 0 {
		p.fill(leaves)
		p.level -= bytes
	}
	p.free = leaves.Add(seconds(bytes / speed))
	return leaves, true
}

func (p *passage) fill(now instant.Time) {
	p.level = min(p.Burst, p.level+now.Sub(p.filled).Seconds()*p.Rate)
	p.filled = now
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
