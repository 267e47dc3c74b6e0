package ppsfit

// Verdict is what became of a pulse.
type Verdict uint8

// The verdicts.
const (
	// Learning: nothing speaks against the pulse, but too few agree yet.
	Learning Verdict = iota
	// Accepted: the pulse is where the pulses before it have it, and is used.
	Accepted
	// Doubled: less than half a second after the pulse before: an edge that bounced,
	// or the other edge. The pulse is dropped. (The doubled interval of figure 4.2,
	// a pulse missed, needs no verdict: the next pulse is where the fit has it.)
	Doubled
	// Noisy: the interval is off the median by more than the threshold, or the pulse
	// is none: not a whole second, a negative reading.
	Noisy
	// Gap: the first pulse after more than 16 s without a good one; the rate may
	// have changed meanwhile. The fit starts anew with it.
	Gap
	// Step: CLOCK_REALTIME counts other seconds than the pulses do (it was stepped, or
	// the kernel put in a leap second), or all pulses have moved to another phase, or
	// the raw clock has. The fit starts anew.
	Step
)

// Verdicts lists all values in order.
func Verdicts() []Verdict { return []Verdict{Learning, Accepted, Doubled, Noisy, Gap, Step} }

// Rejected reports whether there was something wrong with the pulse.
func (v Verdict) Rejected() bool { return v > Accepted }

// String is the word for it, and the value of the metric label `reason`.
func (v Verdict) String() string {
	switch v {
	case Learning:
		return "learning"
	case Accepted:
		return "accepted"
	case Doubled:
		return "doubled"
	case Noisy:
		return "noisy"
	case Gap:
		return "gap"
	case Step:
		return "step"
	}
	return "invalid"
}
