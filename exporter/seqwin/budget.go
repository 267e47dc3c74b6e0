package seqwin

// Budget is the memory that windows may take beyond their first size. One that has used up
// its budget keeps its size: then numbers are decided when there is no room for more. It is
// not safe for concurrent use.
type Budget struct {
	// Octets are what is left; none, or fewer, allow nothing.
	Octets int
	// Of is the budget that this one is a part of, and that is charged as well; nil: none.
	Of *Budget
}

// take charges n octets, or nothing if any of the budgets has not so many left.
func (b *Budget) take(n int) bool {
	for x := b; x != nil; x = x.Of {
		if x.Octets < n {
			return false
		}
	}
	b.add(-n)
	return true
}

func (b *Budget) add(n int) {
	for x := b; x != nil; x = x.Of {
		x.Octets += n
	}
}

// Charge has b pay for what the window takes beyond its first size, from now on and up to
// now, even if that is more than b has. With nil, as with the zero value, nothing is charged.
func (w *Window) Charge(b *Budget) {
	w.budget.add(w.grown())
	w.budget = b
	b.add(-w.grown())
}

// grown is what the window takes beyond its first size, in octets.
func (w *Window) grown() int { return tableOctets(max(len(w.openedMs), Size)) - tableOctets(Size) }

// tableOctets is what the tables for so many numbers take.
func tableOctets(numbers int) int { return 2*numbers/8 + 4*numbers }
