package clocksim

import (
	"math"
	"math/rand/v2"
	"time"
)

// Config is the part of chrony.conf(5) that is simulated. The zero value has its defaults.
type Config struct {
	// Source is the time source; nil: none, so that the clock is never synchronized.
	Source Source
	// MakeStep steps the clock if an offset above it, in seconds, occurs in the first StepLimit updates; zero: never.
	MakeStep  float64
	StepLimit int
	// DriftFrequency and DriftSkew are the drift file's, as ratios; a skew of zero: there is no such file, and the
	// kernel's frequency is used.
	DriftFrequency, DriftSkew float64
}

// The defaults of chrony.conf(5), and the limits of a Linux kernel.
const (
	maxClockError   = 1e-6
	maxSlew         = 1.0 / 12
	correctionRatio = 3.0
	maxJitter       = 1.0
	maxDistance     = 3.0
	maxFrequency    = 0.1
	minSlewSeconds  = 1.0
	maxSlewSeconds  = 1e4
	leastOffset     = 1e-9
	frequencyLag    = 0.01 // the kernel's tick: the delay until a new frequency takes effect
)

// Chronyd disciplines a Clock. All times are true time since the simulation's start; it uses true time only for the
// order of events.
type Chronyd struct {
	clock    *Clock
	config   Config
	random   *rand.Rand
	register register
	filter   filter
	measured int // number of measurements of the source
	nextAsk  time.Duration
	nextPoll time.Duration
	steering steering

	// The reference, as of the last update.
	synchronized   bool
	updates        int
	referenceTime  float64 // by the clock
	skew           float64
	residual       float64
	offsetSD       float64
	rootDelay      float64
	rootDispersion float64
	lastOffset     float64
	lastUpdate     time.Duration // true time, for the interval
	measuredFrom   time.Duration // true time
	interval       float64
}

// Start starts a daemon on the clock in its current state.
func Start(c *Clock, config Config, at time.Duration, random *rand.Rand) *Chronyd {
	d := &Chronyd{
		clock: c, config: config, random: random, register: register{precision: readingError},
		skew: 1, nextAsk: math.MaxInt64, nextPoll: math.MaxInt64,
	}
	d.steering = steering{clock: c, base: c.slowed, start: c.seconds(at), random: random}
	if config.DriftSkew > 0 {
		d.skew, d.steering.base = config.DriftSkew, -config.DriftFrequency
	}
	d.steering.replan(at)
	if config.Source != nil {
		d.nextAsk = config.Source.next(at, 0)
		d.nextPoll = at + d.period()
	}
	return d
}

func (d *Chronyd) period() time.Duration { return time.Second << d.config.Source.poll() }

// Next is the time of the daemon's next action.
func (d *Chronyd) Next() time.Duration { return min(d.nextAsk, d.nextPoll, d.steering.end) }

// Act does all actions that are due.
func (d *Chronyd) Act(at time.Duration) {
	if at >= d.steering.end {
		d.register.disperse(d.steering.replan(at))
	}
	if at >= d.nextAsk {
		d.measured++
		d.nextAsk = d.config.Source.next(at, d.measured)
		d.ask(at)
	}
	if at >= d.nextPoll {
		d.nextPoll = at + d.period()
		if d.config.Source.filtered() {
			if s, ok := d.filter.poll(); ok {
				d.accept(at, s)
			}
		}
	}
}

func (d *Chronyd) ask(at time.Duration) {
	correction := d.steering.correction(at)
	s, ok := d.config.Source.measure(at, d.clock.Offset(at)+correction, d.register.skew, d.random)
	if !ok {
		return
	}
	s.at, s.taken = d.clock.seconds(at)+correction, at
	if d.config.Source.filtered() {
		d.filter.add(s)
		return
	}
	d.accept(at, s)
}

// accept adds a sample, and updates the reference if it may.
func (d *Chronyd) accept(at time.Duration, s sample) {
	r := &d.register
	r.add(s)
	now := d.clock.seconds(at) + d.steering.correction(at)
	best := r.samples[r.best]
	age := math.Abs(now - best.at)
	if !r.ok || math.Sqrt(r.estimate.variance) > maxJitter ||
		best.rootDelay/2+best.rootDispersion+age*r.skew > maxDistance {
		return
	}
	d.update(at, now)
}

// update computes a new estimate of the clock's offset and frequency.
func (d *Chronyd) update(at time.Duration, now float64) {
	r := &d.register
	last, best := r.samples[len(r.samples)-1], r.samples[r.best]
	offset := r.estimate.intercept + (now-last.at)*r.estimate.slope
	frequency := d.weigh(r.estimate.slope, r.skew)

	d.synchronized = true
	d.referenceTime = last.at
	d.offsetSD = r.estimate.interceptSD
	d.rootDelay = best.rootDelay
	d.rootDispersion = best.rootDispersion + r.skew*(last.at-best.at) + d.offsetSD
	d.lastOffset = offset
	if d.interval = 0; d.updates > 0 {
		d.interval = (at - d.lastUpdate).Seconds()
	}
	d.lastUpdate, d.measuredFrom = at, last.taken
	d.updates++

	slew, step := offset, 0.0
	if uncorrected := d.steering.correction(at); d.updates <= d.config.StepLimit &&
		math.Abs(offset-uncorrected) > d.config.MakeStep {
		slew, step = uncorrected, offset-uncorrected
	}
	d.change(now, frequency, slew)
	speed := correctionRatio * 0.5 * d.offsetSD * d.interval
	r.disperse(d.steering.steer(at, frequency, slew, speed))
	if step != 0 {
		d.change(now, 0, step)
		d.steering.start -= step
		d.clock.Step(-time.Duration(math.Round(step * 1e9)))
	}
	d.referenceTime -= d.random.Float64() // chronyd blurs it for NTP clients
}

// weigh combines the measured frequency with the estimate by their uncertainties, and sets skew and residual frequency.
func (d *Chronyd) weigh(measured, measuredSkew float64) (frequency float64) {
	known := 3 * d.skew * d.skew
	gain := known / (known + measuredSkew*measuredSkew)
	if measuredSkew > 1000e-6 { // maxupdateskew
		gain = 0
	}
	frequency = gain * measured
	d.residual = measured - frequency
	d.skew += gain*(measuredSkew-d.skew) +
		math.Sqrt(frequency*frequency*(1-gain)+d.residual*d.residual*gain)
	return frequency
}

// change adjusts all measurements for a change of the clock.
func (d *Chronyd) change(when, frequency, offset float64) {
	d.register.slew(when, frequency, offset)
	adjust(d.filter.samples, when, frequency, offset)
	d.referenceTime += (when-d.referenceTime)*frequency - offset
}

// Stop ends the daemon as SIGTERM does: the clock keeps its frequency. For a daemon that is killed or hangs, a test
// stops calling Act: the kernel continues to slew.
func (d *Chronyd) Stop(at time.Duration) { d.clock.slow(at, d.steering.base) }

// MeasuredFrom is the true time at which the newest sample of the last update was taken: of a filtered one, the time of
// its first part. Zero if there was no update.
func (d *Chronyd) MeasuredFrom() time.Duration { return d.measuredFrom }
