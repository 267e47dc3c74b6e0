package stamp

import (
	"time"

	"oneway.example/exporter/estimate/delay"
	"oneway.example/exporter/estimate/loss"
	"oneway.example/exporter/estimate/voice"
	"oneway.example/exporter/sample"
)

// direction is what is estimated about one direction. All but the counts at its end is of the present window.
type direction struct {
	dir    sample.Direction
	out    *observedDirection
	losses loss.Window
	delays delay.Window
	// pdv holds the window's delays by number, valid or not: their differences are free of a
	// constant clock offset.
	variation delay.Variation
	pdv       delay.PDV
	voices    []*voice.Playout
	// plain: nobody is told of pdv, and there are no voices.
	plain bool

	negative, lowConfidence uint64
	// txUncertain counts delays whose packet may have stood on its host after its stamp.
	txUncertain uint64
	invalid     [reasonCount]uint64
}

// decided takes how many packets were received and lost.
func (w *direction) decided(d loss.Delta) {
	w.losses.Add(d)
	w.delays.Decided(int(d.Received), int(d.Lost))
}

// tooLate takes a packet that was received and took longer than the waiting time.
func (w *direction) tooLate(d loss.Delta) {
	w.losses.Add(d)
	w.delays.Overdue()
}

// burst takes the length of a run of lost packets.
func (w *direction) burst(length int) { w.out.burst.Observe(float64(length)) }

// add takes one delay.
func (w *direction) add(seq uint64, v sample.Delay) {
	space := w.plain || w.pdv.Add(seq, v.Value)
	if v.OK() {
		w.delays.Add(v)
	}
	if ipdv, paired := w.variation.Add(seq, v.Value); paired {
		w.out.ipdv.Observe(ipdv.Seconds())
	}
	if !space {
		w.drain()
	}
}

// drain observes the window's delay variation, which is known only when its
// smallest delay is.
func (w *direction) drain() {
	for seq, v := range w.pdv.Drain() {
		w.out.pdv.Observe(v.Seconds())
		for _, buffer := range w.voices {
			buffer.Add(seq, v)
		}
	}
}

// reset begins a new window.
func (w *direction) reset() {
	w.losses.Reset()
	w.delays.Reset()
	w.pdv.Reset()
	for _, buffer := range w.voices {
		buffer.Reset()
	}
}

// window is what was found in one window of time. It does not change.
type window struct {
	roundTrip  spread
	parts      parts
	directions [2]windowOf
}

// windowOf is one direction's.
type windowOf struct {
	delay, ipdv, pdv      spread // the last two only for a report
	lossRatio, burstRatio maybe[float64]
	ratings               []rated
}

// window is the present one; known says of which directions the losses are told from those of the other.
func (e *estimator) window(known [2]bool) *window {
	w := &window{roundTrip: spreadOf(e.times.Snapshot(), 0, true), parts: e.parts}
	for i := range e.ways {
		d, out := &e.ways[i], &w.directions[i]
		d.drain()
		// Where losses cannot be told from the other direction's, their number is known only if no
		// round trip was lost. Without it no quantile is defined, for it is not known how many packets
		// are infinitely late, and no call can be rated.
		lossesKnown := known[i] || e.times.Lost() == 0 && d.losses.Lost() == 0
		delays := d.delays.Snapshot()
		out.delay = spreadOf(delays, 0, lossesKnown)
		out.delay.bound = seconds(delays.Bound(), delays.Count > 0)
		ratio, any := d.losses.Ratio()
		out.lossRatio = maybe[float64]{ratio, any && known[i]}
		ratio, any = d.losses.BurstRatio()
		out.burstRatio = maybe[float64]{ratio, any && known[i]}
		out.ratings = d.rate(e.opts, delays, lossesKnown)
		if e.collect != nil {
			all := e.collect.delays[i].Snapshot()
			out.ipdv, out.pdv = spreadOf(e.collect.ipdv[i].Snapshot(), 0, true), spreadOf(all, all.Min, true)
		}
	}
	return w
}

// close ends the present window, and begins the next.
func (e *estimator) close(known [2]bool) *window {
	w := e.window(known)
	for i := range e.ways {
		e.ways[i].reset()
	}
	e.times.Reset()
	e.parts = parts{}
	return w
}

// parts are the largest components of the error bounds of a window's valid delays. Zero: there was none.
type parts struct {
	any                       bool
	local, remote, timestamps time.Duration
}

// add takes one packet's: the clocks' own error bounds, what both together were taken for, and the delays.
func (m *parts) add(p *sample.Packet, clocks sample.Bound, delays ...sample.Delay) {
	for _, d := range delays {
		if d.OK() {
			m.any = true
			m.local, m.remote = max(m.local, p.Local.Error), max(m.remote, p.Remote.Error)
			m.timestamps = max(m.timestamps, d.Bound-clocks.Error)
		}
	}
}

// maybe is a value that may not be known.
type maybe[T any] struct {
	value T
	known bool
}

// pointer is nil if the value is not known.
func (m maybe[T]) pointer() *T {
	if !m.known {
		return nil
	}
	return &m.value
}

func seconds(v time.Duration, known bool) maybe[float64] { return maybe[float64]{v.Seconds(), known} }

// spread is a distribution, in seconds. Nothing of it is known if it is empty; a quantile is not if it is
// infinite.
type spread struct {
	min, max, bound maybe[float64]
	ranks           [3]maybe[float64] // see ranks
}

// ranks are the quantiles that are told, and their labels.
func ranks() [3]rank { return [...]rank{{0.5, "0.5"}, {0.95, "0.95"}, {0.99, "0.99"}} }

type rank struct {
	q     float64
	label string
}

// spreadOf takes every value minus base; quantiles says whether they are defined.
func spreadOf(s delay.Snapshot, base time.Duration, quantiles bool) (out spread) {
	out.min, out.max = seconds(s.Min-base, s.Count > 0), seconds(s.Max-base, s.Count > 0)
	for i, r := range ranks() {
		v, defined := s.Quantile(r.q)
		out.ranks[i] = seconds(v-base, defined && quantiles)
	}
	return out
}

// maxPlayout bounds an adaptive buffer: beyond it no conversation is left.
const maxPlayout = 500 * time.Millisecond

// newPlaybacks are the playout buffers of one direction.
func newPlaybacks(o *Options) (all []*voice.Playout) {
	if len(o.Codecs) == 0 {
		return nil
	}
	for _, name := range o.Playout {
		if name == playoutFixed {
			all = append(all, voice.FixedPlayout(o.PlayoutDelay))
		} else {
			all = append(all, voice.AdaptivePlayout(maxPlayout))
		}
	}
	return all
}

// rated is one assessment and the names that it goes by.
type rated struct {
	codec, buffer, model string
	voice.Assessment
	// off is how far R may be from what the true delay would make it.
	off float64
	ok  bool
}

// rate assesses a call in the present window. Without a valid delay there is none, nor where it is not
// known how many packets were lost.
func (w *direction) rate(o *Options, delays delay.Snapshot, lossesKnown bool) (all []rated) {
	off := delays.Bound()
	path := voice.Path{Delay: delays.Min, Decided: w.losses.Decided(), Lost: w.losses.Lost(), Bursts: w.losses.Bursts()}
	for _, name := range o.Codecs {
		codec, err := voice.CodecByName(name)
		if err != nil {
			continue // checked with the options
		}
		for _, buffer := range w.voices {
			for _, name := range o.Models {
				m, err := voice.ModelByName(name)
				if err != nil {
					continue // the same
				}
				played := buffer.Snapshot()
				a, ok := path.Assess(codec, played, voice.Defaults(), m)
				all = append(all, rated{
					codec: codec.Name, buffer: buffer.Name(), model: m.Name, Assessment: a, ok: ok && lossesKnown && delays.Count > 0,
					off: path.RError(off, a.R, codec, played, voice.Defaults(), m),
				})
			}
		}
	}
	return all
}
