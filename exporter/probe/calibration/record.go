// Package calibration stores the error of the timestamps of an interface, and corrects delays by it: RFC 7679 section
// 3.7.3.
//
// The ends of a path are connected back to back (package backtoback), so that the true delay is known. For each direction
// the differences of measured and true delays have
//
//	systematic  their median
//	random      the distance of the 2.5th or the 97.5th percentile from it, whichever is larger: 95 % of the
//	            measurements are within this distance
//	largest     the largest distance of a measurement from it, except packets with a known TX uncertainty
//	            (decision 4), which have an error bound of their own
//
// # Errors of single timestamps
//
// A delay has two timestamps and contains only the sum of their errors:
//
//	forward = true + offset + TX error here + RX error there
//	reverse = true - offset + TX error there + RX error here
//
// The offset of the two clocks cancels in the mean S of both directions, but S cannot be divided among the timestamps. A
// kernel timestamp is never on the wire's side of the true time: a TX timestamp is taken before the packet leaves, an RX
// timestamp after it arrived (Linux Documentation/networking/timestamping.rst). Therefore both errors lengthen a delay,
// and each is between 0 and their sum. Half of S is assumed for each timestamp of the interface and removed from a delay;
// that the true error is between zero and all of S is part of the random error. If the ends had different clocks, the
// sum per direction is not known, and that part is three times as large.
//
// # Effect on error bounds
//
// A back-to-back run is a sample at one time and one load, which does not prove the absence of other errors later.
// Therefore by default a calibration only widens bounds: the resulting interval Value +- Bound contains the original one,
// and what was proven of that one remains proven. The systematic error changes the value and widens the bound by the
// same amount; a random error above the assumed one widens it further; a smaller one has no effect.
//
// A user who prefers a narrower interval can request it (Trusted, `oneway calibrate --trust`). The bound then has the
// largest observed error instead of the 95 % one, over at least MinTrustedCount packets per direction: with 95 %
// confidence 99.9 % of all packets are within it (Wilks 1941: 1-0.999^2995 > 0.95), as long as host, kernel, driver and
// load are those of the calibration. The first three are checked; the load cannot be checked.
//
// The timestamps of the remote end keep their assumed error, since the calibration of the remote end is not known here.
package calibration

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"oneway.example/exporter/core/bound"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/orderstat"
)

// Setups of a back-to-back run.
const (
	// Loopback is a run over this host's loopback interface.
	Loopback = "loopback"
	// Veth is a run over a veth pair between two private network namespaces.
	Veth = "veth"
	// Peer is a run to a reflector at the other end of a cable.
	Peer = "peer"
)

// Record is the measured calibration of one interface.
type Record struct {
	// Interface is the name by which the agent looks the record up, Driver the name of its driver ("" if unknown).
	Interface string `json:"interface"`
	Driver    string `json:"driver"`
	// Host and Kernel (uname -n and -r) are those of the calibrating host.
	Host   string `json:"host"`
	Kernel string `json:"kernel"`
	// Date is the time of the calibration.
	Date time.Time `json:"date"`
	// Setup is Loopback, Veth or Peer; At is the reflector's address.
	Setup string `json:"setup"`
	At    string `json:"reflector"`
	// SharedClock: both ends read the same clock.
	SharedClock bool `json:"shared_clock"`
	// Origin is the origin of the local timestamps: the name of sample.Kernel or sample.Hardware. The calibration is
	// valid for timestamps of this origin only.
	Origin string `json:"origin"`
	// PacketBytes is the UDP payload, Interval the time between packets: the random error depends on the load.
	PacketBytes int           `json:"payload_bytes"`
	Interval    time.Duration `json:"interval_ns"`
	// TrueDelay is the assumed true one-way delay.
	TrueDelay time.Duration `json:"true_delay_ns"`
	// Forward and Reverse are the measured errors.
	Forward Direction `json:"forward"`
	Reverse Direction `json:"reverse"`
	// Trusted: the user requests the measured error in the bound even if it is smaller than the assumed one; see the
	// package documentation.
	Trusted bool `json:"trusted"`
}

// MinTrustedCount is the number of packets that each direction needs for a trusted calibration.
const MinTrustedCount = 3000

// Limits of a record. Kernel or hardware timestamps with an error above one second are useless.
const (
	maxCount = 100_000_000
	maxError = time.Second
	maxText  = 255
)

// mean is S: the systematic error of both timestamps of a delay, without the offset between the clocks.
func (r *Record) mean() time.Duration { return (r.Forward.Systematic + r.Reverse.Systematic) / 2 }

// beyond is the largest distance to the mean, for the given error of each direction.
func (r *Record) beyond(of func(Direction) time.Duration) (most time.Duration) {
	for _, d := range []Direction{r.Forward, r.Reverse} {
		most = max(most, of(d)+(d.Systematic-r.mean()).Abs())
	}
	return most
}

// Errors derives the error of one timestamp of the interface, as described in the package documentation.
func (r *Record) Errors() bound.Calibration {
	half := r.mean() / 2
	e := bound.Calibration{Origin: sample.Kernel, Systematic: half}
	if r.Origin == sample.Hardware.String() {
		e.Origin = sample.Hardware
	}
	// The error of a timestamp is between zero and the sum of its direction. With one clock the sum is S plus the
	// distance that beyond adds; with two it is at most twice S, the sum of all four errors.
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

// Check returns an error if r is invalid.
func (r *Record) Check() error {
	if err := r.checkValues(); err != nil {
		return err
	}
	for i, d := range []Direction{r.Forward, r.Reverse} {
		if err := d.check(); err != nil {
			return fmt.Errorf("%s: %w", sample.Direction(i), err)
		}
	}
	// The kernel takes the timestamp before a packet leaves and after it has arrived, so that the round trip is at least twice
	// the true delay, whatever the clocks.
	systematic, random := r.Forward.Systematic+r.Reverse.Systematic, r.Forward.Random+r.Reverse.Random
	if r.Origin == sample.Kernel.String() && systematic < -random {
		return fmt.Errorf("true_delay_ns is %d; it must be at most %d, by the round trips", r.TrueDelay.Nanoseconds(), (r.TrueDelay + systematic/2).Nanoseconds())
	}
	return r.checkTrust()
}

func (r *Record) checkValues() error {
	for _, w := range []struct {
		name, value string
		needed      bool
	}{{"interface", r.Interface, true}, {"driver", r.Driver, false}, {"host", r.Host, true}, {"kernel", r.Kernel, true}, {"reflector", r.At, true}} {
		if w.needed && w.value == "" {
			return fmt.Errorf("%s is empty", w.name)
		}
		if len(w.value) > maxText {
			return fmt.Errorf("%s has %d bytes; the limit is %d", w.name, len(w.value), maxText)
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

// checkTrust returns an error if a trusted record cannot be trusted.
func (r *Record) checkTrust() error {
	if !r.Trusted {
		return nil
	}
	switch n := min(r.Forward.Count, r.Reverse.Count); {
	case n < MinTrustedCount:
		return fmt.Errorf("trusted, but with %d packets; trust needs %d in each direction", n, MinTrustedCount)
	case !r.SharedClock:
		return errors.New("trusted, but the ends had clocks of their own, whose error cannot be separated from that of the timestamps")
	case r.Origin != sample.Kernel.String():
		return fmt.Errorf("trusted, but the timestamps were of origin %s; only kernel timestamps have errors of a known sign", r.Origin)
	case min(r.Forward.Systematic, r.Reverse.Systematic) < 0:
		return errors.New("trusted, but the systematic error is negative: the assumed true delay is too large")
	}
	return nil
}

// Direction is the error of the delays of one direction of a back-to-back run. The zero value has no packets.
type Direction struct {
	// Count is the number of delays used.
	Count int `json:"used_packets"`
	// Systematic is the median of the measured minus the true delay; it may be
	// negative. RFC 7679 section 3.7.3.
	Systematic time.Duration `json:"systematic_ns"`
	// Random is the half-width of the interval around Systematic with 95 % of them, from the 2.5th and the 97.5th
	// percentile. RFC 7679 section 3.7.3.
	Random time.Duration `json:"random_ns"`
	// Largest is the largest distance of any of them to Systematic, except packets whose TX uncertainty
	// (sample.Stamp.TXUncertainty) is above txUncertaintyFrom and covers it.
	Largest time.Duration `json:"largest_ns"`
}

// txUncertaintyFrom is the TX uncertainty above which a packet counts as uncertain, as in metric.DelayTXUncertainty.
const txUncertaintyFrom = bound.KernelError

// observation is one measured delay.
type observation struct{ delay, txUncertainty time.Duration }

// summarize sorts all and computes their error; all must not be empty.
func summarize(all []observation, trueDelay time.Duration) Direction {
	slices.SortFunc(all, func(a, b observation) int { return cmp.Compare(a.delay, b.delay) })
	at := func(q float64) time.Duration { return orderstat.Quantile(all, q).delay }
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
