// Package calibration knows how far the time stamps of an interface are off, and
// takes that out of delays: RFC 7679 section 3.7.3.
//
// The ends of a path are put back to back (package backtoback), so that the true
// delay is known. Each direction then has, of its measured minus its true delays,
//
//	systematic  their median
//	random      how far the 2.5th or the 97.5th percentile lies from it, whichever
//	            is farther: 95 % of the measurements are within so much
//	largest     how far any of them lies from it, but for what is known to have been
//	            held by its host after its stamp (decision 4), which has a bound of its own
//
// # What one host can honestly say
//
// A delay has two stamps and shows the sum of their errors only:
//
//	forward = true + offset + sent here + received there
//	reverse = true - offset + sent there + received here
//
// The offset of two clocks cancels in the mean of both directions, S; nothing
// divides S among the stamps. But a stamp of the kernel is never on the wire's side
// of the truth: sending is stamped before the packet leaves, receiving after it came
// (Linux Documentation/networking/timestamping.rst). So both errors lengthen a delay,
// and each lies between 0 and their sum. Half of S is taken for either stamp of the
// interface and removed from a delay; that the truth may be anything from none to all
// of it is part of the random error. Where the ends had clocks of their own the sum
// is not known by direction, and that part is three times as large.
//
// # What becomes of a bound
//
// A back-to-back run is a sample, in one hour and at one load; that nothing else
// happens later is not proven by it. So by default a calibration only widens: the
// interval Value +- Bound that comes out contains the one that went in, and what was
// proven of that one stays proven. The systematic error moves the value and widens the
// bound by as much; a random error above the one assumed widens it further; a smaller
// one changes nothing.
//
// Who prefers a narrower interval may say so (Trusted, `oneway calibrate --trust`).
// The bound is then the largest error seen, not the 95 % one, over TrustCount packets
// a direction at the least: with 95 % confidence 99.9 % of all packets are within it
// (Wilks 1941: 1-0.999^2995 > 0.95), as long as host, kernel, driver and load are
// those of the calibration. The first three are checked, the load cannot be.
//
// The remote end's stamps keep the error that is assumed of them: its calibration is
// not known here.
package calibration

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"oneway.example/exporter/bound"
	"oneway.example/exporter/estimate/order"
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
	Interface string `json:"interface"`
	Driver    string `json:"driver"`
	// Host and Kernel (uname -n and -r) are those of the calibration.
	Host   string `json:"host"`
	Kernel string `json:"kernel"`
	// Date is when it was taken.
	Date time.Time `json:"date"`
	// Setup is Loopback, Veth or Peer; At is the reflector's address.
	Setup string `json:"setup"`
	At    string `json:"at"`
	// SharedClock: both ends read one clock.
	SharedClock bool `json:"shared_clock"`
	// Origin of the local stamps: the word of sample.Kernel or sample.Hardware. The calibration is
	// good for stamps of this origin only.
	Origin string `json:"origin"`
	// PacketBytes is the UDP payload, Interval the time between packets: random error
	// depends on the load.
	PacketBytes int           `json:"payload_bytes"`
	Interval    time.Duration `json:"interval_ns"`
	// TrueDelay is what was taken for the true delay of one way.
	TrueDelay time.Duration `json:"true_delay_ns"`
	// Forward and Reverse are what was measured.
	Forward Direction `json:"forward"`
	Reverse Direction `json:"reverse"`
	// Trusted: the user wants the measured error in the bound even where it is smaller
	// than the assumed one; see the package's documentation.
	Trusted bool `json:"trusted"`
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
	e := bound.Calibration{Origin: sample.Kernel, Systematic: half}
	if r.Origin == sample.Hardware.String() {
		e.Origin = sample.Hardware
	}
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
	if err := r.checkValues(); err != nil {
		return err
	}
	for i, d := range []Direction{r.Forward, r.Reverse} {
		if err := d.check(); err != nil {
			return fmt.Errorf("%s: %w", sample.Direction(i), err)
		}
	}
	return r.checkTrust()
}

func (r *Record) checkValues() error {
	for _, w := range []struct {
		name, value string
		needed      bool
	}{{"interface", r.Interface, true}, {"driver", r.Driver, false}, {"host", r.Host, true}, {"kernel", r.Kernel, true}, {"at", r.At, true}} {
		if w.needed && w.value == "" {
			return fmt.Errorf("%s is empty", w.name)
		}
		if len(w.value) > maxText {
			return fmt.Errorf("%s has %d bytes; at most %d make sense", w.name, len(w.value), maxText)
		}
	}
	switch {
	case r.Setup != Loopback && r.Setup != Veth && r.Setup != Peer:
		return fmt.Errorf("setup is %q; it must be %q, %q or %q", r.Setup, Loopback, Veth, Peer)
	case r.Setup != Peer && !r.SharedClock:
		return fmt.Errorf("shared_clock is false, but both ends of %s are on one host", r.Setup)
	case r.Origin != sample.Kernel.String() && r.Origin != sample.Hardware.String():
		return fmt.Errorf("origin is %q; it must be %q or %q", r.Origin, sample.Kernel, sample.Hardware)
	case r.Date.UTC().Year() < 1970 || r.Date.UTC().Year() > 9999:
		return fmt.Errorf("date is %s; it must be between 1970 and 9999", r.Date.UTC())
	case r.TrueDelay < 0 || r.TrueDelay > time.Hour:
		return fmt.Errorf("true_delay_ns is %d; it must be between 0 and one hour", r.TrueDelay.Nanoseconds())
	case r.Interval < 0 || r.Interval > time.Hour:
		return fmt.Errorf("interval_ns is %d; it must be between 0 and one hour", r.Interval.Nanoseconds())
	case r.PacketBytes < 1 || r.PacketBytes > 65_535:
		return fmt.Errorf("payload_bytes is %d; it must be between 1 and 65535", r.PacketBytes)
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
	case r.Origin != sample.Kernel.String():
		return fmt.Errorf("trusted, but the stamps were of origin %s; only those of the kernel are known to lie on one side of the truth", r.Origin)
	case min(r.Forward.Systematic, r.Reverse.Systematic) < 0:
		return errors.New("trusted, but the systematic error is negative: the true delay was taken for too large")
	}
	return nil
}

// Direction is the error of the delays of one direction of a back-to-back run. The
// zero value is that of no packets.
type Direction struct {
	// Count is how many delays were used.
	Count int `json:"count"`
	// Systematic is the median of the measured minus the true delay; it may be
	// negative. RFC 7679 section 3.7.3.
	Systematic time.Duration `json:"systematic_ns"`
	// Random is the half-width of the interval about Systematic that holds 95 % of
	// them, from the 2.5th and the 97.5th percentile. RFC 7679 section 3.7.3.
	Random time.Duration `json:"random_ns"`
	// Largest is the largest distance of any of them to Systematic, but for packets
	// that were held (see txUncertaintyFrom) and whose bound (sample.Stamp.TXUncertainty) covers it.
	Largest time.Duration `json:"largest_ns"`
}

// txUncertaintyFrom is from when on a packet counts as held by its host after its stamp, as in
// metric.DelayTXUncertainty.
const txUncertaintyFrom = 25 * time.Microsecond

// observation is one measured delay.
type observation struct{ delay, txUncertainty time.Duration }

// summarize reorders all and finds their error; there must be at least one.
func summarize(all []observation, trueDelay time.Duration) Direction {
	slices.SortFunc(all, func(a, b observation) int { return cmp.Compare(a.delay, b.delay) })
	at := func(q float64) time.Duration { return order.Quantile(all, q).delay }
	d := Direction{Count: len(all), Systematic: at(0.5) - trueDelay}
	d.Random = max(at(0.5)-at(0.025), at(0.975)-at(0.5))
	for _, o := range all {
		off := o.delay - at(0.5)
		if covered := o.txUncertainty > txUncertaintyFrom && off > 0 && off <= o.txUncertainty; !covered {
			d.Largest = max(d.Largest, off.Abs())
		}
	}
	return d
}
