package queue

import (
	"flag"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

const ms = time.Millisecond

// links are those of tests/lab/profiles, with twice their rate offered and less, and unusual ones.
func links() map[string]simulation {
	all := map[string]simulation{
		"wibro up, thesis":     profile(2.5e6, 5e6, 110_000, 30*ms, 0),
		"wibro down, thesis":   profile(10e6, 12e6, 1_100_000, 14*ms, 0),
		"evdo up":              profile(153e3, 250e3, 20_000, 100*ms, 20*ms),
		"evdo up, locked":      profile(153e3, 306e3, 20_000, 100*ms, 20*ms),
		"evdo up, dense idle":  profile(153e3, 250e3, 20_000, 100*ms, 20*ms),
		"evdo down":            profile(514e3, 700e3, 64_000, 80*ms, 14*ms),
		"wimax-calgary up":     profile(256e3, 400e3, 60_000, 60*ms, 0),
		"wimax-calgary down":   profile(1.5e6, 2e6, 40_000, 60*ms, 0),
		"wimax-calgary locked": profile(1.5e6, 3e6, 40_000, 60*ms, 0),
		"wifi":                 profile(4.3e6, 5e6, 64_000, 2*ms, 2*ms),
		"wifi, much":           profile(4.3e6, 12e6, 64_000, 2*ms, 2*ms),
		"lan":                  profile(100e6, 120e6, 256_000, 400*time.Microsecond, 100*time.Microsecond),
		"odd":                  profile(1.37e6, 2e6, 37_000, 61*ms, 5*ms),
		"odd, hardly more":     profile(1.37e6, 1.45e6, 37_000, 61*ms, 5*ms),
		"odd, loss":            profile(1.37e6, 2e6, 37_000, 61*ms, 5*ms),
		"odd, far offset":      profile(1.37e6, 2e6, 37_000, 61*ms, 5*ms),
		"odd, drift":           profile(1.37e6, 2e6, 37_000, 61*ms, 5*ms),
		"odd, stalls":          profile(1.37e6, 2e6, 37_000, 61*ms, 5*ms),
		"wibro stalls":         profile(2.5e6, 5e6, 110_000, 30*ms, 0),
		"wibro held":           profile(2.5e6, 5e6, 110_000, 30*ms, 0),
		"wibro bursts":         profile(10e6, 12e6, 110_000, 14*ms, 0),
		"slow to fill":         profile(10e6, 11e6, 1_100_000, 14*ms, 0),
	}
	edit := func(name string, f func(*simulation)) {
		w := all[name]
		f(&w)
		all[name] = w
	}
	for _, n := range []string{"wifi", "wifi, much"} {
		edit(n, func(w *simulation) { w.loss = 0.001 })
	}
	stalls := []time.Duration{2 * time.Second, 9 * time.Second, 13 * time.Second, 20 * time.Second}
	edit("odd, loss", func(w *simulation) { w.loss = 0.01 })
	edit("odd, far offset", func(w *simulation) { w.offset = -7 * time.Second })
	edit("odd, drift", func(w *simulation) { w.drift = 50e-6; w.offset = time.Hour })
	edit("odd, stalls", func(w *simulation) { w.stalls = stalls })
	edit("wibro stalls", func(w *simulation) { w.stalls = stalls })
	edit("wibro held", func(w *simulation) { w.holds = 0.05 })
	edit("evdo up, dense idle", func(w *simulation) { w.every = 40 * ms })
	edit("wibro bursts", func(w *simulation) { w.burst = 8 })
	edit("lan", func(w *simulation) { w.stalls = stalls; w.late = 5 * time.Microsecond; w.length = 12 * time.Second })
	for _, n := range []string{"wibro up, thesis", "wibro down, thesis", "evdo down", "wifi", "odd", "lan"} {
		w := all[n]
		w.randomStalls = true
		all[n+", random stalls"] = w
	}
	return all
}

func options(w simulation) Options {
	return Options{Load: 1, Drift: w.drift, StampError: 2 * time.Microsecond}
}

// quota is the number of simulated packets of each simulation; more seeds with -args -packets.
var quota = flag.Int("packets", 60_000, "packets to simulate for each world")

// seeds is the resulting number of runs: 5 to 1000.
func seeds(w simulation) uint64 {
	a := w.length.Seconds() * w.offered / 8 / float64(w.size)
	return uint64(min(max(float64(*quota)/a, 5), 1000))
}

// score counts correct runs and holds the largest errors.
type score struct {
	runs, right, contained int
	size, rate             float64
	idle                   time.Duration
}

func TestTailDropQueueIsMeasured(t *testing.T) {
	for name, w := range links() {
		t.Run(name, func(t *testing.T) {
			s := score{}
			for seed := range seeds(w) {
				s.add(t, seed, w, Analyze(w.simulate(seed), options(w)))
			}
			t.Logf("%d of %d filled, %d within their bounds; size within %.2f %%, rate within %.3f %%, idle within %v",
				s.right, s.runs, s.contained, 100*s.size, 100*s.rate, s.idle)
			if 100*s.right < 99*s.runs || 100*s.contained < 99*s.runs {
				t.Error("fewer than 99 of 100 are right")
			}
			if limit := max(0.05, 3*float64(w.size)/float64(w.queue)); s.size > limit || s.rate > 0.02 {
				t.Error("error above the limit")
			}
			// The smallest of n delays with a uniform jitter: see Idle.Bound.
			if limit := 300 * time.Microsecond; w.jitter <= 2*ms && s.idle > limit {
				t.Errorf("idle off by more than %v", limit)
			}
		})
	}
}

func (s *score) add(t *testing.T, seed uint64, w simulation, r Result) {
	t.Helper()
	s.runs++
	if r.State == Filled {
		s.right++
	} else if s.runs-s.right < 4 {
		t.Logf("seed %d: %v: %s", seed, r.State, r.Evidence)
	}
	if !r.Size.OK {
		return
	}
	idle := r.Idle.Value - w.delay - w.offset
	off := r.Size.Value - float64(w.queue)
	delay := math.Abs(seconds(r.Delay[1].Value)*w.rate/8 - float64(w.queue))
	switch limit := seconds(r.Delay[1].Bound)*w.rate/8 + (1.5+float64(w.burst))*float64(w.size); {
	case math.Abs(off) > r.Size.Bound:
		t.Logf("seed %d: size %+v, want %d", seed, r.Size, w.queue)
	case idle.Abs() > r.Idle.Bound+duration(w.drift*3):
		t.Logf("seed %d: idle %+v off by %v", seed, r.Idle, idle)
	case delay > limit:
		t.Logf("seed %d: delay %+v off by %v bytes, limit %v", seed, r.Delay, delay, limit)
	default:
		s.contained++
	}
	s.size = max(s.size, math.Abs(off)/float64(w.queue))
	s.rate = max(s.rate, math.Abs(r.Rate.Value*8/w.rate-1))
	s.idle = max(s.idle, idle.Abs())
}

// others are simulations without a full tail-drop queue.
func others() map[string]struct {
	w    simulation
	make func(*simulation) // new state for each run
	want State
} {
	wibro := profile(2.5e6, 5e6, 110_000, 30*ms, 0)
	odd := profile(1.37e6, 2e6, 37_000, 61*ms, 5*ms)
	wifi := profile(4.3e6, 8e6, 640_000, 2*ms, 2*ms)
	type c = struct {
		w    simulation
		make func(*simulation)
		want State
	}
	none := func(*simulation) {}
	with := func(w simulation, f func(*simulation)) simulation { f(&w); return w }
	return map[string]c{
		"never filled":          {with(wibro, func(w *simulation) { w.offered = 2e6 }), none, NotFilled},
		"never filled, jitter":  {with(odd, func(w *simulation) { w.offered = 1.3e6 }), none, NotFilled},
		"never filled, loss":    {with(odd, func(w *simulation) { w.offered = 1.2e6; w.loss = 0.03 }), none, NotFilled},
		"never filled, 0.1 %":   {with(wifi, func(w *simulation) { w.offered = 4e6; w.loss = 0.001 }), none, NotFilled},
		"still growing":         {with(wibro, func(w *simulation) { w.offered = 2.6e6; w.queue = 1_000_000 }), none, NotFilled},
		"still growing, loss":   {with(wifi, func(w *simulation) { w.offered = 4.6e6; w.queue = 10_000_000; w.loss = 0.001 }), none, NotFilled},
		"policer":               {with(wibro, func(w *simulation) { w.noQueue = true }), func(w *simulation) { w.admit = bucket(2.5e6, 15_000, w.size) }, Policer},
		"policer, little":       {with(wibro, func(w *simulation) { w.noQueue = true; w.offered = 2.6e6 }), func(w *simulation) { w.admit = bucket(2.5e6, 15_000, w.size) }, Policer},
		"policer, large bucket": {with(odd, func(w *simulation) { w.noQueue = true }), func(w *simulation) { w.admit = bucket(1.37e6, 500_000, w.size) }, Policer},
		"policer before a link": {with(wibro, func(w *simulation) { w.rate = 20e6 }), func(w *simulation) { w.admit = bucket(2.5e6, 15_000, w.size) }, Policer},
		"red":                   {with(wibro, func(w *simulation) { w.offered = 3e6 }), func(w *simulation) { w.admit = red(15_000, 60_000) }, AQM},
		"red, twice the rate":   {with(wibro, func(w *simulation) {}), func(w *simulation) { w.admit = red(15_000, 40_000) }, AQM},
		"red, fast":             {with(wifi, func(w *simulation) { w.rate = 10e6; w.offered = 12e6 }), func(w *simulation) { w.admit = red(50_000, 200_000) }, AQM},
		"codel":                 {with(wibro, func(w *simulation) { w.offered = 3e6 }), func(w *simulation) { w.dequeue = codel(w.size) }, AQM},
		"codel, fast":           {with(wifi, func(w *simulation) { w.rate = 10e6; w.offered = 12e6 }), func(w *simulation) { w.dequeue = codel(w.size) }, AQM},
		"codel, jitter":         {with(odd, func(w *simulation) { w.queue = 200_000; w.offered = 1.6e6 }), func(w *simulation) { w.dequeue = codel(w.size) }, AQM},
		"codel, light":          {with(odd, func(w *simulation) { w.queue = 200_000; w.offered = 1.5e6 }), func(w *simulation) { w.dequeue = codel(w.size) }, AQM},
		"codel, locked":         {with(wibro, func(w *simulation) { w.queue = 1_000_000; w.length = 60 * time.Second }), func(w *simulation) { w.dequeue = codel(w.size) }, AQM},
		"red, slow":             {with(odd, func(w *simulation) { w.rate = 514e3; w.queue = 200_000; w.offered = 700e3 }), func(w *simulation) { w.admit = red(10_000, 30_000) }, AQM},
		"pie":                   {with(wibro, func(w *simulation) {}), func(w *simulation) { w.admit = pie(w.rate, w.size) }, AQM},
		"pie, fast":             {with(wibro, func(w *simulation) { w.rate = 10e6; w.offered = 15e6; w.queue = 1_250_000; w.length = 20 * time.Second }), func(w *simulation) { w.admit = pie(w.rate, w.size) }, AQM},
		"pie, slow": {with(wibro, func(w *simulation) {
			w.rate = 1e6
			w.offered = 1.5e6
			w.length = 20 * time.Second
			w.size = 1000
			w.jitter = 5 * ms
		}), func(w *simulation) { w.admit = pie(w.rate, w.size) }, AQM},
		"rate halves":             {wibro, func(w *simulation) { w.rateAt = steps(2.5e6, 1.25e6, 15*time.Second) }, Filled},
		"rate doubles":            {with(wibro, func(w *simulation) { w.offered = 6e6 }), func(w *simulation) { w.rateAt = steps(2.5e6, 5e6, 12*time.Second) }, Filled},
		"rate grows by a tenth":   {odd, func(w *simulation) { w.rateAt = steps(1.37e6, 1.51e6, 17*time.Second) }, Filled},
		"rate grows past offered": {wibro, func(w *simulation) { w.rateAt = steps(2.5e6, 8e6, 12*time.Second) }, Filled},
		"rate dips": {wibro, func(w *simulation) {
			w.rateAt = func(t time.Duration) float64 {
				if t > 10*time.Second && t < 14*time.Second {
					return 1e6
				}
				return 2.5e6
			}
		}, Filled},
		"rate varies":        {wibro, func(w *simulation) { w.rateAt = varies(2.5e6, 0.3) }, Filled},
		"rate hardly varies": {wibro, func(w *simulation) { w.rateAt = varies(2.5e6, 0.02) }, Filled},
		"rate fades": {wibro, func(w *simulation) {
			w.rateAt = func(t time.Duration) float64 { return 2.5e6 * (1 - 0.5*seconds(t)/30) }
		}, Filled},
	}
}

// varies is a rate that changes randomly, by up to the ratio, every half second.
func varies(rate, by float64) func(time.Duration) float64 {
	rng := rand.New(rand.NewPCG(1, 2))
	rates := make([]float64, 1000)
	for i := range rates {
		rates[i] = rate * (1 + by*(2*rng.Float64()-1))
	}
	return func(t time.Duration) float64 { return rates[max(t, 0)/(500*ms)] }
}

func steps(before, after float64, at time.Duration) func(time.Duration) float64 {
	return func(t time.Duration) float64 {
		if t < at {
			return before
		}
		return after
	}
}

func TestVerdictsMatchTheCases(t *testing.T) {
	for name, c := range others() {
		t.Run(name, func(t *testing.T) {
			runs, right := 0, 0
			for seed := range seeds(c.w) {
				w := c.w
				c.make(&w)
				r := Analyze(w.simulate(seed), options(w))
				// With a jitter of several packets' time, cross traffic cannot be excluded.
				if runs++; r.State == c.want || r.State == Unknown && c.want == AQM && w.jitter > 0 {
					right++
				} else if runs-right < 4 {
					t.Logf("seed %d: %v: %s", seed, r.State, r.Evidence)
				}
				if seed == 0 {
					t.Logf("%v: %s", r.State, r.Evidence)
				}
				if hasSize := r.State == Filled; r.Size.OK && !hasSize {
					t.Errorf("seed %d: %v, and a size: %+v", seed, r.State, r.Size)
				}
				if off := r.Size.Value/float64(w.queue) - 1; r.Size.OK && math.Abs(off) > 0.05 {
					t.Errorf("seed %d: %v, and a size off by %.1f %%: %+v", seed, r.State, 100*off, r.Size)
				}
			}
			t.Logf("%d of %d are %v", right, runs, c.want)
			if 100*right < 99*runs {
				t.Error("fewer than 99 of 100 are right")
			}
		})
	}
}
