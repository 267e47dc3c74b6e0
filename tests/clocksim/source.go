package clocksim

import (
	"math/rand/v2"
	"time"
)

// Source is the time source of a Chronyd: an *NTP or a *Pulse.
type Source interface {
	// poll is the interval of chronyd's estimates, as a power of two of seconds.
	poll() int
	// next is the time of the measurement after at; n counts the earlier ones.
	next(at time.Duration, n int) time.Duration
	// measure is the sample at the time at of a clock that is ahead by the given offset; ok is false if there is none.
	measure(at time.Duration, fast, skew float64, random *rand.Rand) (s sample, ok bool)
	// filtered reports whether samples pass through the filter.
	filtered() bool
}

// readingError is the precision of chronyd's own clock readings (2^-23 s).
const readingError = 119e-9

// NTP is a server behind a path with two delays.
type NTP struct {
	// Poll is minpoll and maxpoll; the first four polls are 2 s apart (iburst).
	Poll int
	// Forward and Back are the smallest delays of the path; each packet has Jitter more, on average (exponentially
	// distributed).
	Forward, Back, Jitter time.Duration
	// RootDelay and RootDispersion, in seconds, are the server's own.
	RootDelay, RootDispersion float64
	// Bias is the server's true error in seconds, positive: it is ahead; nil: none. A correct server keeps it below
	// RootDispersion + RootDelay/2.
	Bias func(at time.Duration) float64
	// Lost reports when the server does not reply; nil: never.
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
	// Poll is the interval of the filter in seconds, as a power of two.
	Poll int
	// Latency is the time from the pulse to its timestamp, Jitter its average addition (exponentially distributed).
	Latency, Jitter time.Duration
	// Delay and Precision, in seconds, are those of the configuration: correct ones satisfy Delay/2 + Precision >=
	// latency.
	Delay, Precision float64
	// Bias is added to the latency, in seconds; nil: none.
	Bias func(at time.Duration) float64
	// Lost reports when there is no pulse; nil: never.
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
