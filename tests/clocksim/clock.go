package clocksim

import (
	"math"
	"math/rand/v2"
	"time"
)

// Clock is the pair of clocks of one Linux host. All times passed to its methods are true time since the simulation's
// start, and must not decrease.
type Clock struct {
	oscillator Oscillator
	random     *rand.Rand
	at         time.Duration // end of the integration of drift
	rate       float64       // of the oscillator, in the current second
	drift      float64       // integral of the rates of oscillator and kernel, in seconds
	stepped    time.Duration // sum of all steps
	slowed     float64       // ratio by which the kernel slows the clock
}

// NewClock returns a clock that is ahead of true time by offset.
func NewClock(o Oscillator, offset time.Duration, random *rand.Rand) *Clock {
	c := &Clock{oscillator: o, random: random, stepped: offset}
	c.rate = c.oscillator.next(0, random)
	return c
}

// advance integrates up to a time, second by second.
func (c *Clock) advance(to time.Duration) {
	for c.at < to {
		end := min(to, c.at.Truncate(tick)+tick)
		c.drift += (end - c.at).Seconds() * ((1+c.rate)*(1-c.slowed) - 1)
		c.at = end
		if c.at%tick == 0 {
			c.rate = c.oscillator.next(c.at, c.random)
		}
	}
}

// Read returns CLOCK_REALTIME as time since the simulation's start, and CLOCK_MONOTONIC: the same without the steps.
func (c *Clock) Read(at time.Duration) (wall, mono time.Duration) {
	c.advance(at)
	mono = at + time.Duration(math.Round(c.drift*1e9))
	return mono + c.stepped, mono
}

// Offset is the clock minus true time, in seconds.
func (c *Clock) Offset(at time.Duration) float64 {
	c.advance(at)
	return c.drift + c.stepped.Seconds()
}

// Step adds d to CLOCK_REALTIME.
func (c *Clock) Step(d time.Duration) { c.stepped += d }

// slow sets the ratio by which the kernel slows the clock from now on.
func (c *Clock) slow(at time.Duration, ratio float64) {
	c.advance(at)
	c.slowed = ratio
}

// seconds is CLOCK_REALTIME in the form of chronyd's calculations.
func (c *Clock) seconds(at time.Duration) float64 { return at.Seconds() + c.Offset(at) }
