package bottleneck

import (
	"math"
	"math/rand/v2"
	"time"
)

// Cellular makes a trace with the properties of a recorded cellular link: the rate is a Brownian motion, opportunities
// are random at that rate, and there are outages (the model of Winstein, Sivaraman and Balakrishnan, NSDI 2013, section
// 3.1). The mean is approximately the given one, in bit/s.
func Cellular(seed uint64, mean float64, length time.Duration) []uint32 {
	rng := rand.New(rand.NewPCG(seed, 0x63656c6c))
	const step = 20 // ms
	most := 2.5 * mean / 8 / Opportunity / 1000
	rate := most * (0.2 + 0.6*rng.Float64())
	outage := 0.0
	var trace []uint32
	for at := 0; at < int(length.Milliseconds()); at += step {
		rate += most * 0.06 * rng.NormFloat64()
		// The rate is reflected at its limits; an outage of 0.5 s on average occurs about every 20 s.
		if rate = math.Abs(rate); rate > most {
			rate = 2*most - rate
		}
		if outage -= step; outage <= 0 && rng.Float64() < step/20_000.0 {
			outage = rng.ExpFloat64() * 500
		}
		if outage > 0 {
			continue
		}
		for t := rng.ExpFloat64() / max(rate, 1e-6); t < step; t += rng.ExpFloat64() / max(rate, 1e-6) {
			trace = append(trace, uint32(at+int(t)))
		}
	}
	return append(trace, uint32(length.Milliseconds()))
}
