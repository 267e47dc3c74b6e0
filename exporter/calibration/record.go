package calibration

import (
	"errors"
	"fmt"
	"time"

	"oneway.example/exporter/bound"
	"oneway.example/exporter/sample"
)

// Setups of a back-to-back run.
const (
	// Loopback: over this host's loopback interface.
	Loopback = "loopback"
	// Veth: over a veth pair between two private network namespaces.
	Veth = "veth"
	// Peer: a reflector at the other end of a cable.
	Peer = "peer"
)

// Record is the calibration of one interface, as it was measured.
type Record struct {
	// Interface is the name by which the agent looks it up, Driver the kernel's name
	// of its kind ("" where it does not say).
	Interface, Driver string
	// Host and Kernel (uname -n and -r) are those of the calibration.
	Host, Kernel string
	// Date is when it was taken.
	Date time.Time
	// Setup is Loopback, Veth or Peer; At is the reflector's address.
	Setup, At string
	// SharedClock: both ends read one clock.
	SharedClock bool
	// Origin of the near stamps: sample.Kernel or sample.Hardware. The calibration is
	// good for stamps of this origin only.
	Origin sample.Origin
	// PacketBytes is the UDP payload, Interval the time between packets: random error
	// depends on the load.
	PacketBytes int
	Interval    time.Duration
	// TrueDelay is what was taken for the true delay of one way.
	TrueDelay time.Duration
	// Forward and Reverse are what was measured.
	Forward, Reverse Direction
	// Trusted: the user wants the measured error in the bound even where it is smaller
	// than the assumed one; see the package's documentation.
	Trusted bool
}

// TrustCount is how many packets each direction needs to be trusted.
const TrustCount = 3000

// Limits of what a record may say. A stamp of the driver that is off by more than
// a second is of no use.
const (
	maxCount = 100_000_000
	maxError = time.Second
	maxText  = 255
)

// mean is S: the systematic error of both stamps of a delay, free of the offset
// between the clocks.
func (r *Record) mean() time.Duration { return (r.Forward.Systematic + r.Reverse.Systematic) / 2 }

// beyond is the largest distance to the mean of what of gives.
func (r *Record) beyond(of func(Direction) time.Duration) (most time.Duration) {
	for _, d := range []Direction{r.Forward, r.Reverse} {
		most = max(most, of(d)+(d.Systematic-r.mean()).Abs())
	}
	return most
}

// Errors derives the error of one stamp of the interface; the package's
// documentation says how.
func (r *Record) Errors() bound.Calibration {
	half := r.mean() / 2
	e := bound.Calibration{Origin: r.Origin, Systematic: half}
	// A stamp has between none and all of its direction's sum. That is S, but for the
	// distance that beyond adds, with one clock; with two it is only known to be at
	// most twice S, the sum of all four stamps.
	e.Random = r.beyond(func(d Direction) time.Duration { return d.Random }) + half.Abs()
	if !r.SharedClock {
		e.Random += r.mean().Abs()
	}
	if r.Trusted {
		e.Trusted = true
		e.Largest = r.beyond(func(d Direction) time.Duration { return d.Largest }) + half.Abs()
	}
	return e
}

// Check says what is wrong with r, nil if nothing is.
func (r *Record) Check() error {
	if err := r.checkWords(); err != nil {
		return err
	}
	for name, d := range map[string]time.Duration{"true_delay_ns": r.TrueDelay, "interval_ns": r.Interval} {
		if d < 0 || d > time.Hour {
			return fmt.Errorf("%s is %d; it must be between 0 and one hour", name, d.Nanoseconds())
		}
	}
	if r.PacketBytes < 1 || r.PacketBytes > 65_535 {
		return fmt.Errorf("packet_bytes is %d; it must be between 1 and 65535", r.PacketBytes)
	}
	if err := r.Forward.check(); err != nil {
		return fmt.Errorf("forward: %w", err)
	}
	if err := r.Reverse.check(); err != nil {
		return fmt.Errorf("reverse: %w", err)
	}
	return r.checkTrust()
}

func (r *Record) checkWords() error {
	for _, w := range []struct {
		name, value string
		needed      bool
	}{{"interface", r.Interface, true}, {"driver", r.Driver, false}, {"host", r.Host, true}, {"kernel", r.Kernel, true}, {"at", r.At, true}} {
		if w.needed && w.value == "" {
			return fmt.Errorf("%s is empty", w.name)
		}
		if len(w.value) > maxText {
			return fmt.Errorf("%s has %d octets; at most %d make sense", w.name, len(w.value), maxText)
		}
	}
	switch {
	case r.Setup != Loopback && r.Setup != Veth && r.Setup != Peer:
		return fmt.Errorf("setup is %q; it must be %q, %q or %q", r.Setup, Loopback, Veth, Peer)
	case r.Setup != Peer && !r.SharedClock:
		return fmt.Errorf("shared_clock is false, but both ends of %s are on one host", r.Setup)
	case r.Origin != sample.Kernel && r.Origin != sample.Hardware:
		return fmt.Errorf("origin is %q; it must be %q or %q", r.Origin, sample.Kernel, sample.Hardware)
	case r.Date.UTC().Year() < 1970 || r.Date.UTC().Year() > 9999:
		return fmt.Errorf("date is %s; it must be between 1970 and 9999", r.Date.UTC())
	}
	return nil
}

func (d Direction) check() error {
	switch {
	case d.Count < MinCount || d.Count > maxCount:
		return fmt.Errorf("count is %d; it must be between %d and %d", d.Count, MinCount, maxCount)
	case d.Systematic.Abs() > maxError:
		return fmt.Errorf("systematic_ns is %d; it must be within 1 s", d.Systematic.Nanoseconds())
	case d.Random < 0 || d.Random > maxError:
		return fmt.Errorf("random_ns is %d; it must be between 0 and 1 s", d.Random.Nanoseconds())
	case d.Largest < 0 || d.Largest > time.Minute:
		return fmt.Errorf("largest_ns is %d; it must be between 0 and one minute", d.Largest.Nanoseconds())
	}
	return nil
}

// checkTrust says why a record cannot be trusted that shall be.
func (r *Record) checkTrust() error {
	if !r.Trusted {
		return nil
	}
	switch n := min(r.Forward.Count, r.Reverse.Count); {
	case n < TrustCount:
		return fmt.Errorf("trusted, but with %d packets; trust needs %d in each direction", n, TrustCount)
	case !r.SharedClock:
		return errors.New("trusted, but the ends had clocks of their own, whose error cannot be told from that of the stamps")
	case r.Origin != sample.Kernel:
		return fmt.Errorf("trusted, but the stamps were of origin %s; only those of the kernel are known to lie on one side of the truth", r.Origin)
	case min(r.Forward.Systematic, r.Reverse.Systematic) < 0:
		return errors.New("trusted, but the systematic error is negative: the true delay was taken for too large")
	}
	return nil
}
