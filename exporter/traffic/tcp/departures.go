package tcp

import (
	"slices"
	"time"

	"oneway.example/exporter/instant"
	"oneway.example/exporter/tcpsocket"
	"oneway.example/exporter/tcpstamp"
)

// departures are the stamps of the sending end of a flow. Only the goroutine that writes uses them.
type departures struct {
	skip    int64 // bytes of the connection before the payload
	written int64 // payload
	begin   instant.Time
	step    int64
	sent    []tcpstamp.Sent // by offset, which increases
	bursts  bursts
}

// Limits of the samples of a sending end besides tcpstamp.MaxSent: first samples and then one every spacing.
const (
	first   = 256
	spacing = 5 * time.Millisecond
)

func newDepartures(skip int64) *departures {
	return &departures{skip: skip, step: tcpstamp.Grid}
}

// write writes a message in parts, which end at sampled bytes and, in a burst of acknowledgments, at segments.
func (d *departures) write(to *tcpsocket.Conn, message []byte, bulk bool) (n int, held bool, err error) {
	if d.begin == 0 {
		d.begin = instant.Now()
	}
	for n < len(message) {
		now := instant.Now()
		next := d.written - d.written%d.step + d.step
		part, want, record := next-d.written, tcpsocket.Want(0), false
		if bulk && d.bursts.on(d, to, now) {
			part, want, record = min(part, d.bursts.mss), tcpsocket.WantAcked, true
		}
		part = min(part, int64(len(message)-n))
		sampled := d.written+part == next
		if sampled {
			want = tcpsocket.WantScheduled | tcpsocket.WantLeft | tcpsocket.WantAcked
			d.sent = append(d.sent, tcpstamp.Sent{Offset: next, Written: now})
		}
		m, waited, err := to.WriteStamped(message[n:n+int(part)], want, record)
		d.written, n, held = d.written+int64(m), n+m, held || waited
		d.bursts.wrote(d.written, record)
		if sampled && int64(m) < part {
			d.sent = d.sent[:len(d.sent)-1]
		}
		if err != nil {
			return n, held, err
		}
		d.thin(now)
	}
	return n, held, nil
}

// thin raises the step while there are too many samples.
func (d *departures) thin(now instant.Time) {
	for len(d.sent) >= tcpstamp.MaxSent || len(d.sent) > first+int(max(0, now.Sub(d.begin))/spacing) {
		d.step *= 2
		d.sent = slices.DeleteFunc(d.sent, func(s tcpstamp.Sent) bool { return s.Offset%d.step != 0 })
	}
}

// take adds a stamp of the kernel.
func (d *departures) take(s tcpsocket.Stamp) {
	offset := s.Offset - d.skip
	if s.Kind == tcpsocket.Acked {
		d.bursts.acked(offset, s, d.skip)
	}
	i, found := slices.BinarySearchFunc(d.sent, offset, func(s tcpstamp.Sent, offset int64) int { return int(s.Offset - offset) })
	if !found {
		return // of the end of a part, or of a sample that was dropped
	}
	switch one := &d.sent[i]; s.Kind {
	case tcpsocket.Scheduled:
		if one.Scheduled == 0 {
			one.Scheduled = s.At
		}
	case tcpsocket.Left:
		if one.First == 0 {
			one.First = s.At
		}
		one.Last = s.At
		one.Transmissions++
	case tcpsocket.Acked:
		if one.Acked == 0 {
			one.Acked, one.AckedEarly = s.At, s.Early
		}
	}
}

// segmentBytes is the most that the kernel keeps in one segment before it splits it: it has one stamp.
const segmentBytes = 64 << 10

// result returns the samples, without those whose segment kept the stamp of a later one.
func (d *departures) result() []tcpstamp.Sent {
	stamped := int64(-1) // offset of the next one with a stamp
	for i := len(d.sent) - 1; i >= 0; i-- {
		s := &d.sent[i]
		switch {
		case s.Scheduled != 0 || s.First != 0 || s.Acked != 0:
			stamped = s.Offset
		case stamped >= 0 && stamped-s.Offset <= segmentBytes:
			s.Offset = 0
		}
	}
	return slices.DeleteFunc(d.sent, func(s tcpstamp.Sent) bool { return s.Offset == 0 })
}

// bursts are the bursts of segments that each ask for the time of their acknowledgment.
type bursts struct {
	mss    int64
	left   int // writes of the present burst
	begin  instant.Time
	next   instant.Time
	ranges []offsets // of each burst
	acks   []tcpstamp.Ack
	last   int64 // highest offset that was acknowledged
}

// offsets are the bytes (from, to] of a flow.
type offsets struct{ from, to int64 }

// Limits of bursts: they take at most a quarter of the time, and are rare at high rates, where they cost more.
const (
	burstPause = 3 // times that of the burst
	leastPause = 300 * time.Millisecond
)

// on reports whether the next write belongs to a burst, and begins one if it is due.
func (b *bursts) on(d *departures, c *tcpsocket.Conn, now instant.Time) bool {
	if b.left > 0 {
		return true
	}
	if b.next == 0 {
		b.next = now.Add(leastPause)
	}
	if now < b.next || len(b.ranges) == tcpstamp.MaxBursts {
		return false
	}
	i, err := c.Info()
	if err != nil || i.MSS <= 0 {
		return false
	}
	b.mss, b.left, b.begin = i.MSS, tcpstamp.MaxBurstAcks, now
	b.ranges = append(b.ranges, offsets{d.written, d.written})
	return true
}

// wrote counts a write of a burst.
func (b *bursts) wrote(to int64, record bool) {
	if !record {
		return
	}
	b.ranges[len(b.ranges)-1].to = to
	if b.left--; b.left == 0 {
		now := instant.Now()
		b.next = now.Add(max(leastPause, burstPause*now.Sub(b.begin)))
	}
}

// acked adds an acknowledgment that advanced, once: it stamps each segment that it covers.
func (b *bursts) acked(offset int64, s tcpsocket.Stamp, skip int64) {
	through := s.Through - skip
	if !s.Known || through <= b.last {
		return
	}
	b.last = through
	for i := len(b.ranges) - 1; i >= 0 && offset <= b.ranges[i].to; i-- {
		if offset > b.ranges[i].from && len(b.acks) < tcpstamp.MaxBursts*tcpstamp.MaxBurstAcks {
			b.acks = append(b.acks, tcpstamp.Ack{Burst: int32(i), Offset: through, At: s.At, Early: s.Early})
		}
	}
}
