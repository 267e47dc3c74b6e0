package stamp

import (
	"time"

	"oneway.example/exporter/estimate/voice"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/sample"
)

// maxPlayout bounds an adaptive buffer: beyond it no conversation is left.
const maxPlayout = 500 * time.Millisecond

// playback is one kind of playout buffer fed with one direction's packets.
type playback struct{ buffer *voice.Playout }

func (p *playback) add(seq uint64, pdv time.Duration) { p.buffer.Add(seq, pdv) }

func newPlaybacks(o *Options) []playback {
	var all []playback
	if len(o.Codecs) == 0 {
		return nil
	}
	for _, name := range o.Playout {
		if name == playoutFixed {
			all = append(all, playback{voice.FixedPlayout(o.PlayoutDelay)})
			continue
		}
		all = append(all, playback{voice.AdaptivePlayout(maxPlayout)})
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

// rate assesses a call over direction d in the present window. Without a valid delay there is
// none, nor where it is not known in which direction packets were lost.
func (s *session) rate(d *direction, each func(rated)) {
	snap, known := d.delays.Snapshot(), s.lossesKnown(d)
	off := snap.Bound()
	path := voice.Path{Delay: snap.Min, Decided: d.losses.Decided(), Lost: d.losses.Lost(), Bursts: d.losses.Bursts()}
	for _, name := range s.opts.Codecs {
		codec, err := voice.CodecByName(name)
		if err != nil {
			continue // checked with the options
		}
		for i := range d.voices {
			buffer := d.voices[i].buffer
			for _, m := range voice.Models() {
				a, ok := path.Assess(codec, buffer.Snapshot(), voice.Defaults(), m)
				each(rated{
					codec: codec.Name, buffer: buffer.Name(), model: m.Name, Assessment: a, ok: ok && known && snap.Count > 0,
					off: path.RError(off, a.R, codec, buffer.Snapshot(), voice.Defaults(), m),
				})
			}
		}
	}
}

// voiceSeries are the series of one codec, buffer and model.
type voiceSeries struct{ r, off, mos, idd, ie, mouthToEar, loss metric.Series }

type voiceKey struct {
	direction            sample.Direction
	codec, buffer, model string
}

// voice publishes the window's ratings of one direction.
func (s *session) voice(d *direction) {
	s.rate(d, func(v rated) {
		out := s.series.voiceOf(voiceKey{d.dir, v.codec, v.buffer, v.model})
		setFloat(out.r, v.R, v.ok)
		setFloat(out.off, v.off, v.ok)
		setFloat(out.mos, v.MOS, v.ok)
		setFloat(out.idd, v.Id, v.ok)
		setFloat(out.ie, v.IeEff, v.ok)
		set(out.mouthToEar, v.MouthToEar, v.ok)
		setFloat(out.loss, v.Loss, v.ok)
		if facts := &s.last.directions[d.dir]; v.ok && v.model == "g107" && !facts.rated {
			facts.r, facts.off, facts.rated, facts.codec = v.R, v.off, true, v.codec
		}
	})
	for i := range d.voices {
		d.voices[i].buffer.Reset()
	}
}

func (s *series) voiceOf(k voiceKey) *voiceSeries {
	if v := s.voices[k]; v != nil {
		return v
	}
	dir, c := k.direction.String(), s.scope
	v := &voiceSeries{
		r: c.open(metric.VoiceR, dir, k.codec, k.model, k.buffer), off: c.open(metric.VoiceRError, dir, k.codec, k.model, k.buffer), mos: c.open(metric.VoiceMOS, dir, k.codec, k.model, k.buffer),
		idd:        c.open(metric.VoiceDelayImpairment, dir, k.codec, k.model, k.buffer),
		ie:         c.open(metric.VoiceEquipmentImpairment, dir, k.codec, k.model, k.buffer),
		mouthToEar: c.open(metric.VoiceMouthToEar, dir, k.codec, k.buffer),
		loss:       c.open(metric.VoicePlayoutLoss, dir, k.codec, k.buffer),
	}
	s.voices[k] = v
	return v
}

// reportVoice rates the whole run for a terminal. The window's delays are fed
// to the buffers first.
func (s *session) reportVoice(d *direction) []VoiceReport {
	s.drain(d)
	var out []VoiceReport
	s.rate(d, func(v rated) {
		if v.ok {
			out = append(out, VoiceReport{Codec: v.codec, Buffer: v.buffer, Model: v.model, R: v.R, ErrorBound: v.off, MOS: v.MOS})
		}
	})
	return out
}
