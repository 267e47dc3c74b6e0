package tcptraffic

import (
	"cmp"
	"slices"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/tcpstamp"
	"oneway.example/exporter/net/tcpsocket"
)

// departures are the stamps of the sending end of a flow. Only the goroutine that writes uses them.
type departures struct {
	skip    int64 // bytes of the connection before the payload
	written int64 // payload
	begin   instant.Time
	step    int64
	least   int64           // step outside of bursts
	whole   bool            // messages are written as they are, and only their last bytes can be samples
	sent    []tcpstamp.Sent // by offset, which increases
	bursts  bursts
}

// Limits of the samples of a sending end besides tcpstamp.MaxSent: first samples and then one every spacing, an eighth of
// those of a tcpstamp.Receiver.
const (
	first   = 256
	spacing = 5 * time.Millisecond
	// leastStep is the least distance of samples outside of bursts. A sample ends its segment (MSG_EOR): the kernel keeps
	// one stamp in a segment of up to 64 kB before it splits it, and the arrival is exact if the byte is the last of a
	// read. Such a segment is half full in the mean: of 32 KiB in segments of 1448 bytes, 2 % of what the congestion window
	// lets through.
	leastStep = 32 << 10
	// leastBurst is the least size of messages of a flow with bursts: with smaller ones its segments would be smaller, too.
	leastBurst = 16 << 10
	// leastBuffer is the least size of a configured buffer of a flow whose samples end segments: how segments fill a smaller
	// one decides what it lets through, by up to 40 % at 17 KiB.
	leastBuffer = 512 << 10
	// leastWhole is leastStep of a flow whose samples do not end segments: two are never in one.
	leastWhole = 128 << 10
)

// newDepartures returns those of a flow of a plan; skip bytes precede its payload.
func newDepartures(p *Plan, f *Flow, skip int64) *departures {
	d := &departures{skip: skip, step: tcpstamp.Grid, least: leastStep}
	if small(f.SendBuffer) || small(f.ReceiveBuffer) {
		d.whole, d.least = true, leastWhole
		for d.least < 2*int64(f.MessageBytes) { // the parts in which the socket takes a message after a sample have stamps of their own
			d.least *= 2
		}
	} else if f.MessageInterval == 0 && f.MessageBytes >= leastBurst {
		d.bursts.pause = max(leastPause, p.Duration/tcpstamp.MaxBursts)
	}
	return d
}

// small reports whether a buffer is configured, 0 if it is not, and below leastBuffer.
func small(buffer int) bool { return buffer > 0 && buffer < leastBuffer }

// write writes a message in parts, which end at sampled bytes and, in a burst of acknowledgments, at segments.
func (d *departures) write(to *tcpsocket.Conn, message []byte) (n int, held bool, err error) {
	if d.begin == 0 {
		d.begin = instant.Now()
	}
	for n < len(message) {
		now := instant.Now()
		burst := d.bursts.on(d, to, now)
		step := d.step
		if !burst {
			step = max(step, d.least)
		}
		part, want := int64(len(message)-n), tcpsocket.Want(0)
		if !d.whole {
			part = min(part, step-d.written%step)
		}
		if burst {
			part, want = min(part, d.bursts.mss), tcpsocket.WantAcked
		}
		sampled := (d.written+part)%step == 0
		if sampled {
			want = tcpsocket.WantScheduled | tcpsocket.WantLeft | tcpsocket.WantAcked
			d.sent = append(d.sent, tcpstamp.Sent{Offset: d.written + part, Written: now})
		}
		m, waited, err := to.WriteStamped(message[n:n+int(part)], want, !d.whole && (burst || sampled))
		d.written, n, held = d.written+int64(m), n+m, held || waited
		if burst {
			d.bursts.wrote(d.written)
		}
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
	i, found := slices.BinarySearchFunc(d.sent, offset, func(s tcpstamp.Sent, offset int64) int { return cmp.Compare(s.Offset, offset) })
	if !found {
		return // of the end of a part, or of a sample that was dropped
	}
	switch one := &d.sent[i]; s.Kind {
	case tcpsocket.Scheduled:
		if one.First == 0 { // the scheduler has dropped it before, if there was one
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

// records returns the samples that have left the send buffer.
func (d *departures) records() []tcpstamp.Sent {
	n := len(d.sent)
	for n > 0 && d.sent[n-1].Scheduled == 0 && d.sent[n-1].First == 0 && d.sent[n-1].Acked == 0 {
		n--
	}
	return d.sent[:n]
}

// bursts are the bursts of segments that each ask for the time of their acknowledgment.
type bursts struct {
	pause  time.Duration // least time between them; 0: there are none
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

// Limits of bursts: they take at most a quarter of the time, and are rare at high rates, where they cost more. One that
// the end of the flow has cut below leastSegments is not recorded.
const (
	burstPause    = 3                      // times that of the burst
	leastPause    = 300 * time.Millisecond // before the first one
	nextPause     = time.Second            // after each: at 20 Gb/s pauses of 300 ms cost 8 % of the throughput
	leastSegments = 100
)

// records returns the acknowledgments.
func (b *bursts) records() []tcpstamp.Ack {
	if b.left <= tcpstamp.MaxBurstAcks-leastSegments {
		return b.acks
	}
	last := int32(len(b.ranges) - 1)
	return slices.DeleteFunc(b.acks, func(a tcpstamp.Ack) bool { return a.Burst == last })
}

// on reports whether the next write belongs to a burst, and begins one if it is due.
func (b *bursts) on(d *departures, c *tcpsocket.Conn, now instant.Time) bool {
	if b.left > 0 {
		return true
	}
	if b.next == 0 {
		b.next = now.Add(b.pause)
	}
	if b.pause == 0 || now < b.next || len(b.ranges) == tcpstamp.MaxBursts {
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
func (b *bursts) wrote(to int64) {
	b.ranges[len(b.ranges)-1].to = to
	if b.left--; b.left == 0 {
		now := instant.Now()
		b.next = now.Add(max(b.pause, nextPause, burstPause*now.Sub(b.begin)))
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
