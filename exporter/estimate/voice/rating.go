// Package voice rates the effect of a measured path on a telephone call: the E-model of ITU-T G.107 (06/2015), the
// simplified form of Woo 2010 section 7.1, and simulated playout buffers that convert delay variation into late
// loss.
//
//	delays of one direction ── minimum ───────────────┐
//	      └─ PDV ── Playout ── buffer delay, late loss ┤
//	losses of one direction ── ratio, bursts ──────────┴─ Path.Assess ── R, MOS
//
// All values are narrowband (300..3400 Hz): the wideband models G.107.1 and G.107.2 have other scales of R, which
// cannot be compared with these.
package voice

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Rating is the result of a model. The impairments are in units of R.
type Rating struct {
	// R is the transmission rating factor, 0..100.
	R float64
	// MOS is the estimated mean opinion score MOS-CQE, 1..4.5 (G.107 Annex B).
	MOS float64
	// Ro is the basic signal-to-noise ratio (clause 7.2). The simplified model uses the constant 94.2 for Ro and Is
	// together.
	Ro float64
	// Is is the simultaneous impairment: level, sidetone, quantizing (clause 7.3).
	Is float64
	// Id = Idte + Idle + Idd is due to delay (clause 7.4): talker echo, listener echo, and absolute delay. The
	// simplified model has only the sum.
	Id, Idte, Idle, Idd float64
	// IeEff is due to the codec and to loss (clause 7.5), 0..95.
	IeEff float64
	// A is the advantage factor (clause 7.6).
	A float64
	// Clamped: an input, IeEff or R was outside of the model's range and was set to its limit. The rating is then
	// approximate, and low in any case.
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

// MOS converts R to the estimated mean opinion score, 1..4.5 (G.107 Annex B). The cubic is below 1 for 0 < R < 6.5;
// such scores do not exist.
func MOS(r float64) float64 {
	switch {
	case r <= 0:
		return 1
	case r >= 100:
		return 4.5
	}
	return max(1, 1+0.035*r+r*(r-60)*(100-r)*7e-6)
}

// Satisfied is the R from which users are satisfied.
const Satisfied = 80

// Class is a class of user satisfaction, from its least R on.
type Class struct {
	From  float64
	Users string
}

// Classes are the classes of G.107 Annex B table B.1, the lowest first (G.109 has the same, and calls R below 50 not recommended).
func Classes() []Class {
	return []Class{
		{0, "not recommended"},
		{50, "nearly all users dissatisfied"},
		{60, "many users dissatisfied"},
		{70, "some users dissatisfied"},
		{Satisfied, "satisfied"},
		{90, "very satisfied"},
	}
}

// Satisfaction is the user satisfaction at R in words; NaN is not recommended.
func Satisfaction(r float64) string {
	classes := Classes()
	words := classes[0].Users
	for _, c := range classes {
		if r >= c.From {
			words = c.Users
		}
	}
	return words
}

// clamp limits v to low..high; NaN becomes low.
func clamp(v, low, high float64) float64 {
	if math.IsNaN(v) {
		return low
	}
	return min(max(v, low), high)
}

// G107 is the E-model of ITU-T G.107 (06/2015), clause 7:
//
//	R = Ro - Is - Id - Ie,eff + A
//
// A negative delay, of a faulty clock, counts as 0.
func G107(p Parameters) Rating {
	no := p.noise()
	r := Rating{A: p.A, Ro: 15 - 1.5*(p.SLR+no)}
	ist := p.sidetone()
	r.Is = p.loudness(no) + ist + p.quantizing(r.Ro)
	r.Idte = p.talkerEcho(no, ist)
	r.Idle = p.listenerEcho(r.Ro)
	r.Idd = p.absoluteDelay()
	r.Id = r.Idte + r.Idle + r.Idd
	r.IeEff, r.Clamped = p.effective()
	r.finish()
	return r
}

// noise is No, the power sum of all noise at the 0 dBr point (clause 7.2).
func (p *Parameters) noise() float64 {
	// OLR = SLR + RLR
	// Nos = Ps - SLR - Ds - 100 + 0.004 (Ps - OLR - Ds - 14)^2
	olr := p.SLR + p.RLR
	nos := p.Ps - p.SLR - p.Ds - 100 + 0.004*square(p.Ps-olr-p.Ds-14)
	// Pre = Pr + 10 lg(1 + 10^((10-LSTR)/10))
	// Nor = RLR - 121 + Pre + 0.008 (Pre - 35)^2
	pre := p.Pr + 10*math.Log10(1+math.Pow(10, (10-p.LSTR)/10))
	nor := p.RLR - 121 + pre + 0.008*square(pre-35)
	nfo := p.Nfor + p.RLR
	power := func(db float64) float64 { return math.Pow(10, db/10) }
	return 10 * math.Log10(power(p.Nc)+power(nos)+power(nor)+power(nfo))
}

// loudness is Iolr, too loud a connection (clause 7.3.1).
func (p *Parameters) loudness(no float64) float64 {
	// Xolr = OLR + 0.2 (64 + No - RLR)
	// Iolr = 20 {[1 + (Xolr/8)^8]^(1/8) - Xolr/8}
	x := (p.SLR + p.RLR + 0.2*(64+no-p.RLR)) / 8
	return 20 * (math.Pow(1+math.Pow(x, 8), 1.0/8) - x)
}

// sidetone is Ist, non-optimum sidetone (clause 7.3.2).
func (p *Parameters) sidetone() float64 {
	// STMRo = -10 lg(10^(-STMR/10) + e^(-T/4) 10^(-TELR/10))
	stmro := -10 * math.Log10(math.Pow(10, -p.STMR/10)+math.Exp(-ms(p.T)/4)*math.Pow(10, -p.TELR/10))
	return 12*math.Pow(1+math.Pow((stmro-13)/6, 8), 1.0/8) -
		28*math.Pow(1+math.Pow((stmro+1)/19.4, 35), 1.0/35) -
		13*math.Pow(1+math.Pow((stmro-3)/33, 13), 1.0/13) + 29
}

// quantizing is Iq, quantizing distortion (clause 7.3.3).
func (p *Parameters) quantizing(ro float64) float64 {
	q := 37 - 15*math.Log10(p.QDU)
	g := 1.07 + 0.258*q + 0.0602*q*q
	y := (ro-100)/15 + 46/8.4 - g/9
	z := 46.0/30 - g/40
	return 15 * math.Log10(1+math.Pow(10, y)+math.Pow(10, z))
}

// talkerEcho is Idte (clause 7.4).
func (p *Parameters) talkerEcho(no, ist float64) (idte float64) {
	t := ms(p.T)
	if p.T >= time.Millisecond {
		// TERV = TELR - 40 lg[(1 + T/10) / (1 + T/150)] + 6 e^(-0.3 T^2)
		terv := p.TELR - 40*math.Log10((1+t/10)/(1+t/150)) + 6*math.Exp(-0.3*t*t)
		if p.STMR < 9 {
			terv += ist / 2
		}
		half := (-1.5*(no-p.RLR) - (80 + 2.5*(terv-14))) / 2
		// At T = 1 ms and full echo loss the formula is slightly negative.
		idte = max(0, (half+math.Sqrt(half*half+100)-1)*(1-math.Exp(-t)))
	}
	if p.STMR > 20 {
		idte = math.Hypot(idte, ist)
	}
	return idte
}

// listenerEcho is Idle (clause 7.4).
func (p *Parameters) listenerEcho(ro float64) float64 {
	half := (ro - 10.5*(p.WEPL+7)*math.Pow(ms(p.Tr)+1, -0.25)) / 2
	return half + math.Sqrt(half*half+169)
}

// absoluteDelay is Idd (clause 7.4), which remains with perfect echo canceling.
func (p *Parameters) absoluteDelay() float64 {
	if p.Ta <= p.MT || p.MT <= 0 {
		return 0
	}
	// X = lg(Ta/mT) / lg 2; the exponent is 6 times sT, not 6 minus.
	x := math.Log2(float64(p.Ta) / float64(p.MT))
	n := 6 * p.ST
	return 25 * (math.Pow(1+math.Pow(x, n), 1/n) - 3*math.Pow(1+math.Pow(x/3, n), 1/n) + 2)
}

func square(v float64) float64 { return v * v }

// Simplified is the form of Woo 2010 section 7.1 (after Cole and Rosenbluth
// 2001), with d = Ta in milliseconds:
//
//	R  = 94.2 - Id - Ie,eff + A
//	Id = 0.024 d + 0.11 (d - 177.3) H(d - 177.3)
//
// Of the parameters it uses Ta, Ie, Bpl, Ppl, BurstR and A.
func Simplified(p Parameters) Rating {
	r := Rating{A: p.A, Ro: 94.2}
	d := ms(p.Ta)
	r.Id = 0.024*d + 0.11*max(0, d-177.3)
	r.IeEff, r.Clamped = p.effective()
	r.finish()
	return r
}

// Parameters are the inputs of G.107, by its symbols. The zero value is not usable: begin with Defaults.
type Parameters struct {
	// SLR, RLR, STMR and LSTR are the loudness ratings of sending, receiving,
	// sidetone and listener sidetone, in dB.
	SLR, RLR, STMR, LSTR float64
	// Ds is the D-value of the telephone at the sending side. (Dr of the receiving side is used only in LSTR = STMR
	// + Dr.)
	Ds float64
	// TELR is the talker echo loudness rating in dB, 5..65; 65 means echo canceling.
	TELR float64
	// WEPL is the weighted echo path loss in dB, 5..110.
	WEPL float64
	// QDU is the number of quantization distortion units, 1..14.
	QDU float64
	// Nc is the circuit noise at the 0 dBr point in dBm0p; Nfor the noise floor
	// at the receiving side in dBmp.
	Nc, Nfor float64
	// Ps and Pr are the room noise at the sending and receiving side in dB(A).
	Ps, Pr float64
	// T is the mean one-way delay of the echo path, Ta the absolute delay from
	// mouth to ear, Tr the round-trip delay in the 4-wire loop.
	T, Ta, Tr time.Duration
	// Ie and Bpl are the codec's impairment and its robustness against loss.
	Ie, Bpl float64
	// Ppl is the packet loss in percent, 0..100, the playout buffer's included.
	Ppl float64
	// BurstR is the burst ratio, 1 for random loss.
	BurstR float64
	// A is the advantage factor, 0..20: the tolerance of users for mobility.
	A float64
	// ST is the delay sensitivity (1 for the default class), MT the smallest perceivable delay. Both are new in the
	// 2015 edition.
	ST float64
	MT time.Duration
}

// Defaults are the values of G.107 clause 7.7, with which R is 93.2: a call without delay, loss or codec.
func Defaults() Parameters {
	return Parameters{
		SLR: 8, RLR: 2, STMR: 15, LSTR: 18, Ds: 3, TELR: 65, WEPL: 110,
		QDU: 1, Nc: -70, Nfor: -64, Ps: 35, Pr: 35, Bpl: 4.3, BurstR: 1,
		ST: 1, MT: 100 * time.Millisecond,
	}
}

// WithCodec sets the codec's impairment and robustness.
func (p Parameters) WithCodec(c Codec) Parameters {
	p.Ie, p.Bpl = c.Ie, c.Bpl
	return p
}

// WithDelay sets all three delays for a 4-wire call with echo from the remote end: T = Ta and Tr = 2T.
func (p Parameters) WithDelay(mouthToEar time.Duration) Parameters {
	p.T, p.Ta, p.Tr = mouthToEar, mouthToEar, 2*mouthToEar
	return p
}

// effective is Ie,eff (G.107 clause 7.5):
//
//	Ie,eff = Ie + (95-Ie) Ppl / (Ppl/BurstR + Bpl)
//
// Bursty and high loss together (BurstR 2, 10 %) exceed 95, the limit of the formula.
func (p *Parameters) effective() (ie float64, clamped bool) {
	loss := clamp(p.Ppl, 0, 100)
	burst := clamp(p.BurstR, 1, math.MaxFloat64)
	ie = p.Ie
	if loss > 0 {
		ie += (95 - p.Ie) * loss / (loss/burst + p.Bpl)
	}
	limited := clamp(ie, 0, 95)
	return limited, limited != ie || loss != p.Ppl || burst != p.BurstR
}

// ms is a delay in the unit of G.107; a negative one counts as zero.
func ms(d time.Duration) float64 { return max(0, float64(d)/float64(time.Millisecond)) }

// Model is a way to compute a Rating. The names are values of the label `model`.
type Model struct {
	// Name is NameG107 or "simplified".
	Name string
	// Rate computes the rating.
	Rate func(Parameters) Rating
}

// NameG107 is the name of the full E-model.
const NameG107 = "g107"

// Models lists all models. They are reported side by side: the thesis and much of the literature use the simplified
// one.
func Models() []Model {
	return []Model{{NameG107, G107}, {"simplified", Simplified}}
}

// ModelByName returns a model. The error lists the valid names.
func ModelByName(name string) (Model, error) {
	for _, m := range Models() {
		if m.Name == name {
			return m, nil
		}
	}
	return Model{}, fmt.Errorf("voice: unknown model %q; it must be %s", name, strings.Join(ModelNames(), " or "))
}

// ModelNames are the names of all models.
func ModelNames() (names []string) {
	for _, m := range Models() {
		names = append(names, m.Name)
	}
	return names
}
