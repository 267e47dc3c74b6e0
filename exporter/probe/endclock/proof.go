package endclock

import (
	"sync/atomic"

	"oneway.example/exporter/core/sample"
)

// Proof is what all traffic of a run knows of its clocks: whether a packet or a byte of it arrived before it was sent, beyond
// its error bound. Then one of the clocks is wrong by more than its bound, and a delay of the other direction, which cannot
// prove it, is as wrong. Its methods are safe for concurrent use, and a nil Proof is never found.
type Proof struct{ found atomic.Bool }

// Find records that one of the clocks is wrong.
func (p *Proof) Find() {
	if p != nil {
		p.found.Store(true)
	}
}

// Found reports whether one of the clocks is known to be wrong.
func (p *Proof) Found() bool { return p != nil && p.found.Load() }

// Judge returns the bound of both clocks, or that one of them is wrong.
func (p *Proof) Judge(both sample.Bound) sample.Bound {
	if both.Reason == sample.OK && p.Found() {
		return sample.Bound{Reason: sample.ClocksApart}
	}
	return both
}
