package seqwin

import "testing"

func TestWindowGrowsNoFurtherThanItsQuota(t *testing.T) {
	all := Quota{Bytes: tableBytes(4096)}
	part := Quota{Bytes: tableBytes(4096) - tableBytes(Size) - 1, Parent: &all}
	var w, other Window
	for _, x := range []*Window{&w, &other} {
		x.Charge(&part)
		for n := range uint64(10_000) {
			x.Add(16*n, 0)
		}
	}
	if got := w.length(); got != 2048 {
		t.Errorf("%d numbers, want 2048: 4096 are beyond the quota", got)
	}
	if more := other.grown(); more == 0 || part.Bytes < 0 || all.Bytes-part.Bytes != tableBytes(Size)+1 {
		t.Errorf("another window has grown by %d bytes; %d and %d are left", more, part.Bytes, all.Bytes)
	}
	before, own := part.Bytes, Quota{}
	w.Charge(&own)
	if paid := tableBytes(2048) - tableBytes(Size); part.Bytes != before+paid || own.Bytes != -paid {
		t.Errorf("charged to another quota: %d, then %d bytes are left, of its own %d", before, part.Bytes, own.Bytes)
	}
	w.Reset()
	if own.Bytes != 0 {
		t.Errorf("after Reset %d bytes are charged", own.Bytes)
	}
	if c := other.Counts(); c.Next-c.First != c.Received+c.Lost+c.Pending() {
		t.Errorf("%+v", c)
	}
}
