package seqwin

// gap is a run of missing numbers that one arrival overtook. It ends before the first number of the next gap.
type gap struct {
	first    uint32 // its low bits: undecided numbers are closer together
	openedMs uint32 // when it was overtaken, in milliseconds of the caller's monotonic clock
}

// gaps is a queue of gaps, the lowest numbers first. The zero value is empty. Since n numbers have at most n/2 gaps, it
// takes at most 4 bytes for each number.
type gaps struct {
	ring      []gap // length a power of two
	head, end uint32
}

// minGaps is the length of the shortest ring.
const minGaps = 8

// push appends a gap; number n is the lowest undecided one.
func (g *gaps) push(one gap, n uint64) {
	if int(g.end-g.head) == len(g.ring) {
		g.makeSpace(n)
	}
	g.ring[g.end&uint32(len(g.ring)-1)] = one
	g.end++
}

// makeSpace removes what is decided, or doubles the ring.
func (g *gaps) makeSpace(n uint64) {
	if len(g.ring) > 0 {
		g.of(n)
	}
	old := g.ring
	if int(g.end-g.head) < len(old) {
		return
	}
	g.ring = make([]gap, max(minGaps, 2*len(old)))
	for i := g.head; i != g.end; i++ {
		g.ring[i&uint32(len(g.ring)-1)] = old[i&uint32(len(old)-1)]
	}
}

// of returns the gap of number n, the lowest undecided one, and removes those below it.
func (g *gaps) of(n uint64) gap {
	last := uint32(len(g.ring) - 1)
	for g.end-g.head > 1 && int32(uint32(n)-g.ring[(g.head+1)&last].first) >= 0 {
		g.head++
	}
	return g.ring[g.head&last]
}

// clear removes all gaps and keeps the memory.
func (g *gaps) clear() { g.head = g.end }
