package seqwin

// Quota is the memory that windows may use beyond their initial size. With an exhausted quota a window keeps its
// size, and numbers are decided for lack of space. It is not safe for concurrent use.
type Quota struct {
	// Bytes is what is left; zero or less allows nothing.
	Bytes int
	// Parent is the quota that includes this one and is charged as well; nil: none.
	Parent *Quota
}

// take charges n bytes, or nothing if any of the quotas has fewer left.
func (q *Quota) take(n int) bool {
	for x := q; x != nil; x = x.Parent {
		if x.Bytes < n {
			return false
		}
	}
	q.add(-n)
	return true
}

func (q *Quota) add(n int) {
	for x := q; x != nil; x = x.Parent {
		x.Bytes += n
	}
}

// Charge charges q for the memory of the window beyond its initial size, from now on and up to now, even if that is
// more than q has. With nil, as in the zero value, nothing is charged.
func (w *Window) Charge(q *Quota) {
	w.quota.add(w.grown())
	w.quota = q
	q.add(-w.grown())
}

// grown is the memory of the window beyond its initial size, in bytes.
func (w *Window) grown() int { return tableBytes(max(w.length(), Size)) - tableBytes(Size) }

// tableBytes is the size of the tables for so many numbers.
func tableBytes(numbers int) int { return 2*numbers/8 + 4*numbers }
