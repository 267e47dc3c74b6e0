package clocksim

import (
	"math"
	"math/rand/v2"
	"time"
)

// Oscillator is a host's oscillator. Rates are ratios: 50e-6 gains 50 us a second without correction. The zero value is
// perfect.
type Oscillator struct {
	// Rate is the constant part.
	Rate float64
	// Walk is the step of the random walk of the rate, the standard deviation of its change in one second. A computer's
	// quartz has about 1e-10.
	Walk float64
	// Day and Space are the amplitudes of two temperature cycles: of a day, and of a room whose heating switches every
	// 20 minutes.
	Day, Space float64
	// Ramps are further changes of temperature.
	Ramps []Ramp

	walked float64
}

// Ramp changes the rate permanently by Change, evenly from From on during Over (zero: at once).
type Ramp struct {
	From, Over time.Duration
	Change     float64
}

const spaceCycle = 20 * time.Minute

// tick is the interval of rate changes.
const tick = time.Second

// next is the rate of the second that starts at the given time.
func (o *Oscillator) next(at time.Duration, random *rand.Rand) float64 {
	if o.Walk > 0 {
		o.walked += o.Walk * random.NormFloat64()
	}
	cycle := func(amplitude float64, period time.Duration) float64 {
		return amplitude * math.Sin(2*math.Pi*at.Seconds()/period.Seconds())
	}
	rate := o.Rate + o.walked + cycle(o.Day, 24*time.Hour) + cycle(o.Space, spaceCycle)
	for _, r := range o.Ramps {
		switch {
		case at < r.From:
		case at >= r.From+r.Over:
			rate += r.Change
		default:
			rate += r.Change * float64(at-r.From) / float64(r.Over)
		}
	}
	return rate
}
