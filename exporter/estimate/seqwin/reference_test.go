package seqwin

import "time"

// reference is the same receiver in a simple form: it keeps the outcome of every number, and counts by iterating
// over all of them.
type reference struct {
	first, base, next, size     uint64
	arrived, received           map[uint64]bool
	opened                      map[uint64]int64 // ms
	duplicated, reordered, late uint64
}

func newReference(first uint64) *reference {
	return &reference{
		first: first, base: first, next: first, size: Size,
		arrived: map[uint64]bool{}, received: map[uint64]bool{}, opened: map[uint64]int64{},
	}
}

func (r *reference) add(n uint64, now time.Duration) Verdict {
	switch {
	case n >= r.next:
		r.grow(n)
		r.see(n+1, now)
		r.arrived[n], r.received[n] = true, true
		r.settle()
		return Unique
	case n+r.size < r.next:
		r.late++
		return Late
	case r.arrived[n]:
		r.duplicated++
		return Duplicate
	case n < r.base:
		r.arrived[n] = true
		r.late++
		return Late
	}
	r.arrived[n], r.received[n] = true, true
	r.reordered++
	r.settle()
	return Reordered
}

// grow doubles the memory instead of deciding a number for lack of space, while one of sixteen remembered numbers
// has arrived.
func (r *reference) grow(n uint64) {
	for n >= r.base+r.size && r.size < MaxSize {
		came := uint64(0)
		for i := r.next - min(r.next, r.size); i < r.next; i++ {
			if r.arrived[i] {
				came++
			}
		}
		if 16*came < r.size {
			return
		}
		// Outcomes older than the previous memory are unknown.
		for i := r.next - min(r.next, 2*r.size); i < r.next-min(r.next, r.size); i++ {
			delete(r.arrived, i)
		}
		r.size *= 2
	}
}

func (r *reference) see(next uint64, now time.Duration) {
	for ; r.next < next; r.next++ {
		r.opened[r.next] = now.Milliseconds()
		if r.next-r.base == r.size {
			r.base++
		}
	}
}

// settle moves base over received numbers.
func (r *reference) settle() {
	for r.base < r.next && r.received[r.base] {
		r.base++
	}
}

func (r *reference) expire(now, wait time.Duration) {
	for r.base < r.next {
		age := time.Duration(now.Milliseconds()-r.opened[r.base]) * time.Millisecond
		if !r.received[r.base] && age < wait+time.Millisecond {
			return
		}
		r.base++
	}
}

func (r *reference) finish(next uint64, now time.Duration) {
	if next > r.next {
		r.grow(next - 1)
	}
	r.see(next, now)
	r.base = max(r.base, min(next, r.next))
	r.settle()
}

func (r *reference) counts() Counts {
	c := Counts{
		First: r.first, Base: r.base, Next: r.next,
		Duplicated: r.duplicated, Reordered: r.reordered, Late: r.late,
	}
	before := true
	for n := r.first; n < r.next; n++ {
		switch {
		case r.received[n]:
			c.Received++
		case n < r.base:
			c.Lost++
			if before {
				c.Bursts++
			}
		}
		before = r.received[n]
	}
	for i := uint64(0); i < RecentBits && r.base >= r.first+1+i; i++ {
		if r.received[r.base-1-i] {
			c.Recent[i/64] |= 1 << (i % 64)
		}
	}
	return c
}

// pending counts one by one what Counts.Pending computes.
func (r *reference) pending() (n uint64) {
	for i := r.base; i < r.next; i++ {
		if !r.received[i] {
			n++
		}
	}
	return n
}
