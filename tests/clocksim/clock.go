package clocksim

import (
	"math"
	"math/rand/v2"
	"time"
)

// Clock is the pair of clocks of one Linux host. All moments that its methods take
// are true time since the simulation's start, and must not go back.
type Clock struct {
	oscillator Oscillator
	random     *rand.Rand
	at         time.Duration // up to which drift is integrated
	rate       float64       // of the oscillator, this second
	drift      float64       // seconds that oscillator and kernel have made of the clock
	stepped    time.Duration // sum of all steps
	slowed     float64       // by what ratio the kernel slows the clock
}

// NewClock returns a clock that is ahead of the truth by offset.
func NewClock(o Oscillator, offset time.Duration, random *rand.Rand) *Clock {
	c := &Clock{oscillator: o, random: random, stepped: offset}
	c.rate = c.oscillator.next(0, random)
	return c
}

// advance integrates up to a moment, second by second.
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

// Read returns CLOCK_REALTIME as time since the simulation's start, and
// CLOCK_MONOTONIC: the same but for the steps.
func (c *Clock) Read(at time.Duration) (wall, mono time.Duration) {
	c.advance(at)
	mono = at + time.Duration(math.Round(c.drift*1e9))
	return mono + c.stepped, mono
}

// Offset is how far the clock is ahead of the truth, in seconds.
func (c *Clock) Offset(at time.Duration) float64 {
	c.advance(at)
	return c.drift + c.stepped.Seconds()
}

// Step sets CLOCK_REALTIME forward by d, or back.
func (c *Clock) Step(d time.Duration) { c.stepped += d }

// slow sets by what ratio the kernel slows the clock from a moment on.
func (c *Clock) slow(at time.Duration, ratio float64) {
	c.advance(at)
	c.slowed = ratio
}

// seconds is CLOCK_REALTIME as chronyd calculates with it.
func (c *Clock) seconds(at time.Duration) float64 { return at.Seconds() + c.Offset(at) }
