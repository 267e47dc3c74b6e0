package stamp

import "time"

// agreeing is how many refused answers in a row have to go on from each other until the far
// end's numbers are taken to begin anew.
const agreeing = 3

// order judges the numbers of answers before they move the reverse window. A far end gives
// numbers to what it answers, so that there are no more of them than questions; and a question that
// was sent after an answer had come gets a higher number than that one.
type order struct {
	// next is the highest number taken plus one; it was taken at that time (monotonic).
	next uint64
	at   time.Duration
	// spent is how many questions had been answered, or forgotten, by then.
	spent uint64
	// refused answers came in a row, the last of them numbered last.
	refused int
	last    uint64
}

// place is what the number of an answer is taken for.
type place uint8

const (
	placeFits    place = iota
	placeRefused       // nobody can have counted so far
	placeAnew          // the far end's numbers begin anew
)

// begin makes first the first number, of a window that begins at now.
func (o *order) begin(first uint64, now time.Duration) {
	o.next, o.at, o.refused = first, now, 0
}

// fits tells whether number n may be one of asked questions: each of those that have no answer
// may have arrived twice.
func (o *order) fits(n, asked uint64) bool { return n < o.next || n-o.next <= 2*(asked-o.spent) }

// judge takes number n of an answer to one of asked questions. later: it was sent after the
// highest number had come, and this is its first answer. Where restarts are told
// by other means (told), a lower number proves none.
func (o *order) judge(n, asked uint64, later, told bool) place {
	behind := n < o.next
	switch {
	case behind && !later, !behind && o.fits(n, asked):
		return placeFits
	case !later:
		return placeRefused
	case behind && !told:
		return placeAnew
	}
	if n <= o.last {
		o.refused = 0
	}
	o.last = n
	if o.refused++; o.refused < agreeing {
		return placeRefused
	}
	return placeAnew
}

// take notes that number n is in the window; of the asked questions so many are unheard of.
func (o *order) take(n, asked, unheard uint64, now time.Duration) {
	if n >= o.next {
		*o = order{next: n + 1, at: now, spent: asked - unheard}
	}
}
