package pps

import (
	"errors"
	"time"

	"oneway.example/exporter/estimate/ppsfit"
	"oneway.example/exporter/instant"
	"oneway.example/exporter/metric"
)

// The reasons beyond the verdicts of ppsfit for which a pulse is not judged.
const (
	// garbled: the stamp is no time or in the future (the clock was stepped back
	// meanwhile), or the sequence went back.
	garbled = "garbled"
	// late: read so long after the pulse that its place on the raw clock is vague.
	late = "late"
)

// judge counts, judges and publishes. It belongs to Run.
type judge struct {
	state    State
	counter  counter
	jitter   jitter
	fit      ppsfit.Fit
	slew     float64
	previous reading
	// pulsed and fitted are when the last pulse came (or the device was opened), and
	// the last that was used.
	pulsed, fitted time.Time
	// silent: the device is open, and no pulse has come for lostAfter.
	silent bool

	sink                           metric.Sink
	pulses, missed                 metric.Series
	rejected                       map[string]metric.Series
	deviation, last, offset, bound metric.Series
}

func newJudge(sink metric.Sink, name string) *judge {
	j := &judge{
		sink:      sink,
		pulses:    sink.Series(metric.PPSPulses, name),
		missed:    sink.Series(metric.PPSMissed, name),
		rejected:  map[string]metric.Series{},
		deviation: sink.Series(metric.PPSJitter, name),
		last:      sink.Series(metric.PPSLast, name),
		offset:    sink.Series(metric.PPSFitOffset, name),
		bound:     sink.Series(metric.PPSFitBound, name),
	}
	for _, reason := range reasons() {
		j.rejected[reason] = sink.Series(metric.PPSRejected, name, reason)
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

func (j *judge) close() {
	j.state.Open, j.state.Present, j.silent = false, false, false
	j.state.JitterKnown, j.state.FitKnown = false, false
	for _, s := range []metric.Series{j.pulses, j.missed, j.deviation, j.last, j.offset, j.bound} {
		s.Close()
	}
	for _, s := range j.rejected {
		s.Close()
	}
}

// take deals with what the reader says.
func (j *judge) take(n news) {
	switch {
	case n.opened:
		j.state.Open, j.state.Fault = true, ""
		j.counter.reopened = true
		j.pulsed = time.Now()
	case n.err != nil:
		j.state.Open, j.state.Fault = false, n.err.Error()
	default:
		j.sink.Update(func() { j.edge(n.event, n.now) })
	}
}

// edge deals with a pulse.
func (j *judge) edge(e event, now reading) {
	j.slew = slewBetween(j.previous, now)
	j.previous = now
	p, err := place(e, now, j.slew)
	elapsed := uint64(0)
	if err == nil {
		elapsed = j.counter.elapsed(p.Raw)
	}
	n, ok := j.counter.count(e.sequence, elapsed)
	j.state.Pulses += n
	j.pulses.Add(float64(n))
	switch {
	case !ok, errors.Is(err, errNoTime), errors.Is(err, errFuture):
		j.rejected[garbled].Add(1)
		return
	case err != nil:
		j.rejected[late].Add(1)
		j.heard()
		return
	}
	if elapsed == 1 {
		j.jitter.add(p.Raw - j.counter.placed.Raw)
	}
	missed := j.counter.place(p)
	j.state.Missed += missed
	j.missed.Add(float64(missed))
	j.state.Last = p
	j.last.Set(float64(p.Assert) / 1e9)
	j.heard()
	if j.state.Jitter, j.state.JitterKnown = j.jitter.deviation(); j.state.JitterKnown {
		j.deviation.Set(j.state.Jitter.Seconds())
	}
	j.judge(p)
}

func (j *judge) heard() {
	j.pulsed, j.state.Present, j.silent = time.Now(), true, false
}

// judge asks the fit. A pulse that is not used leaves the last word standing, unless
// the fit itself has fallen.
func (j *judge) judge(p Pulse) {
	v := j.fit.Add(ppsfit.Pulse{Raw: p.Raw, UTC: second(p.Assert)})
	if v.Rejected() {
		j.rejected[v.String()].Add(1)
	}
	at, bound, ok := j.fit.UTC(p.Raw)
	switch {
	case !ok:
		j.withdrawFit()
	case v == ppsfit.Accepted || v == ppsfit.Step:
		j.fitted = time.Now()
		j.state.FitKnown = true
		j.state.FitOffset, j.state.FitBound = p.Assert.Sub(at), bound+p.RawError
		j.offset.Set(j.state.FitOffset.Seconds())
		j.bound.Set(j.state.FitBound.Seconds())
	}
}

// second is the whole second nearest to t, the later of two.
func second(t instant.Time) instant.Time {
	const s = instant.Time(time.Second)
	return (t + s/2) / s * s
}

// age withdraws what is no longer known.
func (j *judge) age(now time.Time) {
	j.sink.Update(func() {
		if now.Sub(j.pulsed) >= lostAfter {
			j.silent = j.state.Open
			j.state.Present, j.state.JitterKnown = false, false
			j.deviation.Clear()
		}
		if j.state.FitKnown && now.Sub(j.fitted) >= lostAfter {
			j.withdrawFit()
		}
	})
}

func (j *judge) withdrawFit() {
	j.state.FitKnown = false
	j.offset.Clear()
	j.bound.Clear()
}
