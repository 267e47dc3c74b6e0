package tstamp

import (
	"cmp"
	"slices"
	"testing"
)

// A burst gets as many slots and as much of the queue as it needs, up to the limits, and nothing is lost meanwhile.
func TestBurstHasSpaceUpToTheLimits(t *testing.T) {
	const most, before = 4 * startSpace, startSpace / 2
	p := newPending(most, 2*most, false)
	for i := range uint32(before) {
		p.sent(uint64(i), 100)
		p.match(i, kernelAt(101))
	}
	p.done.popInto(make([]TxStamp, 0, before/2)) // the burst begins in the middle of the queue
	for i := range uint64(most) {
		p.sent(before+i, 100)
	}
	if len(p.slots) != most || p.missing != 0 {
		t.Errorf("%d slots, %d packets given up, want %d and 0", len(p.slots), p.missing, most)
	}
	p.sent(before+most, 100) // takes the slot of the burst's first packet
	for i := range uint32(most) {
		p.match(before+1+i, kernelAt(102))
	}
	p.report()
	got := p.done.popInto(make([]TxStamp, 0, 2*most))
	if !slices.IsSortedFunc(got, func(a, b TxStamp) int { return cmp.Compare(a.Cookie, b.Cookie) }) || got[0].Cookie != before/2 {
		t.Error("the timestamps are not in the order of the packets")
	}
	if len(got) != before/2+most+1 || p.missing != 1 || p.rejected != 0 || p.waiting != 0 {
		t.Errorf("%d timestamps, %d missing, %d rejected, %d packets wait", len(got), p.missing, p.rejected, p.waiting)
	}
}
