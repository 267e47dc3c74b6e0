package traffic

import "time"

// QueueDelay is how long the path holds packets back, as replies to hello packets show that are sent while a message is due: a long queue may
// hold back the message as well. The zero value knows nothing.
type QueueDelay struct {
	first, last time.Time // hello packets since the last reply; zero: none
	longest     time.Duration
}

// longestHeld is the longest round trip that is waited for.
const longestHeld = 30 * time.Second

// Observe returns the longest round trip of hello packets, and whether one is to be sent now: every so often. Before a reply the round
// trip is the wait for it so far. answered is when the last reply came, which may be to an earlier one.
func (h *QueueDelay) Observe(now, due, answered time.Time, every time.Duration) (roundTrip time.Duration, ask bool) {
	if answered.After(h.first) && !h.first.IsZero() {
		h.longest = max(h.longest, answered.Sub(h.first))
		h.first = time.Time{}
	}
	if ask = now.Sub(due) > every && now.Sub(h.last) > every; ask { // one may be lost, and more would fill a slow link
		if h.last = now; h.first.IsZero() {
			h.first = now
		}
	}
	if roundTrip = h.longest; !h.first.IsZero() {
		roundTrip = max(roundTrip, now.Sub(h.first))
	}
	return min(roundTrip, longestHeld), ask
}

// ControlTimeout returns the timeout of a message through a queue that holds packets back for a round trip: it and what is sent again wait there.
func ControlTimeout(limit, roundTrip time.Duration) time.Duration { return limit + 2*roundTrip }
