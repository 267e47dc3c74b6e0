// Package ppsfit derives UTC from the pulses of a GNSS receiver alone, by the method of the thesis (KAIST 2010,
// chapter 4, figures 4.1 to 4.3), with CLOCK_MONOTONIC_RAW instead of the processor's cycle counter.
//
// It does not depend on a clock daemon and can therefore check one. The pulses give the begin of seconds on the raw
// clock; CLOCK_REALTIME only gives the number of the second, and may be wrong by up to half a second.
//
// The filter is that of the thesis: an interval between two pulses counts if it differs from the median of recent
// intervals by less than 1e-4 of it. The mean is not robust: a few doubled intervals (figure 4.2 a, a missed pulse)
// change it. Between two accepted pulses time is linear.
//
// The method does not detect a latency common to all pulses (cable, interrupt): the bound covers differences
// between pulses. Nor does it detect an error of CLOCK_REALTIME of more than half a second.
package ppsfit

import (
	"math/bits"
	"time"

	"oneway.example/exporter/core/instant"
)

const (
	// threshold is the relative offset from the median above which an interval is discarded (thesis, chapter 4).
	threshold = 1e-4
	// nominal is the largest rate error of a raw clock. A crystal has 1e-4; a counter whose rate was measured at
	// boot may have more. The limit prevents that every second pulse, or five pulses a second, are accepted as
	// seconds.
	nominal = 1e-3
	// minPulses is the number of pulses that must agree before they are used, and disagreeing the number of others in
	// between. Noise intervals with a deviation of 1 ms satisfy this once in some two million, and then for
	// seconds.
	minPulses   = 8
	disagreeing = 2
	// maxGap is the longest time without a used pulse that is bridged: 16 s, on any raw clock.
	maxGap = 16*time.Second + time.Second/2
	// recent is the number of recent pulses of which half must have been used.
	recent = 16
)

// Pulse is one pulse per second.
type Pulse struct {
	// Raw is CLOCK_MONOTONIC_RAW at the pulse.
	Raw time.Duration
	// UTC is the whole second that begins with the pulse by CLOCK_REALTIME: the kernel's timestamp rounded to the
	// nearest second.
	UTC instant.Time
}

// lastSecond keeps sums of seconds within the range of an instant.
const lastSecond = instant.Time(9_000_000_000 * time.Second)

// valid reports whether the values are possible.
func (p Pulse) valid() bool {
	return p.Raw >= 0 && p.UTC > 0 && p.UTC <= lastSecond && p.UTC%instant.Time(time.Second) == 0
}

// Fit is the estimator. The zero value is ready and has no pulses. It is not safe for concurrent use; its size is
// constant and it does not allocate.
type Fit struct {
	intervals intervals
	line      line
	chain     chain
	previous  Pulse
	started   bool
	// used has a bit for each recent pulse, the newest being the lowest: 1 if it was used.
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
		f.intervals.add(since)
	}
	v := f.judge(p, bounced)
	if v != Doubled {
		f.previous, f.started = p, true
	}
	return v
}

// judge compares p with the fit and, if it does not agree, with the pulses that do not agree either.
func (f *Fit) judge(p Pulse, bounced bool) Verdict {
	if f.line.n > 0 {
		last := f.line.last()
		since := p.Raw - last.Raw
		k, whole := f.seconds(since)
		switch {
		case since > maxGap:
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
		return Noisy // does not agree with the fit, which still holds
	}
	return v
}

// follow compares p with the chain of pulses that may become the fit.
func (f *Fit) follow(p Pulse) Verdict {
	c := &f.chain
	if c.n == 0 {
		c.start(p)
		return Learning
	}
	since := p.Raw - c.last().Raw
	k, whole := f.seconds(since)
	switch {
	case since > maxGap:
		c.start(p)
		return Gap
	case whole && p.UTC.Sub(c.last().UTC) == k:
		c.add(p)
		return f.adopt()
	case whole:
		c.start(p)
		return Step
	case c.n > 1 && c.disagreeing < disagreeing:
		// A single pulse does not replace pulses that agree.
		c.disagreeing++
		return Noisy
	}
	c.start(p)
	return Noisy
}

// adopt makes the chain the fit if it is long enough under the current median: the first intervals were judged with
// few values.
func (f *Fit) adopt() Verdict {
	c := &f.chain
	if c.n < minPulses || !c.prune(f.agrees) {
		return Learning
	}
	v := Accepted
	if f.line.n > 0 {
		v = Step // a change of phase without a gap
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

// seconds returns the number of seconds, as a duration of true time, of an interval of the raw clock, and whether
// it is a whole number of at least one within the threshold. The threshold is that of one second for any number, so
// that missed pulses do not widen it for a false one.
func (f *Fit) seconds(since time.Duration) (k time.Duration, whole bool) {
	second, share := f.intervals.median, threshold
	if second == 0 {
		second, share = time.Second, nominal
	}
	if since < second/2 || since > maxGap+second {
		return 0, false
	}
	n := (since + second/2) / second
	expected := n * second
	if n > 1 && f.line.n > 0 {
		// The rate of the line is more accurate than the median of single intervals.
		expected = f.line.raw(n)
	}
	return n * time.Second, (since - expected).Abs() <= time.Duration(float64(second)*share)
}

// UTC is the time at raw on CLOCK_MONOTONIC_RAW: interpolated between the used pulses around it (of the last 32),
// or extrapolated for up to 16 s after the last. The true time is within at +- bound, except for a latency common
// to all pulses. ok is false before enough pulses have agreed, outside of that range, and while less than half of
// the pulses are used.
func (f *Fit) UTC(raw time.Duration) (at instant.Time, bound time.Duration, ok bool) {
	if f.line.n < minPulses || bits.OnesCount16(f.used) < recent/2 {
		return 0, 0, false
	}
	return f.line.at(raw)
}

// Verdict is the classification of a pulse.
type Verdict uint8

// The verdicts.
const (
	// Learning: the pulse is possible, but too few agree yet.
	Learning Verdict = iota
	// Accepted: the pulse agrees with the previous ones, and is used.
	Accepted
	// Doubled: less than half a second after the previous pulse: a bounced or the opposite edge. The pulse is
	// dropped. (The doubled interval of figure 4.2, a missed pulse, needs no verdict: the next pulse agrees with
	// the fit.)
	Doubled
	// Noisy: the interval differs from the median by more than the threshold, or the pulse is invalid: not a whole
	// second, or a negative reading.
	Noisy
	// Gap: the first pulse after more than 16 s without a good one; the rate may have changed. The fit starts anew
	// with it.
	Gap
	// Step: CLOCK_REALTIME counts other seconds than the pulses (a step, or a leap second inserted by the kernel),
	// or the phase of all pulses or of the raw clock has changed. The fit starts anew.
	Step
)

// Verdicts lists all values in order.
func Verdicts() []Verdict { return []Verdict{Learning, Accepted, Doubled, Noisy, Gap, Step} }

// Rejected reports whether the pulse was faulty.
func (v Verdict) Rejected() bool { return v > Accepted }

// String is the name of the verdict and the value of the metric label `reason`.
func (v Verdict) String() string {
	words := [...]string{"learning", "accepted", "doubled", "noisy", "gap", "step"}
	if int(v) >= len(words) {
		return "invalid"
	}
	return words[v]
}
