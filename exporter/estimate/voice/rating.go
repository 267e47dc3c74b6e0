// Package voice rates what a measured path would do to a telephone call: the
// E-model of ITU-T G.107 (06/2015), the simplified form of Woo 2010 section
// 7.1, and simulated playout buffers that turn delay variation into late loss.
//
//	delays of one direction ── minimum ───────────────┐
//	      └─ PDV ── Playout ── buffer delay, late loss ┤
//	losses of one direction ── ratio, bursts ──────────┴─ Path.Assess ── R, MOS
//
// All values are narrowband (300..3400 Hz): the wideband models G.107.1 and
// G.107.2 have other scales of R and must not be mixed with these.
package voice

import "math"

// Rating is the outcome of a model. The impairments are in units of R.
type Rating struct {
	// R is the transmission rating factor, 0..100.
	R float64
	// MOS is the estimated mean opinion score MOS-CQE, 1..4.5 (G.107 Annex B).
	MOS float64
	// Ro is the basic signal-to-noise ratio (clause 7.2). The simplified model
	// has the constant 94.2 for Ro and Is together.
	Ro float64
	// Is is what happens simultaneously with the voice: level, sidetone,
	// quantising (clause 7.3).
	Is float64
	// Id = Idte + Idle + Idd is due to delay (clause 7.4): talker echo, listener
	// echo, and absolute delay. The simplified model knows only the sum.
	Id, Idte, Idle, Idd float64
	// IeEff is due to the codec and to loss (clause 7.5), 0..95.
	IeEff float64
	// A is the advantage of access that was granted (clause 7.6).
	A float64
	// Clamped: an input, IeEff or R lay outside of the model's range and was
	// moved to its edge. The rating is then rough, and bad in any case.
	Clamped bool
}

// finish computes R and MOS from the parts.
func (r *Rating) finish() {
	r.R = r.Ro - r.Is - r.Id - r.IeEff + r.A
	if limited := clamp(r.R, 0, 100); limited != r.R {
		r.R, r.Clamped = limited, true
	}
	r.MOS = MOS(r.R)
}

// MOS converts R to the estimated mean opinion score, 1..4.5 (G.107 Annex
// B). The cubic dips below 1 for 0 < R < 6.5; there is no such score.
func MOS(r float64) float64 {
	switch {
	case r <= 0:
		return 1
	case r >= 100:
		return 4.5
	}
	return max(1, 1+0.035*r+r*(r-60)*(100-r)*7e-6)
}

// Satisfaction says in words what R means to users (G.107 Annex B table B.1;
// G.109 has the same classes and calls those below 50 not recommended).
func Satisfaction(r float64) string {
	switch {
	case r >= 90:
		return "very satisfied"
	case r >= 80:
		return "satisfied"
	case r >= 70:
		return "some users dissatisfied"
	case r >= 60:
		return "many users dissatisfied"
	case r >= 50:
		return "nearly all users dissatisfied"
	}
	return "not recommended"
}

// clamp moves v into low..high; NaN becomes low.
func clamp(v, low, high float64) float64 {
	if math.IsNaN(v) {
		return low
	}
	return min(max(v, low), high)
}
