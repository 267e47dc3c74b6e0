package voice

import (
	"math"
	"time"
)

// G107 is the E-model of ITU-T G.107 (06/2015), clause 7:
//
//	R = Ro - Is - Id - Ie,eff + A
//
// A negative delay, from a clock at fault, counts as 0.
func G107(p Parameters) Rating {
	no := p.noise()
	r := Rating{A: p.A, Ro: 15 - 1.5*(p.SLR+no)}
	ist := p.sidetone()
	r.Is = p.loudness(no) + ist + p.quantising(r.Ro)
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

// quantising is Iq, quantising distortion (clause 7.3.3).
func (p *Parameters) quantising(ro float64) float64 {
	q := 37 - 15*math.Log10(p.QDU)
	g := 1.07 + 0.258*q + 0.0602*q*q
	y := (ro-100)/15 + 46/8.4 - g/9
	z := 46.0/30 - g/40
	return 15 * math.Log10(1+math.Pow(10, y)+math.Pow(10, z))
}

// talkerEcho is Idte (clause 7.4).
func (p *Parameters) talkerEcho(no, ist float64) float64 {
	t := ms(p.T)
	var idte float64
	if p.T >= time.Millisecond {
		// TERV = TELR - 40 lg[(1 + T/10) / (1 + T/150)] + 6 e^(-0.3 T^2)
		terv := p.TELR - 40*math.Log10((1+t/10)/(1+t/150)) + 6*math.Exp(-0.3*t*t)
		if p.STMR < 9 {
			terv += ist / 2
		}
		half := (-1.5*(no-p.RLR) - (80 + 2.5*(terv-14))) / 2
		idte = (half + math.Sqrt(half*half+100) - 1) * (1 - math.Exp(-t))
		// At T = 1 ms and full echo loss the formula is slightly negative.
		idte = max(0, idte)
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

// absoluteDelay is Idd (clause 7.4), which occurs even with perfect echo
// cancelling.
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
