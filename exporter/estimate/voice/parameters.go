package voice

import (
	"math"
	"time"
)

// Parameters are the inputs of G.107, under its own symbols. The zero value is
// of no use: begin with Defaults.
type Parameters struct {
	// SLR, RLR, STMR and LSTR are the loudness ratings of sending, receiving,
	// sidetone and listener sidetone, in dB.
	SLR, RLR, STMR, LSTR float64
	// Ds is the D-value of the telephone at the sending side. (That of the
	// receiving side, Dr, enters no formula but LSTR = STMR + Dr.)
	Ds float64
	// TELR is the talker echo loudness rating in dB, 5..65; 65 is an echo
	// canceller at work.
	TELR float64
	// WEPL is the weighted echo path loss in dB, 5..110.
	WEPL float64
	// QDU is the number of quantisation distortion units, 1..14.
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
	// A is the advantage of access, 0..20: what users forgive for mobility.
	A float64
	// ST is the delay sensitivity (1 for the default class), MT the smallest
	// perceivable delay. Introduced in the 2015 edition.
	ST float64
	MT time.Duration
}

// Defaults are the values of G.107 clause 7.7, with which R is 93.2: a call
// without delay, loss or codec.
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

// WithDelay sets all three delays for a 4-wire call whose echo comes from the
// far end: T = Ta and Tr = 2T.
func (p Parameters) WithDelay(mouthToEar time.Duration) Parameters {
	p.T, p.Ta, p.Tr = mouthToEar, mouthToEar, 2*mouthToEar
	return p
}

// effective is Ie,eff (G.107 clause 7.5):
//
//	Ie,eff = Ie + (95-Ie) Ppl / (Ppl/BurstR + Bpl)
//
// Bursty and heavy loss together (BurstR 2, 10 %) exceed the 95 that the
// formula was made for.
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

// ms is a delay in the unit of G.107; a negative one is none.
func ms(d time.Duration) float64 { return max(0, float64(d)/float64(time.Millisecond)) }
