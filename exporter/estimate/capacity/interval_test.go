package capacity

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"oneway.example/tests/testseed"
)

// campaigns are links and the permitted result of a run over them: told (a capacity), refused, or either; a
// capacity must be within the interval.
func campaigns() map[string]struct {
	w       simulation
	packets int
	want    string
} {
	type c = struct {
		w       simulation
		packets int
		want    string
	}
	simulations := cleanSimulations()
	all := map[string]c{}
	for name, w := range simulations {
		if name == "gigabit" {
			all["gigabit, 25"] = c{w, 25, "either"}
			all["gigabit, 200"] = c{w, 200, "told"}
			continue
		}
		all[name] = c{w, 25, "told"}
	}
	add := func(name string, w simulation, packets int, want string, f func(*simulation)) {
		f(&w)
		all[name] = c{w, packets, want}
	}
	wibro, lan, evdo := simulations["wibro down"], simulations["lan"], simulations["evdo down"]
	for _, packets := range []int{5, 6, 7, 12} {
		add(fmt.Sprintf("wibro, %d packets", packets), wibro, packets, "told", func(*simulation) {})
		add(fmt.Sprintf("bucket of 2, %d packets", packets), wibro, packets, "refused", func(w *simulation) { w.bucket, w.line = 3500, 1e9 })
		add(fmt.Sprintf("GRO of 2, %d packets", packets), wibro, packets, "refused", func(w *simulation) { w.merge = 2 })
		add(fmt.Sprintf("slots of 5 ms, %d packets", packets), wibro, packets, "refused", func(w *simulation) { w.batch, w.batchGap = 5*ms, 20*us })
	}
	for _, slot := range []time.Duration{5 * ms, 10 * ms, 20 * ms} {
		add(fmt.Sprintf("slots of %v, wibro", slot), wibro, 25, "refused", func(w *simulation) { w.batch, w.batchGap = slot, 20*us })
		add(fmt.Sprintf("slots of %v, wibro, 200 packets", slot), wibro, 200, "either", func(w *simulation) { w.batch, w.batchGap = slot, 20*us })
		add(fmt.Sprintf("slots of %v, evdo", slot), evdo, 25, "either", func(w *simulation) { w.batch, w.batchGap = slot, 20*us })
	}
	for _, share := range []float64{0.01, 0.02, 0.03, 0.05, 0.1, 0.3, 0.6} {
		want := "either"
		if share >= 0.1 {
			want = "refused"
		}
		add(fmt.Sprintf("others with %v of the link", share), wibro, 25, want, func(w *simulation) { w.others, w.otherBytes = share, 1500 })
	}
	add("others with a tenth in small packets", wibro, 25, "refused", func(w *simulation) { w.others, w.otherBytes = 0.1, 200 })
	add("others with a third in small packets", wibro, 25, "refused", func(w *simulation) { w.others, w.otherBytes = 0.3, 200 })
	for _, moves := range []float64{0.01, 0.03, 0.1, 0.3, 1} {
		want := "either"
		if moves >= 0.1 {
			want = "refused"
		}
		add(fmt.Sprintf("rate that varies by %v from train to train", moves), wibro, 25, want, func(w *simulation) { w.moves = moves })
	}
	add("rate that varies like EVDO's", evdo, 25, "refused", func(w *simulation) { w.moves, w.varies = 0.5, 0.3 })
	add("interrupts of 50 us", simulations["gigabit"], 200, "either", func(w *simulation) { w.batch, w.batchGap, w.noise = 50*us, 600, 0 })
	add("interrupts of 100 us, lan", lan, 25, "either", func(w *simulation) { w.batch, w.batchGap, w.jitter = 100*us, 4*us, 0 })
	add("faster than the timestamps resolve", lan, 25, "refused", func(w *simulation) { w.rate, w.line, w.sendGap, w.jitter, w.noise = 40e9, 1e12, 10, 0, us })
	return all
}

// TestIntervalCoversTheLinksRateOrTheRunIsRefused: runs over the links above, of 30 trains, and of 8 and 4.
func TestIntervalCoversTheLinksRateOrTheRunIsRefused(t *testing.T) {
	const runs = 100
	seed := testseed.Of(t)
	told, missed := 0, 0
	for name, c := range campaigns() {
		for _, trains := range []int{30, 8, 4} {
			if trains == 4 && c.w.others > 0 && c.w.otherBytes < 1500 {
				continue // too few trains show it
			}
			rng := rand.New(rand.NewPCG(seed, uint64(trains)))
			ok, out, wide, why := 0, 0, 0.0, ""
			for range runs {
				var verdicts []Verdict
				for range trains {
					verdicts = append(verdicts, Evaluate(c.w.train(rng, c.packets, 1500), Options{StampError: 25 * us}))
				}
				s := Summarize(verdicts, trains/3)
				if !s.OK {
					why = s.Refusal
					continue
				}
				ok++
				if rate := c.w.rate / 8; rate < s.Low || rate > s.High {
					out++
				}
				wide += (s.High - s.Low) / 2 / s.Median
			}
			told, missed = told+ok, missed+out
			t.Logf("%-45s %2d trains: told %3d of %d, outside %d, half-width %.2f %%; %s", name, trains, ok, runs, out, 100*wide/float64(max(1, ok)), why)
			if c.want == "told" && ok < runs*95/100 || c.want == "refused" && trains > 4 && ok > runs*3/100 {
				t.Errorf("%s, %d trains, seed %d: %d of %d told, want %s", name, trains, seed, ok, runs, c.want)
			}
			if out > runs*4/100 {
				t.Errorf("%s, %d trains, seed %d: %d of %d outside of the interval", name, trains, seed, out, ok)
			}
		}
	}
	t.Logf("%d told, %d outside", told, missed)
	if float64(missed) > 0.01*float64(told) {
		t.Errorf("seed %d: %d of %d outside of the interval", seed, missed, told)
	}
}
