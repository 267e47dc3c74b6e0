package history

import (
	"math"
	"math/rand/v2"
	"time"

	"oneway.example/exporter/core/localday"
)

// generator describes a history that is made: a level, effects that are known, and noise that is correlated between hours and between days.
type generator struct {
	days    int
	level   float64                                    // the median without effects
	effect  func(hour int, k localday.DayType) float64 // added to the level, relative to it
	drift   float64                                    // relative to the level, a month
	step    float64                                    // relative to the level
	stepAt  int                                        // hour of the history
	dayRho  float64                                    // correlation of neighboring days
	daySD   float64                                    // of the level of days, relative
	hourRho float64                                    // correlation of neighboring hours
	hourSD  float64                                    // relative
	tailed  bool                                       // Student's t with 3 degrees of freedom instead of normal
	outlier float64                                    // share of values that are many times larger
	gaps    float64                                    // share of hours without a sample; as many days have none
	each    time.Duration                              // between samples; 0: an hour
}

// monday is the begin of the made histories.
var monday = time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC)

// samples draws a history.
func (m generator) samples(rng *rand.Rand) []Sample {
	each := m.each
	if each == 0 {
		each = time.Hour
	}
	var all []Sample
	day := newCorrelated(rng, m.dayRho, m.daySD, m.tailed)
	hour := newCorrelated(rng, m.hourRho, m.hourSD, m.tailed)
	for d := range m.days {
		of, missing := day.next(), rng.Float64() < m.gaps
		for at := time.Duration(0); at < 24*time.Hour; at += each {
			since := time.Duration(d)*24*time.Hour + at
			s := At(monday.Add(since), 0)
			noise := of + hour.next()
			v := 1 + noise + m.drift*since.Hours()/24/Month
			if m.effect != nil {
				v += m.effect(s.Hour, s.Kind)
			}
			if m.step != 0 && int(since.Hours()) >= m.stepAt {
				v += m.step
			}
			if rng.Float64() < m.outlier {
				v += 1 + 5*rng.Float64()
			}
			s.Value = m.level * max(v, 0.1) // a delay is above 0
			if !missing && rng.Float64() >= m.gaps {
				all = append(all, s)
			}
		}
	}
	return all
}

// correlated is an autoregressive process of first order with a stationary deviation.
type correlated struct {
	rng           *rand.Rand
	rho, sd, last float64
	tailed        bool
}

func newCorrelated(rng *rand.Rand, rho, sd float64, tailed bool) *correlated {
	c := &correlated{rng: rng, rho: rho, sd: sd, tailed: tailed}
	for range 20 {
		c.next()
	}
	return c
}

func (c *correlated) next() float64 {
	e := c.rng.NormFloat64()
	if c.tailed { // t with 3 degrees of freedom, scaled to the deviation 1
		a, b, d := c.rng.NormFloat64(), c.rng.NormFloat64(), c.rng.NormFloat64()
		e /= math.Sqrt(a*a + b*b + d*d)
	}
	c.last = c.rho*c.last + math.Sqrt(1-c.rho*c.rho)*c.sd*e
	return c.last
}
