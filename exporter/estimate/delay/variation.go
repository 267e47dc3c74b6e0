package delay

import (
	"iter"
	"math"
	"time"
)

// Variation compares each packet with the previous one. The delays may have any constant clock offset. The zero
// value is ready.
type Variation struct {
	seq    uint64
	delay  time.Duration
	any    bool
	jitter float64 // ns
	pairs  uint64
}

// Add takes the delay of a unique packet, in order of arrival. It returns the IPDV, delay minus the delay of the
// packet numbered one less, signed (RFC 3393 section 2; RFC 5481 section 4.1). It is defined only if that packet
// was the previous arrival: a lost or overtaken neighbor leaves it undefined.
func (v *Variation) Add(seq uint64, delay time.Duration) (ipdv time.Duration, ok bool) {
	difference, known := delay-v.delay, v.any
	ok = known && seq == v.seq+1
	v.seq, v.delay, v.any = seq, delay, true
	if known {
		// J += (|D| - J)/16 over arrivals, in sequence or not: RFC 3550
		// section 6.4.1. D, the difference of the transit times, is the
		// difference of the delays.
		v.jitter += (math.Abs(float64(difference)) - v.jitter) / 16
		v.pairs++
	}
	if !ok {
		return 0, false
	}
	return difference, true
}

// Jitter is the running mean of RFC 3550 section 6.4.1, gain 1/16; not defined
// before the second packet. It begins at 0 and needs some 50 packets to settle.
func (v *Variation) Jitter() (time.Duration, bool) {
	return time.Duration(math.Round(v.jitter)), v.pairs > 0
}

// Break discards the last packet but keeps the jitter: the clock offset has changed (a step, a restarted remote
// end), so the next difference is undefined.
func (v *Variation) Break() { v.any = false }

// Reset returns to the zero value.
func (v *Variation) Reset() { *v = Variation{} }

// PDVLimit is the number of delays of a PDV, 16 bytes each.
const PDVLimit = 1 << 16

// PDV holds the delays of one window until it ends and the smallest is known, and then returns every packet's delay
// minus the smallest (RFC 5481 section 4.2). The delays may have any constant clock offset. The zero value is an
// empty window; memory grows with the window's packets, up to 1 MiB, and is reused.
type PDV struct {
	packets []arrival
	min     time.Duration
}

type arrival struct {
	seq   uint64
	delay time.Duration
}

// Add takes the delay of a unique packet, in order of arrival. It returns false when the window is full and must be
// drained.
func (p *PDV) Add(seq uint64, delay time.Duration) (space bool) {
	if len(p.packets) == PDVLimit {
		return false
	}
	if len(p.packets) == 0 || delay < p.min {
		p.min = delay
	}
	p.packets = extend(p.packets, arrival{seq, delay})
	return len(p.packets) < PDVLimit
}

// Drain yields number and PDV, never negative, of every packet of the window in order of arrival, and begins a new
// window.
func (p *PDV) Drain() iter.Seq2[uint64, time.Duration] {
	return func(yield func(uint64, time.Duration) bool) {
		txUncertainty := p.packets
		p.packets = p.packets[:0]
		for _, a := range txUncertainty {
			pdv := a.delay - p.min
			if pdv < 0 {
				pdv = math.MaxInt64 // timestamps 292 years apart: a faulty remote end
			}
			if !yield(a.seq, pdv) {
				return
			}
		}
	}
}

// Reset begins a new window.
func (p *PDV) Reset() { p.packets = p.packets[:0] }
