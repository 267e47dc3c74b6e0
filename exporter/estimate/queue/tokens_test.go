package queue

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// gilbert drops packets in bursts of a mean length, share of all (Gilbert 1960).
func gilbert(share, length float64) func(time.Duration, int, *rand.Rand) bool {
	dropping := false
	return func(_ time.Duration, _ int, rng *rand.Rand) bool {
		if dropping {
			dropping = rng.Float64() >= 1/length
		} else {
			dropping = rng.Float64() < share/(1-share)/length
		}
		return !dropping
	}
}

// A policer is not told as random loss, nor random loss as a policer: what cannot be told is unknown.
func TestPolicersAndRandomLossAreNotConfused(t *testing.T) {
	type admit = func(time.Duration, int, *rand.Rand) bool
	const rate, size = 2e6, 1000
	// A bucket of two packets loses tokens while the sender is late; and where as many losses are random as a policer's, so is the result.
	hard := map[string]bool{"policer, late sender": true, "policer, losses behind it": true}
	told := map[string]map[State]int{}
	try := func(kind, name string, w simulation, admit func() admit, seed uint64, wrong State) {
		dropped, drops := 0, admit()
		w.admit = func(at time.Duration, waiting int, rng *rand.Rand) bool {
			ok := drops(at, waiting, rng)
			if !ok {
				dropped++
			}
			return ok
		}
		packets := w.simulate(seed)
		if dropped < 2*minLosses { // a large bucket that was hardly emptied
			return
		}
		got := Analyze(packets, options(w))
		if told[kind] == nil {
			told[kind] = map[State]int{}
		}
		told[kind][got.State]++
		if got.State == wrong && !hard[kind] {
			t.Errorf("%s, %s, seed %d: %s: %s", kind, name, seed, got.State, got.Evidence)
		}
	}
	base := profile(rate, rate, 0, 10*ms, ms)
	base.noQueue, base.size, base.length = true, size, 8*time.Second
	for seed := range uint64(*quota / 6000) {
		for _, times := range []float64{1.02, 1.05, 1.2, 1.5, 2, 5} {
			for _, bytes := range []int{2_000, 15_000, 100_000} {
				for kind, edit := range map[string]func(*simulation){
					"policer":                             func(*simulation) {},
					"policer, packets sent in bursts":     func(w *simulation) { w.burst = 4 },
					"policer, late sender":                func(w *simulation) { w.late = 2 * ms },
					"policer, jitter before it":           func(w *simulation) { w.holds = 0.05 },
					"policer, losses behind it":           func(w *simulation) { w.loss = 0.02 },
					"policer, a sender that stands still": func(w *simulation) { w.stalls = []time.Duration{time.Second, 4 * time.Second} },
				} {
					w := base
					w.offered = rate * times
					edit(&w)
					try(kind, fmt.Sprintf("%.2f times its rate, burst %d", times, bytes), w, func() admit { return bucket(rate, bytes, size) }, seed, NotFilled)
				}
			}
		}
		for _, share := range []float64{0.005, 0.02, 0.1, 0.3, 0.45, 0.6, 0.8} {
			for kind, make := range map[string]func() admit{
				"random":         func() admit { return gilbert(share, 1/(1-share)) },
				"random, bursts": func() admit { return gilbert(share, 10) },
			} {
				try(kind, fmt.Sprintf("%.3f lost", share), base, make, seed, Policer)
				w := base
				w.burst = 4
				try(kind+", packets sent in bursts", fmt.Sprintf("%.3f lost", share), w, make, seed, Policer)
			}
		}
	}
	for kind, states := range told {
		t.Logf("%-36s %v", kind, states)
	}
	for kind, states := range told {
		all := 0
		for _, n := range states {
			all += n
		}
		switch {
		case hard[kind] && 6*states[NotFilled] > all, kind == "policer" && states[Policer] < all, kind == "random" && 10*states[NotFilled] < 9*all:
			t.Errorf("%s: %v of %d", kind, states, all)
		}
	}
}
