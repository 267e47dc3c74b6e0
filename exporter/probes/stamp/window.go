package stamp

import (
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/delay"
	"oneway.example/exporter/estimate/loss"
	"oneway.example/exporter/estimate/voice"
	"oneway.example/exporter/probes/stamp/ledger"
)

// direction is the estimates of one direction. All but the counts at its end are of the current window.
type direction struct {
	dir    sample.Direction
	out    *observedDirection
	losses loss.Window
	// undecided counts packets whose outcome stays unknown.
	undecided uint64
	delays    delay.Window
	played    *played // nil: profile slim

	negative, lowConfidence uint64
	// txUncertain counts delays whose packet may have left its host later than its timestamp.
	txUncertain uint64
	limited     limited
}

// played is what profile slim does not export.
type played struct {
	// variation has all delays, valid or not: a constant clock offset does not change their differences.
	variation delay.Variation
	pdv       delay.PDV
	voices    []*voice.Playout
}

// decided adds numbers of received and lost packets.
func (w *direction) decided(d loss.Delta) {
	w.losses.Add(d)
	w.delays.AddDecided(int(d.Received), int(d.Lost))
}

// tooLate adds a packet that was received later than the loss timeout.
func (w *direction) tooLate(d loss.Delta) {
	w.losses.Add(d)
	w.delays.AddOverdue()
}

// burst adds the length of a run of lost packets.
func (w *direction) burst(length int) { w.out.burst.Observe(float64(length)) }

// add takes one delay.
func (w *direction) add(seq uint64, v sample.Delay) {
	if v.OK() {
		w.delays.Add(v)
	} else {
		w.delays.AddUndefined()
	}
	if w.played == nil {
		return
	}
	ipdvs, n := w.played.variation.Add(seq, v.Value)
	for _, ipdv := range ipdvs[:n] {
		w.out.ipdv.Observe(ipdv.Seconds())
	}
	if !w.played.pdv.Add(seq, v.Value) {
		w.drain()
	}
}

// breakPairs compares no later packet with an earlier one.
func (w *direction) breakPairs() {
	if w.played != nil {
		w.played.variation.Break()
	}
}

// jitter is defined in RFC 3550.
func (w *direction) jitter() ledger.Optional[float64] {
	if w.played == nil {
		return ledger.Optional[float64]{}
	}
	return seconds(w.played.variation.Jitter())
}

// drain exports the window's delay variation, which is defined only when its smallest delay is known.
func (w *direction) drain() {
	if w.played == nil {
		return
	}
	for seq, v := range w.played.pdv.Drain() {
		w.out.pdv.Observe(v.Seconds())
		for _, buffer := range w.played.voices {
			buffer.Add(seq, v)
		}
	}
}

// next begins the next window. The delays of waiting packets follow in it.
func (w *direction) next(waiting uint64) {
	w.losses.Reset()
	w.limited.next()
	w.undecided = 0
	w.delays.Next(waiting)
	if w.played != nil {
		w.played.pdv.Reset()
		for _, buffer := range w.played.voices {
			buffer.Reset()
		}
	}
}

// window is the result of one window of time. It does not change.
type window struct {
	roundTrip  spread
	hostQueue  *spread                  // see metric.HostQueue; nil: not measured
	lossRatio  ledger.Optional[float64] // of round trips
	parts      parts
	directions [2]windowOf
}

// windowOf is one direction's.
type windowOf struct {
	delay                 spread
	spreads               *spreads // nil: not for a report
	lossRatio, burstRatio ledger.Optional[float64]
	lossLimits            *LossLimits // nil: the ratio is known, or the directions are not distinguished
	unknown               uint64      // packets without a known delay, undecided ones included
	ratings               []rated
}

// undecidedOf counts the packets of the window whose outcome in direction d is not known. Those that are undecided forward were
// lost in reverse if they were not lost forward.
func (e *estimator) undecidedOf(d *direction, known ledger.Known) uint64 {
	n := known.Undecided + d.undecided
	if d.dir == sample.Reverse { // the numbers of replies decide it for those before the last one
		return n + e.ways[sample.Forward].undecided
	}
	return n + known.Passed
}

// limits returns the lowest and the highest loss ratio that undecided packets permit. Each was lost in one of the two
// directions; in reverse there were only those that were not lost forward, and those that are undecided in reverse alone. Answered
// packets were received forward.
func (w *direction) limits(undecided, answered uint64) *LossLimits {
	lost, decided := float64(w.losses.Lost()), float64(w.losses.Decided())
	if w.dir == sample.Forward {
		decided += float64(answered)
	}
	all := decided + float64(undecided)
	l := &LossLimits{Low: lost / all, High: (lost + float64(undecided)) / all, Undecided: undecided}
	if w.dir == sample.Reverse {
		l.Low = lost / max(1, decided+float64(w.undecided))
	}
	return l
}

// spreads are the delay variation of one direction.
type spreads struct{ ipdv, pdv spread }

// window returns the current one, and ends its delay variation: later packets are compared with the smallest delay after this.
func (e *estimator) window(known ledger.Known) *window {
	for i := range e.ways {
		e.ways[i].drain()
	}
	return e.soFar(known)
}

// soFar returns the current window and changes nothing. Its ratings are of the delays before the last drain. While packets are
// undecided, no loss ratio of a direction is known: a path that died has not lost nothing. A quantile is known, and a call is rated,
// if the packets without a known delay change little.
func (e *estimator) soFar(known ledger.Known) *window {
	times := e.times.Snapshot()
	w := &window{roundTrip: spreadOf(times), parts: e.parts}
	if decided := e.replied + times.Lost; decided > 0 {
		w.lossRatio = ledger.OptionalOf(float64(times.Lost)/float64(decided), true)
	}
	if e.waits != nil {
		waits := spreadOf(e.waits.Snapshot())
		w.hostQueue = &waits
	}
	for i := range e.ways {
		d, out := &e.ways[i], &w.directions[i]
		undecided := e.undecidedOf(d, known)
		if known.Directions[i] && undecided > 0 {
			out.lossLimits = d.limits(undecided, known.Answered)
		}
		if !known.Directions[i] { // each lost round trip may be lost in this direction
			undecided = max(undecided, e.times.Lost())
		}
		open := delay.Open{Waiting: known.Waiting, Undecided: undecided, Undirected: !known.Directions[i]}
		delays := d.delays.SnapshotOf(open)
		out.unknown = delays.Unknown()
		out.delay = spreadOf(delays)
		all := ranks()
		out.delay.bound = seconds(delays.Bound(all[1].q, all[2].q), delays.Count > 0 && !e.parts.disproved)
		directed := known.Directions[i] && undecided == 0
		ratio, any := d.losses.Ratio()
		out.lossRatio = ledger.OptionalOf(ratio, any && directed)
		ratio, any = d.losses.BurstRatio()
		out.burstRatio = ledger.OptionalOf(ratio, any && directed)
		out.ratings = d.rate(e.opts, delays, !e.parts.disproved && (known.Directions[i] || delays.Undecided == 0))
		if e.collect != nil {
			reference := delays
			if delays.Count == 0 { // no trusted clocks
				reference = times
			}
			out.spreads = e.collect.spreads(d.dir, open, reference)
		}
	}
	return w
}

// close ends the current window and begins the next one.
func (e *estimator) close(known ledger.Known) *window {
	w := e.window(known)
	for i := range e.ways {
		e.ways[i].next(known.Waiting)
	}
	e.times.Reset()
	if e.waits != nil {
		e.waits.Reset()
	}
	e.replied = 0
	e.disproved = max(0, e.disproved-1)
	e.parts = parts{disproved: e.disproved > 0}
	return w
}

// parts are the largest components of the error bounds of a window's valid delays.
type parts struct {
	any bool
	// disproved: a delay was negative beyond its bound, which the bounds of the window do not cover: in it, or in sample.FaultTime
	// before it, without a step of a clock since.
	disproved                 bool
	local, remote, timestamps time.Duration
	// invalid is the reason of the last delay without a bound, by direction; sample.Unknown: each delay has a bound.
	invalid [2]sample.Reason
}

// add adds those of one packet, whose delays have the combined clock error bound clocks.
func (m *parts) add(p *sample.Packet, clocks sample.Bound, forward, reverse sample.Delay) {
	for i, d := range [...]sample.Delay{sample.Forward: forward, sample.Reverse: reverse} {
		if !d.OK() {
			m.invalid[i] = d.Reason
			continue
		}
		m.any = true
		m.local, m.remote = max(m.local, p.Local.Error), max(m.remote, p.Remote.Error)
		m.timestamps = max(m.timestamps, d.Bound-clocks.Error)
	}
}

// undelayed is why a direction has replies and no delay; sample.Unknown: each direction has delays, or nothing arrived, or the
// configuration has no clock.
func (w *window) undelayed() sample.Reason {
	for i, reason := range w.parts.invalid {
		if reason != sample.Unknown && reason != sample.NoClock && !w.directions[i].delay.min.Known {
			return reason
		}
	}
	return sample.Unknown
}

func seconds(v time.Duration, known bool) ledger.Optional[float64] {
	return ledger.OptionalOf(v.Seconds(), known)
}

// spread is a distribution, in seconds. Its values are unknown if it is empty; a quantile is unknown if it is
// infinite.
type spread struct {
	min, max, bound ledger.Optional[float64]
	ranks           [3]ledger.Optional[float64] // see ranks
}

// ranks are the exported quantiles and their labels.
func ranks() [3]rank { return [...]rank{{0.5, "0.5"}, {0.95, "0.95"}, {0.99, "0.99"}} }

type rank struct {
	q     float64
	label string
}

func spreadOf(s delay.Snapshot) spread { return spreadLike(s, s, 0) }

// spreadLike subtracts base from every value. A quantile is known as reference limits it.
func spreadLike(s, reference delay.Snapshot, base time.Duration) (out spread) {
	out.min, out.max = seconds(s.Min-base, s.Count > 0), seconds(s.Max-base, s.Count > 0)
	for i, r := range ranks() {
		v, defined := s.QuantileLike(r.q, reference)
		out.ranks[i] = seconds(v-base, defined)
	}
	return out
}

// newPlaybacks are the playout buffers of one direction.
func newPlaybacks(o *Options) (all []*voice.Playout) {
	if len(o.Codecs) == 0 {
		return nil
	}
	for _, name := range o.Playout {
		if name == playoutFixed {
			all = append(all, voice.FixedPlayout(o.PlayoutDelay))
		} else {
			all = append(all, voice.AdaptivePlayout(voice.MaxPlayout))
		}
	}
	return all
}

// rated is one assessment with its labels.
type rated struct {
	codec, buffer, model string
	voice.Assessment
	// off limits the error of R caused by the bound of the delay, and by packets without a known delay.
	off float64
	// highest is the highest R that these permit.
	highest float64
	// ok: R is known; limited: there are such packets, so that highest is not R plus off.
	ok, limited bool
}

// rate assesses a call in the current window. Without a valid delay, or where packets without a known delay or outcome could
// change R by more than voice.MostUnknown, there is no assessment. possible: no loss is of an unknown direction, or that direction's
// packets are undecided, and no delay disproves the bounds.
func (w *direction) rate(o *Options, delays delay.Snapshot, possible bool) (all []rated) {
	if w.played == nil {
		return nil
	}
	off := delays.Bound()
	path := voice.Path{Delay: delays.Min, Decided: w.losses.Decided(), Lost: w.losses.Lost(), Bursts: w.losses.Bursts()}
	for _, name := range o.Codecs {
		codec, err := voice.CodecByName(name)
		if err != nil {
			continue // validated with the options
		}
		for _, buffer := range w.played.voices {
			for _, name := range o.Models {
				m, err := voice.ModelByName(name)
				if err != nil {
					continue // as above
				}
				played := buffer.Snapshot()
				a, ok := path.Assess(codec, played, voice.Defaults(), m)
				unknown := delays.Undecided + delays.Received - min(delays.Received, played.Played+played.Late)
				ok = ok && possible && delays.Count > 0
				least, highest := path.RLimits(off, unknown, codec, played, voice.Defaults(), m)
				limited := ok && unknown > 0
				ok = ok && path.RError(0, unknown, a.R, codec, played, voice.Defaults(), m) <= voice.MostUnknown
				all = append(all, rated{
					codec: codec.Name, buffer: buffer.Name(), model: m.Name, Assessment: a, ok: ok,
					off:     max(highest-a.R, a.R-least, 0),
					highest: highest, limited: limited,
				})
			}
		}
	}
	return all
}
