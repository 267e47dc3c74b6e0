package seqwin

import "testing"

func TestWindowGrowsNoFurtherThanItsBudget(t *testing.T) {
	all := Budget{Octets: tableOctets(4096)}
	part := Budget{Octets: tableOctets(4096) - tableOctets(Size) - 1, Of: &all}
	var w, other Window
	for _, x := range []*Window{&w, &other} {
		x.Charge(&part)
		for n := range uint64(10_000) {
			x.Add(16*n, 0)
		}
	}
	if got := memory(&w); got != tableOctets(2048) {
		t.Errorf("%d octets, want %d: 4096 numbers are beyond the budget", got, tableOctets(2048))
	}
	if more := memory(&other) - tableOctets(Size); more == 0 || part.Octets < 0 || all.Octets-part.Octets != tableOctets(Size)+1 {
		t.Errorf("another one has grown by %d octets; %d and %d are left", more, part.Octets, all.Octets)
	}
	before, own := part.Octets, Budget{}
	w.Charge(&own)
	if paid := tableOctets(2048) - tableOctets(Size); part.Octets != before+paid || own.Octets != -paid {
		t.Errorf("paid by another: %d, then %d octets are left, of its own %d", before, part.Octets, own.Octets)
	}
	w.Reset()
	if own.Octets != 0 {
		t.Errorf("after Reset %d octets are owed", own.Octets)
	}
	if c := other.Counts(); c.Next-c.First != c.Received+c.Lost+c.Pending() {
		t.Errorf("%+v", c)
	}
}
