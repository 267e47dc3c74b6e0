package traffic

import (
	"testing"
	"time"
)

func TestTCPMayWaitAsLongAgainAsAnInterruption(t *testing.T) {
	begin := time.Unix(1_800_000_000, 0)
	at := func(d time.Duration) time.Time { return begin.Add(d) }
	const s = time.Second
	var r Recovery
	for _, c := range []struct{ now, quiet, want time.Duration }{
		{1 * s, s / 2, 0},
		{9 * s, 7 * s, 16 * s},
		{10 * s, 8 * s, 18 * s}, // since 2 s
		{11 * s, s / 2, 18 * s},
		{40 * s, s, 18 * s},
		{42 * s, 2 * s, 44 * s},
		{60 * s, 20 * s, 44 * s}, // the other part is gone: that tells nothing
	} {
		want := time.Time{}
		if c.want > 0 {
			want = at(c.want)
		}
		if got := r.Observe(at(c.now), c.quiet); !got.Equal(want) {
			t.Errorf("%v, quiet for %v: until %v, want %v", c.now, c.quiet, got.Sub(begin), c.want)
		}
	}
}
