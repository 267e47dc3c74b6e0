package sample

// Reason says why a one-way delay is, or is not, defined.
type Reason uint8

// The reasons. The zero value is Unknown, so that a Bound or Delay that
// nobody filled in is never taken for a valid one.
const (
	// Unknown: nothing was ever said about the clock.
	Unknown Reason = iota
	// OK: the delay is defined and its bound holds.
	OK
	// NoStamp: a needed stamp is missing.
	NoStamp
	// NoClock: the configuration says that this host's clock is not disciplined.
	NoClock
	// ClockSilent: the clock daemon does not answer, and its last answer is too old.
	ClockSilent
	// NearUnsynchronised: this host's clock is not synchronised.
	NearUnsynchronised
	// NearStepped: this host's clock was stepped within the window.
	NearStepped
	// FarUnsynchronised: the far end says S=0 in its Error Estimate.
	FarUnsynchronised
	// FarStepped: the far end's clock was stepped within the window.
	FarStepped
	// BoundTooLarge: the combined bound exceeds the configured limit.
	BoundTooLarge
)

// Reasons lists all values in order.
func Reasons() []Reason {
	return []Reason{
		Unknown, OK, NoStamp, NoClock, ClockSilent, NearUnsynchronised,
		NearStepped, FarUnsynchronised, FarStepped, BoundTooLarge,
	}
}

// String is the value of the metric label `reason`.
func (r Reason) String() string {
	switch r {
	case Unknown:
		return "unknown"
	case OK:
		return "ok"
	case NoStamp:
		return "no_stamp"
	case NoClock:
		return "no_clock"
	case ClockSilent:
		return "clock_silent"
	case NearUnsynchronised:
		return "near_unsynchronised"
	case NearStepped:
		return "near_stepped"
	case FarUnsynchronised:
		return "far_unsynchronised"
	case FarStepped:
		return "far_stepped"
	case BoundTooLarge:
		return "bound_too_large"
	}
	return "invalid"
}
