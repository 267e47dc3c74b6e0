package clocksim

import (
	"math/rand/v2"
	"time"
)

// Source is what a Chronyd follows: an *NTP or a *Pulse.
type Source interface {
	// poll is how often chronyd takes a new estimate, as a power of two of seconds.
	poll() int
	// next is when the source is asked, or speaks, after at; n counts the times before.
	next(at time.Duration, n int) time.Duration
	// measure is the sample taken at the moment at by a clock that is fast by the
	// given offset; ok is false if there is none.
	measure(at time.Duration, fast, skew float64, random *rand.Rand) (s sample, ok bool)
	// filtered says that samples go through the filter.
	filtered() bool
}

// readingError is the precision of chronyd's own clock readings (2^-23 s).
const readingError = 119e-9

// NTP is a server behind a path of two delays.
type NTP struct {
	// Poll is minpoll and maxpoll; the first four polls are 2 s apart (iburst).
	Poll int
	// Forward and Back are the least delays of the path; each packet waits Jitter
	// more, on average (exponentially distributed).
	Forward, Back, Jitter time.Duration
	// RootDelay and RootDispersion, in seconds, are the server's own.
	RootDelay, RootDispersion float64
	// Bias is the server's true error in seconds, positive: it is fast; nil: none.
	// An honest server keeps it below RootDispersion + RootDelay/2.
	Bias func(at time.Duration) float64
	// Lost says when the server does not answer; nil: never.
	Lost func(at time.Duration) bool
}

func (n *NTP) poll() int      { return n.Poll }
func (n *NTP) filtered() bool { return false }

func (n *NTP) next(at time.Duration, count int) time.Duration {
	if count < 4 {
		return at + 2*time.Second
	}
	return at + time.Second<<n.Poll
}

func (n *NTP) measure(at time.Duration, fast, skew float64, random *rand.Rand) (sample, bool) {
	if n.Lost != nil && n.Lost(at) {
		return sample{}, false
	}
	wait := func(least time.Duration) float64 {
		return least.Seconds() + n.Jitter.Seconds()*random.ExpFloat64()
	}
	forward, back := wait(n.Forward), wait(n.Back)
	precision := 2 * readingError
	delay := max(precision, forward+back)
	dispersion := precision + min(worstRate, skew)*delay
	return sample{
		offset:    fast - value(n.Bias, at) - (forward-back)/2 + readingError*random.NormFloat64(),
		peerDelay: delay, peerDispersion: dispersion,
		rootDelay: n.RootDelay + delay, rootDispersion: n.RootDispersion + dispersion,
	}, true
}

// Pulse is a receiver's pulse per second, its seconds numbered by NMEA:
//
//	refclock PPS /dev/pps0 lock NMEA poll POLL delay DELAY precision PRECISION
type Pulse struct {
	// Poll is after how many seconds (a power of two) the filter is read.
	Poll int
	// Latency is from the pulse to its stamp, Jitter what is added to it, on average
	// (exponentially distributed).
	Latency, Jitter time.Duration
	// Delay and Precision, in seconds, are the configuration's words for it: an honest
	// configuration has Delay/2 + Precision cover the latency.
	Delay, Precision float64
	// Bias is added to the latency, in seconds; nil: none.
	Bias func(at time.Duration) float64
	// Lost says when there is no pulse; nil: never.
	Lost func(at time.Duration) bool
}

func (p *Pulse) poll() int      { return p.Poll }
func (p *Pulse) filtered() bool { return true }

func (p *Pulse) next(at time.Duration, _ int) time.Duration {
	return at.Truncate(time.Second) + time.Second
}

func (p *Pulse) measure(at time.Duration, fast, _ float64, random *rand.Rand) (sample, bool) {
	if p.Lost != nil && p.Lost(at) {
		return sample{}, false
	}
	late := p.Latency.Seconds() + value(p.Bias, at) + p.Jitter.Seconds()*random.ExpFloat64()
	return sample{
		offset:    fast + late + readingError*random.NormFloat64(),
		peerDelay: p.Delay, peerDispersion: readingError + p.Precision,
		rootDelay: p.Delay, rootDispersion: readingError + p.Precision,
	}, true
}

func value(f func(time.Duration) float64, at time.Duration) float64 {
	if f == nil {
		return 0
	}
	return f(at)
}
