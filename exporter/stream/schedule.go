package stream

import "time"

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
	// steer is of a plan with feedback, which ends at end at the latest; nil: it has none.
	steer *Steering
	end   time.Duration
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
	if c.steer != nil {
		return c.base
	}
	return c.base + time.Duration(c.burst)*c.plan.Segments[c.segment].Interval
}

// advance passes the next packet; now is the time. The segment after one without
// intervals begins its pause when that is over, not when it was planned to be: how long
// it takes is the host's affair.
func (c *cursor) advance(now time.Duration) {
	s := c.plan.Segments[c.segment]
	if c.steer != nil {
		c.base += c.steer.Interval(now)
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
