package loss

// Window sums up the deltas since the last Reset. The zero value is empty.
type Window struct{ decided, lost, bursts uint64 }

// Add takes what changed.
func (w *Window) Add(d Delta) {
	w.decided += d.Decided
	w.lost += d.Lost
	w.bursts += d.Bursts
}

// Reset begins a new window.
func (w *Window) Reset() { *w = Window{} }

// Decided is how many packets the window decided.
func (w *Window) Decided() uint64 { return w.decided }

// Lost is how many of them were lost.
func (w *Window) Lost() uint64 { return w.lost }

// Bursts is how many runs of consecutive losses they form; a run that began in
// an earlier window counts here too, if nothing else was lost.
func (w *Window) Bursts() uint64 {
	if w.lost > 0 {
		return max(w.bursts, 1)
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

// BurstRatio is BurstR of ITU-T G.107: the mean length of the runs of
// consecutive losses over 1/(1-p), their mean length if losses at the ratio p
// were independent. 1 is random, above 1 bursty, below 1 regular. It is not
// defined without a loss, nor with nothing but losses.
func (w *Window) BurstRatio() (float64, bool) {
	p, ok := w.Ratio()
	if !ok || w.lost == 0 || p >= 1 {
		return 0, false
	}
	return float64(w.lost) / float64(w.Bursts()) * (1 - p), true
}
