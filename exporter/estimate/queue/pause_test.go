package queue

import (
	"math"
	"testing"
	"time"
)

// TestSenderThatPausesUntilTheQueueIsEmptyHarmsNothing: the link stands idle then, which says
// nothing of its rate, nor of a queue that it had.
func TestSenderThatPausesUntilTheQueueIsEmptyHarmsNothing(t *testing.T) {
	const rate, limit = 2.5e6, 110_000 // 352 ms
	for _, pause := range []time.Duration{300 * time.Millisecond, 450 * time.Millisecond, 1500 * time.Millisecond} {
		t.Run(pause.String(), func(t *testing.T) {
			w := profile(rate, 2*rate, limit, 30*time.Millisecond, 0)
			w.length = 14 * time.Second
			for at := 6 * time.Second; at < 6*time.Second+pause; at += 50 * time.Millisecond {
				w.stalls = append(w.stalls, at)
			}
			for seed := range uint64(5) {
				r := Analyse(w.simulate(seed), Options{Load: 1, Skip: 4 * time.Second, StampError: 25 * time.Microsecond})
				if r.State != Filled {
					t.Errorf("seed %d: %v: %s", seed, r.State, r.Evidence)
				}
				if r.Rate.OK && math.Abs(r.Rate.Value-rate/8) > r.Rate.Bound+1 {
					t.Errorf("seed %d: rate %.0f ± %.0f, true %.0f", seed, r.Rate.Value, r.Rate.Bound, rate/8)
				}
				if r.Size.OK && (r.Size.Value+r.Size.Bound < limit-1410 || r.Size.Value-r.Size.Bound > limit) {
					t.Errorf("seed %d: size %.0f ± %.0f, true %d", seed, r.Size.Value, r.Size.Bound, limit)
				}
				if least := duration((limit - 3*1410) / (rate / 8)); r.Delay.OK && r.Delay.Value < least {
					t.Errorf("seed %d: queue's delay %v ± %v, true %v at the least", seed, r.Delay.Value, r.Delay.Bound, least)
				}
			}
		})
	}
}
