package queue

import (
	"math"
	"time"
)

// enough idle packets show the path's jitter.
const enough = 10

// uncertain is how far a delay above the empty path's may be off in the part: stamps at
// both ends of both delays, the clocks' drift in between, and an idle minimum that was
// not found.
func (r *run) uncertain(f *facts) time.Duration {
	d := 2*r.o.StampError + r.held + r.drift(r.ahead+f.to) + r.idle.early
	if r.idle.n < enough {
		// Too few for the jitter; those of the full queue have it too.
		d += at(f.excess, 0.97) - at(f.excess, 0.03)
	}
	return d
}

// size is the queue's, from what was admitted and what was refused (package comment).
//
// n whole packets of L octets were admitted at the most, and so nL <= Q < nL+L. What
// waited before the last of them, as its delay has it, is nL less the packet in
// transmission, of which a part may be gone; what a refused packet met is nL at the
// least. The two meet at nL where the sender's pace sweeps all phases of the link's. Where it
// does not, as at exactly twice the rate, that n is whole may still tell it.
//
// A little of each end is left out: a loss after the queue looks like a refusal, and a packet
// that the receiver's host held up looks as if it had met more. What is lost after the
// queue also makes the link look slower by its share, and so the queue smaller, unless
// the path's jitter is small enough to see the gaps (facts.drain).
func (r *run) size(f *facts) Amount {
	if r.idle.n == 0 || len(f.excess) == 0 || len(f.refused) == 0 || r.bytes == 0 {
		return Amount{}
	}
	packet := float64(r.bytes)
	e := seconds(r.uncertain(f)) * f.drain
	admitted := seconds(at(f.excess, 0.95)-r.idle.spread) * f.drain
	low := max(admitted, seconds(at(f.excess, 0.02))*f.drain)
	high := at(f.refused, 0.1)
	if low > high {
		// More jitter than the idle packets had: it makes delays longer, never shorter.
		e += low - high
		low = high
	}
	value := (low+high)/2 + packet/2
	e += value * (f.rateBound + math.Abs(f.drain-f.rate)) / f.rate
	first, last := math.Ceil((low-0.1*packet)/packet), math.Floor((high+0.1*packet)/packet)
	if first == last && e < 0.2*packet {
		value = first*packet + packet/2
	}
	bound := max(value-(low-e), high+packet+e-value)
	return Amount{Value: value, Bound: bound, OK: true}
}
