package pps

import (
	"errors"
	"math"
	"time"

	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/estimate/ppsfit"
)

// The reasons beyond the verdicts of ppsfit for which a pulse is not judged.
const (
	// garbled: the timestamp is invalid or in the future (the clock was stepped back meanwhile), or the sequence
	// decreased.
	garbled = "garbled"
	// late: read so long after the pulse that its time on the raw clock is uncertain.
	late = "late"
)

// judge counts and checks pulses, and publishes. Only Run uses it.
type judge struct {
	state    State
	counter  counter
	jitter   jitter
	fit      ppsfit.Fit
	slew     float64
	previous reading
	// pulsed is the time of the last pulse (or when the device was opened), fitted the time of the last used pulse.
	pulsed, fitted time.Time
	// silent: the device is open, and there was no pulse for lostAfter.
	silent bool
	series *metric.Scope
}

func newJudge(series *metric.Scope) *judge {
	j := &judge{series: series}
	j.publish()
	for _, reason := range reasons() {
		j.series.Total(metric.PPSRejected, 0, reason)
	}
	return j
}

// reasons are all values of the label `reason`.
func reasons() []string {
	all := []string{garbled, late}
	for _, v := range ppsfit.Verdicts() {
		if v.Rejected() {
			all = append(all, v.String())
		}
	}
	return all
}

// publish sets the series from the state; an unknown value is absent.
func (j *judge) publish() {
	s := &j.state
	j.series.Total(metric.PPSPulses, float64(s.Pulses))
	j.series.Total(metric.PPSMissed, float64(s.Missed))
	j.series.SetIf(metric.PPSLast, float64(s.Last.Assert)/1e9, !s.Last.Assert.IsZero())
	j.series.SetIf(metric.PPSJitter, s.Jitter.Seconds(), s.JitterKnown)
	j.series.SetIf(metric.PPSFitOffset, s.FitOffset.Seconds(), s.FitKnown)
	j.series.SetIf(metric.PPSFitBound, s.FitBound.Seconds(), s.FitKnown)
}

func (j *judge) reject(reason string) { j.series.Series(metric.PPSRejected, reason).Add(1) }

// close closes the series, and returns the remaining state.
func (j *judge) close() *State {
	j.series.Close()
	j.state.Open, j.state.Present, j.state.JitterKnown, j.state.FitKnown = false, false, false, false
	return &j.state
}

// take handles a message of the reader.
func (j *judge) take(n message) {
	switch {
	case n.opened:
		j.state.Open, j.state.Fault = true, ""
		j.counter.reopened = true
		j.pulsed = time.Now()
	case n.err != nil:
		j.state.Open, j.state.Fault = false, errtext.Words(n.err)
	default:
		j.series.Update(func() {
			j.edge(n.event, n.now)
			j.publish()
		})
	}
}

// edge handles a pulse.
func (j *judge) edge(e event, now reading) {
	j.slew = slewBetween(j.previous, now)
	j.previous = now
	p, err := locate(e, now, j.slew)
	elapsed := uint64(0)
	if err == nil {
		elapsed = j.counter.elapsed(p.Raw)
	}
	n, ok := j.counter.count(e.sequence, elapsed)
	j.state.Pulses += n
	switch {
	case !ok, errors.Is(err, errNoTime), errors.Is(err, errFuture):
		j.reject(garbled)
		return
	case err != nil:
		j.reject(late)
		j.heard()
		return
	}
	if elapsed == 1 {
		j.jitter.add(p.Raw - j.counter.located.Raw)
	}
	j.state.Missed += j.counter.add(p)
	j.state.Last = p
	j.heard()
	j.state.Jitter, j.state.JitterKnown = j.jitter.deviation()
	j.judge(p)
}

func (j *judge) heard() {
	j.pulsed, j.state.Present, j.silent = time.Now(), true, false
}

// judge adds a pulse to the fit. The result is kept if the pulse is not used, unless the fit itself is discarded.
func (j *judge) judge(p Pulse) {
	v := j.fit.Add(ppsfit.Pulse{Raw: p.Raw, UTC: second(p.Assert)})
	if v.Rejected() {
		j.reject(v.String())
	}
	at, bound, ok := j.fit.UTC(p.Raw)
	switch {
	case !ok:
		j.state.FitKnown = false
	case v == ppsfit.Accepted || v == ppsfit.Step:
		j.fitted = time.Now()
		j.state.FitKnown = true
		j.state.FitOffset, j.state.FitBound = p.Assert.Sub(at), bound+p.RawError
	}
}

// second is the whole second nearest to t, the later of two.
func second(t instant.Time) instant.Time {
	const s = instant.Time(time.Second)
	return (t + s/2) / s * s
}

// age withdraws expired values.
func (j *judge) age(now time.Time) {
	if now.Sub(j.pulsed) >= lostAfter {
		j.silent = j.state.Open
		j.state.Present, j.state.JitterKnown = false, false
	}
	if now.Sub(j.fitted) >= lostAfter {
		j.state.FitKnown = false
	}
	j.series.Update(j.publish)
}

// farthest is the largest accepted jump of the sequence: 1000 edges per second for a quarter of an hour. A line with noise
// has thousands of edges.
const farthest = 1 << 20

// counter follows the kernel's sequence.
type counter struct {
	started  bool
	sequence uint32
	// reopened: the device was opened since the last pulse; its sequence may have restarted.
	reopened bool
	// located is the last pulse located on the raw clock; seen is the number of pulses after it.
	located Pulse
	seen    uint64
}

// count takes a sequence number and returns the number of pulses since the last one; ok is false if the sequence decreased
// or jumped too far, and counting restarts. elapsed is the number of seconds since the last located pulse; 0: unknown.
func (c *counter) count(sequence uint32, elapsed uint64) (pulses uint64, ok bool) {
	step := sequence - c.sequence // modulo 2^32, as in the kernel
	fresh, reopened := !c.started, c.reopened
	c.started, c.reopened, c.sequence = true, false, sequence
	switch {
	case fresh, reopened && (step == 0 || uint64(step) > elapsed+1):
		step = 1 // the first pulse of a new sequence
	case step == 0 || step > farthest:
		return 0, false
	}
	c.seen += uint64(step)
	return uint64(step), true
}

// elapsed is the number of seconds from the last located pulse to raw; 0 before the first.
func (c *counter) elapsed(raw time.Duration) uint64 {
	if c.located.Assert.IsZero() || raw < c.located.Raw {
		return 0
	}
	return uint64((raw - c.located.Raw + time.Second/2) / time.Second)
}

// add stores the pulse and returns the number of seconds without a pulse since the last one: the elapsed seconds minus
// the pulses counted meanwhile. A bounce of one edge hides one missing pulse.
func (c *counter) add(p Pulse) (missed uint64) {
	if elapsed := c.elapsed(p.Raw); elapsed > c.seen {
		missed = elapsed - c.seen
	}
	c.located, c.seen = p, 0
	return missed
}

const (
	// JitterIntervals is the number of the last intervals that the jitter is of.
	JitterIntervals = 64
	jitterFrom      = 8
)

// jitter is the standard deviation of the last intervals between pulses.
type jitter struct {
	intervals [JitterIntervals]float64 // minus one second, in ns
	n, next   int
}

// add adds the interval between consecutive pulses. An interval far from one second is not jitter but an extra pulse.
func (j *jitter) add(interval time.Duration) {
	if interval < time.Second/2 || interval > time.Second*3/2 {
		return
	}
	j.intervals[j.next] = float64(interval - time.Second)
	j.next = (j.next + 1) % JitterIntervals
	j.n = min(j.n+1, JitterIntervals)
}

// deviation is the standard deviation; ok is false before eight intervals.
func (j *jitter) deviation() (d time.Duration, ok bool) {
	if j.n < jitterFrom {
		return 0, false
	}
	var mean, squares float64
	for _, v := range j.intervals[:j.n] {
		mean += v / float64(j.n)
	}
	for _, v := range j.intervals[:j.n] {
		squares += (v - mean) * (v - mean)
	}
	return time.Duration(math.Round(math.Sqrt(squares / float64(j.n-1)))), true
}
