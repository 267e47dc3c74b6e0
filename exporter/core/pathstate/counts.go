package pathstate

import "time"

// Way is what is known of one direction. Counts are totals of the session. They may wrap around, since only changes matter.
type Way struct {
	// LossKnown: losses of the direction are told apart from losses of the other one.
	LossKnown bool
	// Received, Lost and Undecided are packets by their outcome; an undecided one may have been lost.
	Received, Lost, Undecided uint32
	// Dropped are packets that the receiving host dropped: no losses of the path.
	Dropped uint32
	// Delays are the packets that arrived. Of these Slow had a delay that is certainly above the limits, and MaybeSlow a delay with a valid
	// bound that may be; Unbounded had no delay with a valid bound.
	Delays, Slow, MaybeSlow, Unbounded uint32
	// Why is why delays have no valid bound.
	Why Reason
}

// Facts are what a light probe has measured.
type Facts struct {
	// NotRunning: the probe failed and will be tried again; the other facts are unknown.
	NotRunning bool
	// OtherHost: the peer has the address of another host.
	OtherHost bool
	// Decided: enough time has passed to know whether replies arrive; Replies: they do; Silence is why they do not.
	Decided, Replies bool
	Silence          Reason
	// Measured: a window of packets has ended.
	Measured bool
	// Session changes when the totals begin anew.
	Session uint64
	// Answered and Unanswered are the round trips.
	Answered, Unanswered uint32
	// Ways are by sample.Direction.
	Ways [2]Way
	// Clockless: delays are not measured, by the configuration. ClockWrong: delays prove that a clock is wrong.
	Clockless, ClockWrong bool
	// MinimumWrong: the configured minimum of the delays contradicts them.
	MinimumWrong bool
	// Interval is the mean time between packets.
	Interval time.Duration
	// MaxLoss is the largest ratio of lost packets that is no fault, 0..1.
	MaxLoss float64
}

// The counts of a direction, and after both directions the counts of round trips.
const (
	received = iota
	lost
	undecided
	dropped
	delays
	slow
	maybeSlow
	unbounded
	ofWay

	answered   = 2 * ofWay
	unanswered = answered + 1
	countsSize = unanswered + 1
)

// totals are the counts of a session, changes the counts of a time. A change may be negative: a packet that counted as received may be lost.
type (
	totals  [countsSize]uint32
	changes [countsSize]int32
)

func (f *Facts) totals() (t totals) {
	for i := range f.Ways {
		w := &f.Ways[i]
		copy(t[i*ofWay:], []uint32{
			received: w.Received, lost: w.Lost, undecided: w.Undecided, dropped: w.Dropped,
			delays: w.Delays, slow: w.Slow, maybeSlow: w.MaybeSlow, unbounded: w.Unbounded,
		})
	}
	t[answered], t[unanswered] = f.Answered, f.Unanswered
	return t
}

// times is the number of parts of a time that are kept, the present one included: counts are of the last parts-1 to parts.
const times = 11

// window counts packets of the last time, in parts.
type window struct {
	parts [times]changes
	// part is the number of the present part since the begin.
	part int64
}

// move forgets what is older than the window, which is long at a time.
func (w *window) move(at, long time.Duration) {
	part := int64(at / (long / (times - 1)))
	for n := max(w.part+1, part-times+1); n <= part; n++ {
		w.parts[n%times] = changes{}
	}
	w.part = max(part, w.part)
}

func (w *window) add(c *changes) {
	p := &w.parts[w.part%times]
	for i, n := range c {
		p[i] += n
	}
}

// sum is the counts of the window; none is below zero.
func (w *window) sum() (s [countsSize]float64) {
	for i := range w.parts {
		for k, n := range w.parts[i] {
			s[k] += float64(n)
		}
	}
	for k := range s {
		s[k] = max(s[k], 0)
	}
	return s
}
