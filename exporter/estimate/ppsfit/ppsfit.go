// Package ppsfit tells UTC from the pulses of a GNSS receiver alone: the method of
// the thesis (KAIST 2010, chapter 4, figures 4.1 to 4.3), over
// CLOCK_MONOTONIC_RAW in the place of the processor's cycle counter.
//
// No clock daemon has a hand in it, so it is an independent judge of one. The
// pulses say where the seconds begin on the raw clock; CLOCK_REALTIME is only
// asked which second it was, so that it may be wrong by up to half a second.
//
// The filter is the thesis's: an interval between two pulses counts if it differs
// from the median of recent intervals by less than 1e-4 of it. The mean would not
// do: a few doubled intervals (figure 4.2 a, a missed pulse) drag it away. Between
// two pulses that passed, time goes linearly.
//
// What the method cannot see is a latency that all pulses share (cable, interrupt):
// the bound is about what differs from pulse to pulse. Nor can it see which second
// it is if CLOCK_REALTIME is wrong by more than half a second.
package ppsfit

import (
	"math/bits"
	"time"

	"oneway.example/exporter/instant"
)

const (
	// threshold is the relative offset from the median above which an interval is
	// thrown away (thesis, chapter 4).
	threshold = 1e-4
	// nominal is how far the rate of a raw clock may be from that of true time. A
	// crystal is good for 1e-4; a counter whose rate was measured at boot may be
	// worse. It keeps every second pulse, or five in a second, from being taken
	// for seconds.
	nominal = 1e-3
	// enough is how many pulses must agree before they are believed, and strays how
	// many others may come meanwhile. Intervals that are noise with a deviation of
	// 1 ms pass for that once in some two million, and then for seconds.
	enough = 8
	strays = 2
	// reach is the longest time without a used pulse that is bridged: 16 s, on
	// whatever raw clock.
	reach = 16*time.Second + time.Second/2
	// recent is the number of pulses of which the half must have been used.
	recent = 16
)

// Pulse is one pulse per second.
type Pulse struct {
	// Raw is CLOCK_MONOTONIC_RAW at the pulse.
	Raw time.Duration
	// UTC is the whole second that the pulse begins, as CLOCK_REALTIME has it:
	// the kernel's stamp rounded to the nearest second.
	UTC instant.Time
}

// lastSecond keeps sums of seconds within the range of an instant.
const lastSecond = instant.Time(9_000_000_000 * time.Second)

// valid reports whether the clocks can have said that.
func (p Pulse) valid() bool {
	return p.Raw >= 0 && p.UTC > 0 && p.UTC <= lastSecond && p.UTC%instant.Time(time.Second) == 0
}

// Fit is the judge. The zero value is ready for use and knows nothing. It is not
// safe for concurrent use; its size is constant and it does not allocate.
type Fit struct {
	intervals intervals
	line      line
	chain     chain
	previous  Pulse
	started   bool
	// used has a bit for each recent pulse, the newest the lowest: 1 if it was used.
	used uint16
}

// Add judges the next pulse and, if it is good, uses it.
func (f *Fit) Add(p Pulse) Verdict {
	if !p.valid() {
		return Noisy
	}
	since := p.Raw - f.previous.Raw
	bounced := f.started && since >= 0 && since < time.Second/2
	if f.started && !bounced {
		f.intervals.learn(since)
	}
	v := f.judge(p, bounced)
	if v != Doubled {
		f.previous, f.started = p, true
	}
	return v
}

// judge holds p against the fit, and if it is not where the fit has it, against
// the pulses that do not fit either.
func (f *Fit) judge(p Pulse, bounced bool) Verdict {
	if f.line.n > 0 {
		last := f.line.last()
		since := p.Raw - last.Raw
		k, whole := f.seconds(since)
		switch {
		case since > reach:
			f.line.clear()
			f.chain.start(p)
			return Gap
		case whole && p.UTC.Sub(last.UTC) == k:
			f.line.add(p)
			f.line.settle()
			f.chain.clear()
			f.used = f.used<<1 | 1
			return Accepted
		case whole:
			f.line.clear()
			f.chain.start(p)
			return Step
		}
	}
	if bounced {
		return Doubled
	}
	f.used <<= 1
	v := f.follow(p)
	if v == Learning && f.line.n > 0 {
		return Noisy // not where the fit that still holds has it
	}
	return v
}

// follow holds p against the chain of pulses that may become the fit.
func (f *Fit) follow(p Pulse) Verdict {
	c := &f.chain
	if c.n == 0 {
		c.start(p)
		return Learning
	}
	since := p.Raw - c.last().Raw
	k, whole := f.seconds(since)
	switch {
	case since > reach:
		c.start(p)
		return Gap
	case whole && p.UTC.Sub(c.last().UTC) == k:
		c.add(p)
		return f.adopt()
	case whole:
		c.start(p)
		return Step
	case c.n > 1 && c.strays < strays:
		// Pulses that agree are worth more than one that does not.
		c.strays++
		return Noisy
	}
	c.start(p)
	return Noisy
}

// adopt makes the chain the fit, if it is long enough under the median as it is
// known by now: the first intervals were judged when little was known.
func (f *Fit) adopt() Verdict {
	c := &f.chain
	if c.n < enough || !c.prune(f.agrees) {
		return Learning
	}
	v := Accepted
	if f.line.n > 0 {
		v = Step // from one phase to another, without a gap
	}
	f.line.clear()
	for _, p := range c.pulses[:c.n] {
		f.line.add(p)
	}
	f.line.settle()
	c.clear()
	f.used = 1<<recent - 1
	return v
}

// agrees reports whether b is a whole number of seconds after a on both clocks.
func (f *Fit) agrees(a, b Pulse) bool {
	k, whole := f.seconds(b.Raw - a.Raw)
	return whole && k == b.UTC.Sub(a.UTC)
}

// seconds is the number of seconds, as a duration of true time, that an interval of
// the raw clock takes, and whether it is a whole number of at least one within the
// threshold. The threshold is that of one second, however many there are: missed
// pulses give a false one no more room.
func (f *Fit) seconds(since time.Duration) (k time.Duration, whole bool) {
	second, share := f.intervals.median, threshold
	if second == 0 {
		second, share = time.Second, nominal
	}
	if since < second/2 || since > reach+second {
		return 0, false
	}
	n := (since + second/2) / second
	expected := n * second
	if n > 1 && f.line.n > 0 {
		// The line knows the rate better than the median of single intervals.
		expected = f.line.raw(n)
	}
	return n * time.Second, (since - expected).Abs() <= time.Duration(float64(second)*share)
}

// UTC is the time at raw on CLOCK_MONOTONIC_RAW: interpolated between the used
// pulses around it (of the last 32), or extrapolated for up to 16 s after the last.
// The true time is within at +- bound, a latency that all pulses share aside. ok is
// false where nothing is known: before enough pulses have agreed, outside of that
// range, and while less than half of the pulses that come are used.
func (f *Fit) UTC(raw time.Duration) (at instant.Time, bound time.Duration, ok bool) {
	if f.line.n < enough || bits.OnesCount16(f.used) < recent/2 {
		return 0, 0, false
	}
	return f.line.at(raw)
}

// Verdict is what became of a pulse.
type Verdict uint8

// The verdicts.
const (
	// Learning: nothing speaks against the pulse, but too few agree yet.
	Learning Verdict = iota
	// Accepted: the pulse is where the pulses before it have it, and is used.
	Accepted
	// Doubled: less than half a second after the pulse before: an edge that bounced,
	// or the other edge. The pulse is dropped. (The doubled interval of figure 4.2,
	// a pulse missed, needs no verdict: the next pulse is where the fit has it.)
	Doubled
	// Noisy: the interval is off the median by more than the threshold, or the pulse
	// is none: not a whole second, a negative reading.
	Noisy
	// Gap: the first pulse after more than 16 s without a good one; the rate may
	// have changed meanwhile. The fit starts anew with it.
	Gap
	// Step: CLOCK_REALTIME counts other seconds than the pulses do (it was stepped, or
	// the kernel put in a leap second), or all pulses have moved to another phase, or
	// the raw clock has. The fit starts anew.
	Step
)

// Verdicts lists all values in order.
func Verdicts() []Verdict { return []Verdict{Learning, Accepted, Doubled, Noisy, Gap, Step} }

// Rejected reports whether there was something wrong with the pulse.
func (v Verdict) Rejected() bool { return v > Accepted }

// String is the word for it, and the value of the metric label `reason`.
func (v Verdict) String() string {
	words := [...]string{"learning", "accepted", "doubled", "noisy", "gap", "step"}
	if int(v) >= len(words) {
		return "invalid"
	}
	return words[v]
}
