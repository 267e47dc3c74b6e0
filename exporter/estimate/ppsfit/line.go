package ppsfit

import (
	"math"
	"slices"
	"time"

	"oneway.example/exporter/core/instant"
)

const (
	// memory is the number of used pulses that are kept.
	memory = 32
	// rateDrift is the largest change of the raw clock's rate, as a ratio per second. An uncompensated crystal that
	// warms by 5 K in a minute changes by some 1e-8 a second; at rest it is a hundred times steadier.
	rateDrift = 1e-8
	// resolution covers the rounding to whole nanoseconds.
	resolution = 2
)

// line is the used pulses, oldest first, and their regression line.
type line struct {
	pulses [memory]Pulse
	begin  int
	n      int
	// rate is the raw clock's rate error in nanoseconds a second.
	rate float64
	// noise limits the error of a pulse, in nanoseconds.
	noise float64
}

func (l *line) clear() { l.n = 0 }

// get is the pulse i, 0 the oldest.
func (l *line) get(i int) Pulse { return l.pulses[(l.begin+i)%memory] }

func (l *line) last() Pulse { return l.get(l.n - 1) }

func (l *line) add(p Pulse) {
	if l.n == memory {
		l.begin = (l.begin + 1) % memory
		l.n--
	}
	l.pulses[(l.begin+l.n)%memory] = p
	l.n++
}

// raw is the length of k seconds on the raw clock.
func (l *line) raw(k time.Duration) time.Duration {
	return k*time.Second + time.Duration(float64(k)*l.rate)
}

// span is the true time from the first to the last pulse, in seconds.
func (l *line) span() float64 { return l.last().UTC.Sub(l.get(0).UTC).Seconds() }

// settle computes rate and noise after a change.
//
// The rate is that of the least-squares line through the pulses. The noise is the largest distance of a pulse from
// the line of the others (its residual over one minus its leverage), plus three standard errors of the line at its
// end, from the standard deviation s of the residuals: 2 s/sqrt(n). It is the largest distance and not a quantile
// because interpolation uses two single pulses, each of which may be the worst.
func (l *line) settle() {
	first := l.get(0)
	x := func(i int) float64 { return l.get(i).UTC.Sub(first.UTC).Seconds() }
	y := func(i int) float64 {
		p := l.get(i)
		return float64((p.Raw - first.Raw) - p.UTC.Sub(first.UTC))
	}
	n := float64(l.n)
	var meanX, meanY float64
	for i := range l.n {
		meanX += x(i) / n
		meanY += y(i) / n
	}
	var xx, xy float64
	for i := range l.n {
		xx += (x(i) - meanX) * (x(i) - meanX)
		xy += (x(i) - meanX) * (y(i) - meanY)
	}
	l.rate, l.noise = 0, 0
	if l.n < 3 {
		return // not enough pulses for UTC
	}
	l.rate = xy / xx
	var worst, squares float64
	for i := range l.n {
		residual := y(i) - meanY - l.rate*(x(i)-meanX)
		leverage := 1/n + (x(i)-meanX)*(x(i)-meanX)/xx
		worst = max(worst, math.Abs(residual)/max(1-leverage, 1e-3))
		squares += residual * residual
	}
	l.noise = worst + 3*math.Sqrt(squares/(n-2))*2/math.Sqrt(n)
}

// at is UTC at raw; see Fit.UTC.
func (l *line) at(raw time.Duration) (at instant.Time, bound time.Duration, ok bool) {
	last := l.last()
	if raw > last.Raw {
		return l.after(last, raw-last.Raw)
	}
	for i := l.n - 2; i >= 0; i-- {
		a, b := l.get(i), l.get(i+1)
		if raw < a.Raw {
			continue
		}
		gap := b.UTC.Sub(a.UTC)
		share := float64(raw-a.Raw) / float64(b.Raw-a.Raw)
		// Between two points a curve of second derivative rateDrift deviates from the straight line by at most an
		// eighth of it.
		bow := rateDrift * gap.Seconds() * gap.Seconds() / 8 * 1e9
		return a.UTC.Add(time.Duration(math.Round(share * float64(gap)))), up(l.noise + bow), true
	}
	return 0, 0, false
}

// after is UTC at a time since the last pulse.
//
// The error of the rate is at most 3 noise/span, that of a least-squares line of evenly spaced points with the
// largest errors. In addition the rate may have changed between the middle of the line and the middle of since.
func (l *line) after(last Pulse, since time.Duration) (at instant.Time, bound time.Duration, ok bool) {
	if since > maxGap {
		return 0, 0, false
	}
	t, span := since.Seconds(), l.span()
	elapsed := float64(since) / (1 + l.rate/1e9)
	drift := 3*l.noise/span + rateDrift*(span+t)/2*1e9
	return last.UTC.Add(time.Duration(math.Round(elapsed))), up(l.noise + t*drift), true
}

// up rounds to whole nanoseconds, never down.
func up(ns float64) time.Duration { return time.Duration(math.Ceil(ns)) + resolution }

// intervalCount is the number of intervals of the median. Half of them may be wrong; a crystal's rate does not change
// in that many seconds.
const intervalCount = 16

// intervals are the recent intervals between pulses and their median.
type intervals struct {
	values  [intervalCount]time.Duration
	n, next int
	// median is the length of one second on the raw clock, for an even number of intervals the lower of the two in
	// the middle; zero before the first.
	median time.Duration
}

// add adds the time between two pulses. After missed pulses, an interval of several seconds is divided by their
// number. An interval that is no whole number of seconds is ignored.
func (v *intervals) add(since time.Duration) {
	if since < time.Second/2 || since > maxGap {
		return
	}
	k := (since + time.Second/2) / time.Second
	if (since - k*time.Second).Abs() > k*time.Duration(float64(time.Second)*nominal) {
		return
	}
	v.values[v.next] = since / k
	v.next = (v.next + 1) % intervalCount
	v.n = min(v.n+1, intervalCount)
	sorted := v.values
	slices.Sort(sorted[:v.n])
	v.median = sorted[(v.n-1)/2]
}

// chain is a run of pulses that agree with each other but not with the fit.
type chain struct {
	pulses [minPulses]Pulse
	n      int
	// disagreeing counts the pulses in between that did not agree.
	disagreeing int
}

func (c *chain) clear() { c.n, c.disagreeing = 0, 0 }

func (c *chain) start(p Pulse) {
	c.pulses[0] = p
	c.n, c.disagreeing = 1, 0
}

func (c *chain) last() Pulse { return c.pulses[c.n-1] }

// add appends p; prune has made space.
func (c *chain) add(p Pulse) {
	c.pulses[c.n] = p
	c.n++
}

// prune drops the pulses before the last interval that does not agree, and reports whether there was none.
func (c *chain) prune(agrees func(a, b Pulse) bool) bool {
	for i := c.n - 1; i > 0; i-- {
		if !agrees(c.pulses[i-1], c.pulses[i]) {
			c.n = copy(c.pulses[:], c.pulses[i:c.n])
			return false
		}
	}
	return true
}
