package ppsfit

import (
	"math"
	"slices"
	"time"

	"oneway.example/exporter/instant"
)

const (
	// memory is how many used pulses are kept.
	memory = 32
	// wander is how fast the raw clock's rate may change, as a ratio per second. A
	// crystal without compensation that warms by 5 K in a minute changes by some
	// 1e-8 a second; at rest it is a hundred times steadier.
	wander = 1e-8
	// resolution covers the rounding to whole nanoseconds.
	resolution = 2
)

// line is the used pulses, oldest first, and what they say together.
type line struct {
	pulses [memory]Pulse
	begin  int
	n      int
	// rate is the raw clock's surplus in nanoseconds a second.
	rate float64
	// noise bounds how far a pulse may be off its second, in nanoseconds.
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

// raw is how long k seconds take on the raw clock.
func (l *line) raw(k time.Duration) time.Duration {
	return k*time.Second + time.Duration(float64(k)*l.rate)
}

// span is the true time from the first to the last pulse, in seconds.
func (l *line) span() float64 { return l.last().UTC.Sub(l.get(0).UTC).Seconds() }

// settle computes rate and noise after a change.
//
// The rate is that of the least-squares line through the pulses. The noise is the
// largest distance of a pulse from the line that the others make (its residual
// over one minus its leverage, as a pulse draws the line to itself), plus three
// standard errors of the line at its end, the standard deviation being that of the
// residuals: 2 s/sqrt(n). The largest and not a quantile, as the interpolation leans
// on two single pulses, of which each may be the worst.
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
		return // UTC waits for enough
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

// at is UTC at raw, as Fit.UTC has it.
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
		// Between two points a curve of second derivative wander leaves the
		// straight line by an eighth of it at the most.
		bow := wander * gap.Seconds() * gap.Seconds() / 8 * 1e9
		return a.UTC.Add(time.Duration(math.Round(share * float64(gap)))), up(l.noise + bow), true
	}
	return 0, 0, false
}

// after is UTC a time since the last pulse.
//
// The rate may be off by 3 noise/span: what a least-squares line of evenly spaced
// points makes of errors that are all as large as they may be. And it may have
// changed: between the middle of the line and the middle of since.
func (l *line) after(last Pulse, since time.Duration) (at instant.Time, bound time.Duration, ok bool) {
	if since > reach {
		return 0, 0, false
	}
	t, span := since.Seconds(), l.span()
	gone := float64(since) / (1 + l.rate/1e9)
	drift := 3*l.noise/span + wander*(span+t)/2*1e9
	return last.UTC.Add(time.Duration(math.Round(gone))), up(l.noise + t*drift), true
}

// up rounds to whole nanoseconds, never down.
func up(ns float64) time.Duration { return time.Duration(math.Ceil(ns)) + resolution }

// remembered is how many intervals the median is taken of. Half of them may be
// wrong; a crystal's rate does not change in as many seconds.
const remembered = 16

// intervals are the recent intervals between pulses and their median.
type intervals struct {
	values  [remembered]time.Duration
	n, next int
	// median is of one second on the raw clock, of an even number of intervals the lower of the two in the
	// middle; zero before the first.
	median time.Duration
}

// learn takes the time between one pulse and the next. A pulse may have been
// missed: the interval of several seconds tells the length of one as well. What
// is no number of seconds at all is not learned from.
func (v *intervals) learn(since time.Duration) {
	if since < time.Second/2 || since > reach {
		return
	}
	k := (since + time.Second/2) / time.Second
	if (since - k*time.Second).Abs() > k*time.Duration(float64(time.Second)*nominal) {
		return
	}
	v.values[v.next] = since / k
	v.next = (v.next + 1) % remembered
	v.n = min(v.n+1, remembered)
	sorted := v.values
	slices.Sort(sorted[:v.n])
	v.median = sorted[(v.n-1)/2]
}

// chain is a run of pulses that agree with each other, but are not the fit (yet).
type chain struct {
	pulses [enough]Pulse
	n      int
	// strays counts the pulses that came meanwhile and did not agree.
	strays int
}

func (c *chain) clear() { c.n, c.strays = 0, 0 }

func (c *chain) start(p Pulse) {
	c.pulses[0] = p
	c.n, c.strays = 1, 0
}

func (c *chain) last() Pulse { return c.pulses[c.n-1] }

// add appends p; prune has made room.
func (c *chain) add(p Pulse) {
	c.pulses[c.n] = p
	c.n++
}

// prune drops the pulses before the last interval that does not agree, and reports
// whether there was none.
func (c *chain) prune(agrees func(a, b Pulse) bool) bool {
	for i := c.n - 1; i > 0; i-- {
		if !agrees(c.pulses[i-1], c.pulses[i]) {
			c.n = copy(c.pulses[:], c.pulses[i:c.n])
			return false
		}
	}
	return true
}
