package voice

import "time"

const (
	// estimatorGain is 1-alpha of Ramjee et al. 1994 (alpha = 0.998002).
	estimatorGain = 1 - 0.998002
	// deviations is the number of mean deviations that the adaptive buffer holds beyond the mean: 4 as in Ramjee et
	// al. and Moon et al. 1998.
	deviations = 4
	// minAdaptive is the least depth of an adaptive buffer. On a quiet path d + 4v is microseconds, and
	// scheduling delays of that size would count as late packets; voice terminals have larger buffers. 10 ms is the
	// smallest frame of the codecs here.
	minAdaptive = 10 * time.Millisecond
	// MaxPlayout is the usual limit of an adaptive buffer: a conversation is not possible beyond it.
	MaxPlayout = 500 * time.Millisecond
)

// Playout simulates a receiver's playout buffer: its delay, and the packets too late to be played. It uses the
// delay variation (RFC 5481 PDV, delay minus the smallest of the window), so a constant clock offset cancels.
//
// A fixed buffer adds a constant delay. An adaptive one follows the network (Ramjee, Kurose, Towsley, Schulzrinne,
// "Adaptive playout mechanisms for
// packetized audio applications", INFOCOM 1994, algorithm 1):
//
//	d' = d + (1-alpha)(n - d)    v' = v + (1-alpha)(|n - d| - v)
//	playout = d + 4 v
//
// where n is a packet's variation. Two points differ from the paper. Test packets have no talkspurts, so the
// playout point moves with every packet, as in buffers that stretch speech; a packet is judged by the point of those
// numbered less. At the start the gain is 1/count, the plain mean, until that is smaller than 1-alpha, so that the
// first packet does not dominate the first 500. The buffer is at least 10 ms deep.
//
// Make one with FixedPlayout or AdaptivePlayout; it is not safe for concurrent
// use.
type Playout struct {
	adaptive bool
	// depth is that of the fixed buffer; limit that of the adaptive one, 0 for none.
	depth, limit time.Duration
	// mean and deviation are d and v in ns, over the packets so far.
	mean, deviation float64
	adapted         uint64

	played, late, bursts uint64
	held                 float64 // sum of playout points, ns
	lastLate             uint64
	anyLate              bool
}

// FixedPlayout makes a buffer that plays every packet depth after the fastest packet of its window.
func FixedPlayout(depth time.Duration) *Playout { return &Playout{depth: max(0, depth)} }

// AdaptivePlayout makes a buffer that follows the network up to limit; 0: no limit.
func AdaptivePlayout(limit time.Duration) *Playout {
	return &Playout{adaptive: true, limit: max(0, limit)}
}

// Name is the value of the label `buffer`: "fixed_60ms" or "adaptive".
func (p *Playout) Name() string {
	if p.adaptive {
		return "adaptive"
	}
	return "fixed_" + p.depth.String()
}

// Add adds one received packet by number and PDV, in order of the numbers, so that packets that arrive late next to each
// other are one run in any order of arrival. It reports whether the packet would have
// been played in time. It does not allocate.
func (p *Playout) Add(seq uint64, pdv time.Duration) (inTime bool) {
	point := p.depth
	if p.adaptive {
		point = p.follow(pdv)
	}
	p.held += float64(point)
	if pdv <= point {
		p.played++
		return true
	}
	p.late++
	if !p.anyLate || seq != p.lastLate+1 {
		p.bursts++
	}
	p.lastLate, p.anyLate = seq, true
	return false
}

// follow returns the playout point of a packet and then updates the estimate.
func (p *Playout) follow(pdv time.Duration) (point time.Duration) {
	n := float64(pdv)
	if p.adapted == 0 {
		// The first packet is the first estimate.
		p.mean = n
	}
	p.adapted++
	point = max(minAdaptive, time.Duration(p.mean+deviations*p.deviation))
	if p.limit > 0 {
		point = min(point, p.limit)
	}
	gain := max(estimatorGain, 1/float64(p.adapted))
	difference := n - p.mean
	p.mean += gain * difference
	p.deviation += gain * (max(difference, -difference) - p.deviation)
	return point
}

// Buffered is the result of a playout buffer in one window.
type Buffered struct {
	// Played and Late count received packets; LateBursts counts runs of late
	// packets with consecutive numbers.
	Played, Late, LateBursts uint64
	// Delay is the mean time from the fastest packet's arrival to playout.
	Delay time.Duration
}

// Snapshot returns the result of the window so far.
func (p *Playout) Snapshot() Buffered {
	b := Buffered{Played: p.played, Late: p.late, LateBursts: p.bursts, Delay: p.depth}
	if count := p.played + p.late; p.adaptive && count > 0 {
		b.Delay = time.Duration(p.held / float64(count))
	}
	return b
}

// Reset begins a new window. An adaptive buffer keeps its estimate: PDV is relative to each window's own minimum,
// so a clock step or a new route between two windows does not change it.
func (p *Playout) Reset() {
	p.played, p.late, p.bursts, p.held, p.anyLate = 0, 0, 0, 0, false
}
