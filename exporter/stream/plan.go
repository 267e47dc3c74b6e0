// Package stream sends and receives streams of UDP test packets at given times:
// constant rates, bursts and trains, for the tests that fill a link. Both ends use it;
// who may send to whom is decided above it (packages control and load server).
package stream

import (
	"errors"
	"fmt"
	"time"
)

// Plan is what one side sends: its segments one after the other. It is the same on both
// ends, and so may come from the network: see Check.
type Plan struct {
	Segments []Segment `json:"segments"`
	// DSCP is the code point of all packets, 0..63.
	DSCP uint8 `json:"dscp,omitempty"`
	// Unstamped sends as fast as the host can, with segmentation offload where there is
	// one, and without transmit stamps: for rates that stamps do not reach. Delays are
	// not known then.
	Unstamped bool `json:"unstamped,omitempty"`
	// NoChecksum leaves the UDP checksum out (IPv4 only), so that a packet that was
	// damaged on the way reaches the receiver instead of being dropped by its kernel.
	NoChecksum bool `json:"no_checksum,omitempty"`
	// Fragment lets routers fragment packets; by default they must not (IPv4's DF).
	Fragment bool `json:"fragment,omitempty"`
	// Feedback, if above zero, makes the plan the most that is sent: the receiver reports
	// so often what has come, and by that the time from packet to packet is chosen while the stream
	// runs, never shorter than Interval. Such a plan has one segment with an Interval and
	// with bursts of one packet; the stream ends with its duration, or with its packets.
	Feedback time.Duration `json:"feedback_ns,omitempty"`
}

// Segment is a time in which packets of one size leave evenly: a burst of Burst packets
// back to back, every Interval, Bursts times.
type Segment struct {
	// Pause is the silence before the first packet.
	Pause time.Duration `json:"pause_ns,omitempty"`
	// PayloadBytes is the UDP payload of each packet, HeaderBytes at the least.
	PayloadBytes int `json:"payload_bytes"`
	// Interval is the time between the beginnings of bursts; with Burst 1, between
	// packets. Zero: each follows the one before at once.
	Interval time.Duration `json:"interval_ns"`
	// Burst is the number of packets back to back, 1 at the least.
	Burst int `json:"burst"`
	// Bursts is how many bursts there are, 1 at the least.
	Bursts int `json:"bursts"`
}

// Limits of a Plan. MaxPackets bounds the memory of a run: some 40 bytes a packet.
const (
	MaxSegments     = 1 << 12
	MaxPackets      = 1 << 22
	MaxPayloadBytes = 65_507
	MaxDuration     = time.Hour
)

// MinFeedback and MaxFeedback are the limits of Plan.Feedback.
const (
	MinFeedback = 10 * time.Millisecond
	MaxFeedback = time.Minute
)

// Packets is how many packets the segment has.
func (s Segment) Packets() int { return s.Burst * s.Bursts }

// Duration is how long the segment takes as planned, its pause included.
func (s Segment) Duration() time.Duration {
	return s.Pause + time.Duration(s.Bursts)*s.Interval
}

// Packets is how many packets the plan has.
func (p Plan) Packets() (n int) {
	for _, s := range p.Segments {
		n += s.Packets()
	}
	return n
}

// Duration is how long the plan takes as planned.
func (p Plan) Duration() (d time.Duration) {
	for _, s := range p.Segments {
		d += s.Duration()
	}
	return d
}

// Bytes is the UDP payload of all packets together.
func (p Plan) Bytes() (n int64) {
	for _, s := range p.Segments {
		n += int64(s.Packets()) * int64(s.PayloadBytes)
	}
	return n
}

// PeakRate is the highest mean rate of a segment, in bytes of UDP payload a second; of one
// without intervals it is not known, and Unpaced is true.
func (p Plan) PeakRate() (bytesPerSecond float64, unpaced bool) {
	for _, s := range p.Segments {
		if s.Interval <= 0 {
			unpaced = unpaced || s.Packets() > 1
			continue
		}
		bytesPerSecond = max(bytesPerSecond, float64(s.Burst*s.PayloadBytes)/s.Interval.Seconds())
	}
	return bytesPerSecond, unpaced
}

// ErrPlan is wrapped by what Check says.
var ErrPlan = errors.New("stream: no such plan")

// Check tells whether the plan can be carried out; nothing in it overflows then.
func (p Plan) Check() error {
	if n := len(p.Segments); n == 0 || n > MaxSegments {
		return fmt.Errorf("%w: %d segments, want 1 to %d", ErrPlan, n, MaxSegments)
	}
	if p.DSCP > 63 {
		return fmt.Errorf("%w: dscp %d, want 0 to 63", ErrPlan, p.DSCP)
	}
	if p.Feedback != 0 {
		if err := p.checkFeedback(); err != nil {
			return err
		}
	}
	packets, left := 0, MaxDuration
	for i, s := range p.Segments {
		switch {
		case s.PayloadBytes < HeaderBytes || s.PayloadBytes > MaxPayloadBytes:
			return fmt.Errorf("%w: segment %d: %d bytes a packet, want %d to %d", ErrPlan, i, s.PayloadBytes, HeaderBytes, MaxPayloadBytes)
		case s.Burst < 1 || s.Bursts < 1 || s.Burst > MaxPackets || s.Bursts > MaxPackets/s.Burst:
			return fmt.Errorf("%w: segment %d: %d bursts of %d packets, want 1 to %d packets", ErrPlan, i, s.Bursts, s.Burst, MaxPackets)
		case s.Interval < 0 || s.Pause < 0 || s.Pause > left || s.Interval > 0 && time.Duration(s.Bursts) > (left-s.Pause)/s.Interval:
			return fmt.Errorf("%w: segment %d: longer than %v in all, or a time below zero", ErrPlan, i, MaxDuration)
		}
		left -= s.Duration()
		if packets += s.Packets(); packets > MaxPackets {
			return fmt.Errorf("%w: more than %d packets", ErrPlan, MaxPackets)
		}
	}
	return nil
}

func (p Plan) checkFeedback() error {
	switch {
	case p.Feedback < MinFeedback || p.Feedback > MaxFeedback:
		return fmt.Errorf("%w: feedback each %v, want %v to %v", ErrPlan, p.Feedback, MinFeedback, MaxFeedback)
	case len(p.Segments) != 1 || p.Segments[0].Burst != 1 || p.Segments[0].Interval <= 0:
		return fmt.Errorf("%w: with feedback, one segment of single packets with an interval is wanted", ErrPlan)
	case p.Unstamped:
		return fmt.Errorf("%w: feedback is for packets with stamps", ErrPlan)
	}
	return nil
}

// cursor goes through a plan, packet by packet. Times are of the monotonic clock; within
// a segment they are a grid that no lateness shifts.
type cursor struct {
	plan    Plan
	segment int // of the next packet; len(plan.Segments): there is none
	burst   int
	packet  int // in the burst
	// base is when the segment begins, its pause over.
	base time.Duration
	// shift is how much longer than planned segments without intervals have taken.
	shift time.Duration
	// adjustRate is of a plan with feedback, which ends at end at the latest; nil: it has none.
	adjustRate *Adjusting
	end        time.Duration
}

func newCursor(p Plan, begin time.Duration) cursor {
	return cursor{plan: p, base: begin + p.Segments[0].Pause}
}

func (c *cursor) done() bool { return c.segment == len(c.plan.Segments) }

// unpaced: the next packet follows the one before at once.
func (c *cursor) unpaced() bool { return c.plan.Segments[c.segment].Interval == 0 }

func (c *cursor) payloadBytes() int { return c.plan.Segments[c.segment].PayloadBytes }

// due is when the next packet is to leave.
func (c *cursor) due() time.Duration {
	if c.adjustRate != nil {
		return c.base
	}
	return c.base + time.Duration(c.burst)*c.plan.Segments[c.segment].Interval
}

// advance passes the next packet; now is the time. The segment after one without
// intervals begins its pause when that is over, not when it was planned to be: how long
// it takes is the host's affair.
func (c *cursor) advance(now time.Duration) {
	s := c.plan.Segments[c.segment]
	if c.adjustRate != nil {
		c.base += c.adjustRate.Interval(now)
		if c.burst++; c.burst == s.Bursts || c.base >= c.end {
			c.segment++
		}
		return
	}
	if c.packet++; c.packet < s.Burst {
		return
	}
	c.packet = 0
	if c.burst++; c.burst < s.Bursts {
		return
	}
	c.burst = 0
	c.segment++
	if s.Interval > 0 {
		c.base += time.Duration(s.Bursts) * s.Interval
	} else {
		c.shift += max(0, now-c.base)
		c.base = max(c.base, now)
	}
	if !c.done() {
		c.base += c.plan.Segments[c.segment].Pause
	}
}
