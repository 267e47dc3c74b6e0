package traffic

import (
	"testing"
	"time"
)

func TestReplyToAHelloShowsHowLongAQueueHoldsBack(t *testing.T) {
	begin := time.Unix(1_800_000_000, 0)
	at := func(d time.Duration) time.Time { return begin.Add(d) }
	const s = time.Second
	var h QueueDelay
	for _, c := range []struct {
		now, due, answered, want time.Duration
		ask                      bool
	}{
		{10 * s, 10 * s, 5 * s, 0, false},
		{12 * s, 10 * s, 5 * s, 0, true},
		{13 * s, 10 * s, 5 * s, 1 * s, false},
		{14 * s, 10 * s, 5 * s, 2 * s, true},   // the first may be lost
		{32 * s, 31 * s, 5 * s, 20 * s, false}, // no reply yet, and another message is due
		{33 * s, 31 * s, 33 * s, 21 * s, true},
		{34 * s, 31 * s, 34 * s, 21 * s, false}, // the reply to an earlier one
		{36 * s, 35 * s, 34 * s, 21 * s, false},
		{60 * s, 59 * s, 34 * s, 21 * s, false},
		{90 * s, 80 * s, 34 * s, 21 * s, true},
		{112 * s, 80 * s, 34 * s, 22 * s, true},
		{180 * s, 80 * s, 34 * s, 30 * s, true}, // the path drops them
	} {
		if got, ask := h.Observe(at(c.now), at(c.due), at(c.answered), 3*s/2); got != c.want || ask != c.ask {
			t.Errorf("%v, due since %v, last reply at %v: %v, ask %v; want %v, %v", c.now, c.due, c.answered, got, ask, c.want, c.ask)
		}
	}
}
