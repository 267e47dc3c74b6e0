package loss

// Window sums up the deltas since the last Reset. The zero value is empty.
type Window struct {
	decided, lost, bursts, joined uint64
	// unordered are losses of which it is not known in which runs they are.
	unordered uint64
}

// Add takes what changed.
func (w *Window) Add(d Delta) {
	if w.decided == 0 && d.Continued {
		w.bursts++ // what is left of a run that an earlier window began
	}
	w.decided += d.Decided
	w.lost += d.Lost
	w.bursts += d.Bursts
	w.joined += d.Joined
	w.unordered += d.Unordered
}

// Reset begins a new window.
func (w *Window) Reset() { *w = Window{} }

// Decided is how many packets the window decided.
func (w *Window) Decided() uint64 { return w.decided }

// Lost is how many of them were lost.
func (w *Window) Lost() uint64 { return w.lost }

// Bursts is how many runs of consecutive losses they form within the window: a run that
// crosses its border is one in either window. Losses whose order is not known are as many
// runs, as random ones nearly are.
func (w *Window) Bursts() uint64 {
	if w.lost > 0 {
		return max(w.bursts+w.unordered-min(w.bursts, w.joined), 1)
	}
	return 0
}

// Ratio is lost over decided, 0..1 (RFC 7680 section 4.1); not defined if
// nothing was decided.
func (w *Window) Ratio() (float64, bool) {
	// A far end that lies must not make a ratio above 1.
	of := max(w.decided, w.lost)
	if of == 0 {
		return 0, false
	}
	return float64(w.lost) / float64(of), true
}

// BurstRatio is BurstR of ITU-T G.107 clause 7.5: the mean length of the runs of
// consecutive losses over 1/(1-p), their mean length if losses at the ratio p
// were independent. 1 is random, above 1 bursty, below 1 regular. It is not
// defined without a loss, nor with nothing but losses, nor where it is not known in which
// runs packets were lost.
func (w *Window) BurstRatio() (float64, bool) {
	p, ok := w.Ratio()
	if !ok || w.lost == 0 || p >= 1 || w.unordered > 0 {
		return 0, false
	}
	return float64(w.lost) / float64(w.Bursts()) * (1 - p), true
}
