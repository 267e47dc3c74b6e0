package voice

import "time"

const (
	// estimatorGain is 1-alpha of Ramjee et al. 1994 (alpha = 0.998002).
	estimatorGain = 1 - 0.998002
	// deviations is how many mean deviations the adaptive buffer holds beyond
	// the mean: the 4 of Ramjee et al. and of Moon et al. 1998.
	deviations = 4
	// leastAdaptive is what an adaptive buffer always holds. On a quiet path
	// d + 4v is microseconds, and every scheduling hiccup of that size would count
	// as a late packet; no voice terminal plays that close. 10 ms is the smallest
	// frame of the codecs here.
	leastAdaptive = 10 * time.Millisecond
)

// Playout simulates a receiver's playout buffer: how long it holds packets, and
// which come too late to be played. It works on variation (RFC 5481 PDV, delay
// minus the smallest of the window), so the clocks' offset plays no part.
//
// A fixed buffer holds back by a constant. An adaptive one follows the network
// (Ramjee, Kurose, Towsley, Schulzrinne, "Adaptive playout mechanisms for
// packetized audio applications", INFOCOM 1994, algorithm 1):
//
//	d' = d + (1-alpha)(n - d)    v' = v + (1-alpha)(|n - d| - v)
//	playout = d + 4 v
//
// where n is a packet's variation. Two things differ from the paper. Test
// packets have no talkspurts, so the playout point moves with every packet, as
// in buffers that stretch speech; a packet is judged by the point set before it
// came. And at the start the gain is 1/count, the plain mean, until that is
// smaller than 1-alpha, so that the first 500 packets are not ruled by the very
// first. The buffer never holds less than 10 ms.
//
// Make one with FixedPlayout or AdaptivePlayout; it is not safe for concurrent
// use.
type Playout struct {
	adaptive bool
	// depth is the fixed buffer's; limit the adaptive one's, 0 for none.
	depth, limit time.Duration
	// mean and deviation are d and v in ns, over learned packets.
	mean, deviation float64
	learned         uint64

	played, late, bursts uint64
	held                 float64 // sum of playout points, ns
	lastLate             uint64
	anyLate              bool
}

// FixedPlayout makes a buffer that plays every packet depth after the fastest
// packet of its window.
func FixedPlayout(depth time.Duration) *Playout { return &Playout{depth: max(0, depth)} }

// AdaptivePlayout makes a buffer that follows the network, but never holds for
// longer than limit; 0 is without limit.
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

// Add takes one received packet, in order of arrival: its number and its PDV.
// It reports whether the packet would have been played in time. It does not
// allocate.
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

// follow returns the playout point for a packet and then learns from it.
func (p *Playout) follow(pdv time.Duration) (point time.Duration) {
	n := float64(pdv)
	if p.learned == 0 {
		// Nothing is known yet: the first packet stands for all.
		p.mean = n
	}
	p.learned++
	point = max(leastAdaptive, time.Duration(p.mean+deviations*p.deviation))
	if p.limit > 0 {
		point = min(point, p.limit)
	}
	gain := max(estimatorGain, 1/float64(p.learned))
	difference := n - p.mean
	p.mean += gain * difference
	p.deviation += gain * (max(difference, -difference) - p.deviation)
	return point
}

// Buffered is what a playout buffer did in one window.
type Buffered struct {
	// Played and Late count received packets; LateBursts counts runs of late
	// packets with consecutive numbers.
	Played, Late, LateBursts uint64
	// Delay is the mean time from the fastest packet's arrival to playout.
	Delay time.Duration
}

// Snapshot tells about the window so far.
func (p *Playout) Snapshot() Buffered {
	b := Buffered{Played: p.played, Late: p.late, LateBursts: p.bursts, Delay: p.depth}
	if count := p.played + p.late; p.adaptive && count > 0 {
		b.Delay = time.Duration(p.held / float64(count))
	}
	return b
}

// Reset begins a new window. An adaptive buffer keeps what it has learned: PDV
// is relative to each window's own minimum, so a clock step or a new route
// between two windows does not disturb it.
func (p *Playout) Reset() {
	p.played, p.late, p.bursts, p.held, p.anyLate = 0, 0, 0, 0, false
}

// Forget begins a new window and a new call.
func (p *Playout) Forget() {
	*p = Playout{adaptive: p.adaptive, depth: p.depth, limit: p.limit}
}
