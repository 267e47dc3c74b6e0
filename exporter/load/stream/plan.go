// Package stream sends and receives streams of UDP test packets at given times: constant rates,
// bursts and trains, for load tests. Both ends use it; packages loadcontrol and loadserver decide who
// may send.
package stream

import (
	"errors"
	"fmt"
	"time"

	"oneway.example/exporter/core/unit"
)

// Plan is the packets of a stream: its segments in sequence. Both ends have the same Plan, so it may
// come from the network: see Check.
type Plan struct {
	Segments []Segment `json:"segments"`
	// DSCP of all packets, 0..63.
	DSCP uint8 `json:"dscp,omitempty"`
	// Unstamped sends as fast as the host can, with segmentation offload if available, and without
	// transmit timestamps: for rates at which timestamps are not possible. Delays are
	// unknown then.
	Unstamped bool `json:"unstamped,omitempty"`
	// NoChecksum omits the UDP checksum (IPv4 only), so that the receiver's kernel does not drop
	// packets damaged on the path.
	NoChecksum bool `json:"no_checksum,omitempty"`
	// Fragment allows routers to fragment packets; by default IPv4's DF is set.
	Fragment bool `json:"fragment,omitempty"`
	// Feedback, if above zero, makes the plan the most that is sent: the receiver reports at this
	// interval, and an Adjuster chooses the interval of packets during the stream, at least Interval.
	// Such a plan has one segment with an Interval and bursts of one packet; the stream ends with its
	// duration or with its packets.
	Feedback time.Duration `json:"feedback_ns,omitempty"`
}

// Segment is a series of packets of one size: Bursts bursts of Burst packets back to back, one
// each Interval.
type Segment struct {
	// Pause is the time before the first packet.
	Pause time.Duration `json:"pause_ns,omitempty"`
	// PayloadBytes is the UDP payload of each packet; the least is the header of a test packet.
	PayloadBytes int `json:"payload_bytes"`
	// Interval is the time between the begins of bursts; with Burst 1, between packets. Zero: each
	// packet follows the previous one at once.
	Interval time.Duration `json:"interval_ns"`
	// Burst is the number of packets back to back, at least 1.
	Burst int `json:"burst"`
	// Bursts is the number of bursts, at least 1.
	Bursts int `json:"bursts"`
}

// Limits of a Plan. MaxPackets bounds the memory of a transfer: see CheckMemory.
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

// Packets returns the number of packets of the segment.
func (s Segment) Packets() int { return s.Burst * s.Bursts }

// Duration returns the planned time of the segment, its pause included.
func (s Segment) Duration() time.Duration {
	return s.Pause + time.Duration(s.Bursts)*s.Interval
}

// Packets returns the number of packets of the plan.
func (p Plan) Packets() (n int) {
	for _, s := range p.Segments {
		n += s.Packets()
	}
	return n
}

// Duration returns the planned time of the plan.
func (p Plan) Duration() (d time.Duration) {
	for _, s := range p.Segments {
		d += s.Duration()
	}
	return d
}

// Bytes returns the UDP payload of all packets.
func (p Plan) Bytes() (n int64) {
	for _, s := range p.Segments {
		n += int64(s.Packets()) * int64(s.PayloadBytes)
	}
	return n
}

// PeakRate returns the highest mean rate of a segment, in bytes of UDP payload per second; unpaced is
// true if a segment without intervals has an unknown rate.
func (p Plan) PeakRate() (bytesPerSecond float64, unpaced bool) {
	for _, s := range p.Segments {
		if s.Interval <= 0 {
			unpaced = unpaced || s.Packets() > 1
			continue
		}
		bytesPerSecond = max(bytesPerSecond, float64(s.Burst)*float64(s.PayloadBytes)/s.Interval.Seconds())
	}
	return bytesPerSecond, unpaced
}

// ErrPlan is wrapped by the errors of Check.
var ErrPlan = errors.New("stream: invalid plan")

// Check returns an error if the plan exceeds a limit; otherwise no sum of it overflows.
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
			return fmt.Errorf("%w: segment %d: the plan is longer than %v, or a time is negative", ErrPlan, i, MaxDuration)
		}
		left -= s.Duration()
		if packets += s.Packets(); packets > MaxPackets {
			return fmt.Errorf("%w: more than %d packets", ErrPlan, MaxPackets)
		}
	}
	return nil
}

// Memory of each packet of a transfer, in bytes: of the load server, with its records as they are sent; and of the client, which joins
// the records of both ends.
const (
	LoadServerMemory = 96
	ClientMemory     = 256
)

// CheckMemory returns an error if the plan's packets, with each so many bytes of memory, need more than a quarter of the memory limit of
// whose process (memlimit.Process; zero: none): the kernel would end it, with all its other measurements. A session may have a transfer
// of each direction.
func (p Plan) CheckMemory(each, limit int64, whose string) error {
	if n, most := p.Packets(), limit/4/each; limit > 0 && int64(n) > most {
		return fmt.Errorf("%w: %d packets; the memory limit of %s, %s, has space for %d: send larger packets, or for a shorter time, or raise it (GOMEMLIMIT, or the limit of its control group)", ErrPlan, n, whose, unit.Bytes.Format(float64(limit)), most)
	}
	return nil
}

func (p Plan) checkFeedback() error {
	switch {
	case p.Feedback < MinFeedback || p.Feedback > MaxFeedback:
		return fmt.Errorf("%w: feedback %v, want %v to %v", ErrPlan, p.Feedback, MinFeedback, MaxFeedback)
	case len(p.Segments) != 1 || p.Segments[0].Burst != 1 || p.Segments[0].Interval <= 0:
		return fmt.Errorf("%w: feedback requires one segment, with an interval and bursts of one packet", ErrPlan)
	case p.Unstamped:
		return fmt.Errorf("%w: feedback requires timestamps", ErrPlan)
	}
	return nil
}

// cursor iterates over the packets of a plan. Times are of the monotonic clock; within a segment they
// form a grid that late packets do not shift.
type cursor struct {
	plan    Plan
	segment int // of the next packet; len(plan.Segments): none
	burst   int
	packet  int // index in the burst
	// base is the begin of the segment, after its pause.
	base time.Duration
	// shift is the time that segments without intervals have taken beyond the plan.
	shift time.Duration
	// adjustRate is set for a plan with feedback, which ends at end at the latest.
	adjustRate *RateControl
	end        time.Duration
}

func newCursor(p Plan, begin time.Duration) cursor {
	return cursor{plan: p, base: begin + p.Segments[0].Pause}
}

func (c *cursor) done() bool { return c.segment == len(c.plan.Segments) }

// unpaced returns whether the next packet follows the previous one at once.
func (c *cursor) unpaced() bool { return c.plan.Segments[c.segment].Interval == 0 }

func (c *cursor) payloadBytes() int { return c.plan.Segments[c.segment].PayloadBytes }

// due returns the time of the next packet.
func (c *cursor) due() time.Duration {
	if c.adjustRate != nil {
		return c.base
	}
	return c.base + time.Duration(c.burst)*c.plan.Segments[c.segment].Interval
}

// advance moves to the next packet; now is the time. After a segment without intervals the pause of
// the next begins at its real end, as the host determines how long it
// takes.
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
