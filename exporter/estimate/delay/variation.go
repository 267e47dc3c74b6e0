package delay

import (
	"cmp"
	"iter"
	"math"
	"math/bits"
	"slices"
	"time"
)

// Variation compares each packet with those numbered one less and one more. The delays may have any constant clock offset. The
// zero value is ready.
type Variation struct {
	// Reach is by how many packets a packet may be overtaken and still be compared, as many as the waiting time has. 0: a packet is compared with
	// the last arrival only. Memory is 16 bytes for each, rounded up to a power of two, once a packet was overtaken or after Reserve.
	Reach uint32

	any    bool          // there is a last arrival
	paired bool          // there were two
	recent []arrival     // by number modulo the length, with the number plus one; nil until needed
	seq    uint64        // the highest number
	last   time.Duration // the delay of the last arrival
	jitter float64       // ns
}

// Add takes the delay of a unique packet, in order of arrival. It returns the IPDVs that this delay completes, delay minus the
// delay of the packet numbered one less, signed (RFC 3393 section 2; RFC 5481 section 4.1): at most two, its own, and the one
// of the packet numbered one more if this one was overtaken by it. So two neighbors have theirs in any order of arrival, and a lost packet leaves
// its own and the next one undefined. Without Reserve the first packet that is overtaken may have none.
func (v *Variation) Add(seq uint64, delay time.Duration) (ipdvs [2]time.Duration, n int) {
	if v.any {
		// J += (|D| - J)/16 over arrivals, in sequence or not: RFC 3550
		// section 6.4.1. D, the difference of the transit times, is the
		// difference of the delays.
		v.jitter += (math.Abs(float64(delay-v.last)) - v.jitter) / 16
		v.paired = true
	}
	overtaken := v.any && seq < v.seq
	if overtaken && v.seq-seq <= uint64(v.Reach) {
		v.Reserve()
	}
	if before, ok := v.delayOf(seq - 1); ok {
		ipdvs[n] = delay - before
		n++
	}
	if after, ok := v.delayOf(seq + 1); ok {
		ipdvs[n] = after - delay
		n++
	}
	v.last, v.any = delay, true
	if v.recent != nil {
		*v.at(seq) = arrival{seq + 1, delay}
	}
	if !overtaken || v.recent == nil {
		v.seq = seq
	}
	return ipdvs, n
}

func (v *Variation) at(seq uint64) *arrival { return &v.recent[seq%uint64(len(v.recent))] }

// delayOf returns the delay of a recent packet.
func (v *Variation) delayOf(seq uint64) (time.Duration, bool) {
	if v.recent == nil {
		return v.last, v.any && seq == v.seq
	}
	a := v.at(seq)
	return a.delay, a.seq > 0 && a.seq == seq+1
}

// Reserve keeps the packets of Reach from now on.
func (v *Variation) Reserve() {
	if v.recent != nil || v.Reach == 0 {
		return
	}
	v.recent = make([]arrival, 1<<bits.Len32(v.Reach+1))
	if v.any {
		*v.at(v.seq) = arrival{v.seq + 1, v.last}
	}
}

// Jitter is the running mean of RFC 3550 section 6.4.1, gain 1/16; not defined
// before the second packet. It begins at 0 and needs some 50 packets to settle.
func (v *Variation) Jitter() (time.Duration, bool) {
	return time.Duration(math.Round(v.jitter)), v.paired
}

// Break discards the packets but keeps the jitter: the clock offset has changed (a step, a restarted remote
// end), so a difference from later ones is undefined.
func (v *Variation) Break() {
	v.any = false
	clear(v.recent)
}

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

// Add takes the delay of a unique packet. It returns false when the window is full and must be drained.
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

// Drain yields number and PDV, never negative, of every packet of the window in order of the numbers, whatever the order
// of arrival, and begins a new window.
func (p *PDV) Drain() iter.Seq2[uint64, time.Duration] {
	return func(yield func(uint64, time.Duration) bool) {
		packets := p.packets
		slices.SortFunc(packets, func(a, b arrival) int { return cmp.Compare(a.seq, b.seq) })
		p.packets = p.packets[:0]
		for _, a := range packets {
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
