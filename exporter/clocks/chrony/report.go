package chrony

import (
	"fmt"
	"math"
	"strings"
	"time"

	fb "github.com/facebook/time/ntp/chrony"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/clocks/internal/publish"
	"oneway.example/exporter/core/bound"
	"oneway.example/exporter/core/instant"
)

// Values of tracking.
const (
	leapInsert         = 1
	leapDelete         = 2
	leapUnsynchronized = 3
	maxStratum         = 16
	refIDLocal         = 0x7f7f0101 // 127.127.1.1: chronyd's local mode
)

// report is a checked tracking reply, in seconds and ratios, with the signs of package clock.
type report struct {
	// at is the time on the monotonic clock when the request was sent. chronyd computes the dispersion a little later,
	// when it replies: aged from at, the bound is slightly too large.
	at time.Duration
	// took is the duration of the exchange: the reply was generated between at and at+took.
	took time.Duration
	// era is REALTIME minus MONOTONIC at that time, steps the count of steps.
	era           time.Duration
	steps         uint64
	refID         uint32
	reference     publish.Reference
	leap, stratum uint16
	updated       instant.Time // chronyd's reference time; zero: never
	interval      float64      // between the last two updates
	// offset is positive if the clock is fast, frequency if the uncorrected clock gains; lastOffset is the measurement
	// of the last update.
	offset, lastOffset, frequency, residual, skew float64
	// delay is the root delay, dispersion the root dispersion at the time of the reply.
	delay, dispersion float64
}

// newReport checks a tracking reply.
func newReport(t *fb.Tracking, sent, received clock.Check) (*report, error) {
	if err := implausibleReply(t); err != nil {
		return nil, &queryError{implausible, err}
	}
	return &report{
		at: sent.Now.Mono, took: received.Now.Mono - sent.Now.Mono, era: sent.Offset, steps: sent.Steps,
		refID: t.RefID, leap: t.LeapStatus, stratum: t.Stratum, reference: reference(t),
		updated:  instant.FromUnix(t.RefTime.Unix(), int64(t.RefTime.Nanosecond())),
		interval: t.LastUpdateInterval,
		// chronyd reports the correction to be added to the system clock.
		offset: -t.CurrentCorrection, lastOffset: t.LastOffset,
		frequency: t.FreqPPM * 1e-6, residual: t.ResidFreqPPM * 1e-6, skew: t.SkewPPM * 1e-6,
		// A negative root delay (asymmetric interleaved exchanges) is noise around zero.
		delay: math.Abs(t.RootDelay), dispersion: t.RootDispersion,
	}, nil
}

// longestStep is the largest step by another process that chronyd may not have detected (sched.c, JUMP_DETECT_THRESHOLD):
// its reference time may be in the future by this.
const longestStep = 10 * time.Second

// contradiction returns an error if a reply, received between two readings of the clock, is impossible for a clock that
// follows a source: chronyd adds to the dispersion of each source, and increases it from its reference time (reference.c,
// get_root_dispersion). 1 % is for the resolution of its floats.
func (r *report) contradiction(sent, received instant.Time) error {
	if !r.synchronized(false) || r.updated.IsZero() {
		return nil
	}
	age := sent.Sub(r.updated).Seconds() - math.Abs(r.offset)
	switch grown := age * (r.skew + math.Abs(r.residual)); {
	case r.updated.Sub(received) > longestStep+roundUp(math.Abs(r.offset)):
		return &queryError{implausible, fmt.Errorf("reference time %v is in the future", r.updated.Time().UTC())}
	case r.dispersion == 0, r.dispersion < 0.99*grown:
		return &queryError{implausible, fmt.Errorf("root dispersion %g s, %.0f s after the reference time; want %g s and more of its skew and residual frequency",
			r.dispersion, age, max(0, grown))}
	}
	return nil
}

// Limits of the meaningful numbers of chronyd. Its floats reach 4.6e18 s, which represents all larger values (util.c,
// UTI_FloatHostToNetwork).
const (
	// largestSkew is chronyd's limit, as a ratio (sourcestats.c, MAX_SKEW).
	largestSkew = 100
	// largestFrequency is far above what chronyd sets, as a ratio: that of a stopped clock.
	largestFrequency = 1
	// largestUpdate is the largest offset that chronyd accepts from a source, in seconds (util.c, MAX_OFFSET): a host
	// that starts in 1970 has one of 56 years.
	largestUpdate = 1 << 32
)

// implausibleReply returns an error if a number of a tracking reply is impossible for a useful clock, for example if it
// results in a bound above bound.Limit; each comparison is false for NaN.
func implausibleReply(t *fb.Tracking) error {
	offset, delay, seconds := math.Abs(t.CurrentCorrection), math.Abs(t.RootDelay), t.RefTime.Unix()
	switch limit := bound.Limit.Seconds(); {
	case t.LeapStatus > leapUnsynchronized:
		return fmt.Errorf("leap status %d", t.LeapStatus)
	case t.Stratum > maxStratum:
		return fmt.Errorf("stratum %d", t.Stratum)
	case !(t.RootDispersion >= 0) || !(offset+t.RootDispersion+delay/2 <= limit):
		return fmt.Errorf("offset %g s, root dispersion %g s, root delay %g s; want 0 or more of dispersion, "+
			"and a bound of %v at most", t.CurrentCorrection, t.RootDispersion, t.RootDelay, bound.Limit)
	case !(t.SkewPPM >= 0 && t.SkewPPM <= largestSkew*1e6):
		return fmt.Errorf("skew %g ppm, want 0 to %g", t.SkewPPM, largestSkew*1e6)
	case !(math.Abs(t.FreqPPM) <= largestFrequency*1e6) || !(math.Abs(t.ResidFreqPPM) <= largestFrequency*1e6):
		return fmt.Errorf("frequency %g ppm, residual frequency %g ppm, want %g at most",
			t.FreqPPM, t.ResidFreqPPM, largestFrequency*1e6)
	case !(math.Abs(t.LastOffset) <= largestUpdate) || !(math.Abs(t.LastUpdateInterval) <= largestUpdate):
		return fmt.Errorf("last offset %g s, update interval %g s, want %d s at most",
			t.LastOffset, t.LastUpdateInterval, int64(largestUpdate))
	case seconds < 0 || seconds >= math.MaxInt64/int64(time.Second):
		return fmt.Errorf("reference time %d s", seconds)
	}
	return nil
}

// reference describes what the clock follows. The reference ID of an NTP server is a hash or an address and stays
// hexadecimal; that of a reference clock is its name.
func reference(t *fb.Tracking) publish.Reference {
	id := fb.RefidAsHEX(t.RefID)
	if t.IPAddr == nil && t.RefID != refIDLocal && t.RefID != 0 {
		id = fb.RefidToString(t.RefID)
	}
	leaps := [...]string{"normal", "insert_second", "delete_second", "unsynchronized"}
	return publish.Reference{id, fmt.Sprint(t.Stratum), leaps[t.LeapStatus], kindOf(t)}
}

// synchronized reports whether chronyd reports that it follows a source.
func (r *report) synchronized(trustLocal bool) bool {
	if r.leap == leapUnsynchronized || r.stratum == 0 || r.stratum >= maxStratum || r.refID == 0 {
		return false
	}
	return r.refID != refIDLocal || trustLocal
}

// updatedAt is the last update on the monotonic clock.
func (r *report) updatedAt() time.Duration { return time.Duration(r.updated) - r.era }

// uncertainty is the error of the clock, in seconds, beyond the offset that chronyd reports, at the time of the reply.
func (r *report) uncertainty() float64 { return r.dispersion + r.delay/2 }

// boundAt is the error bound, in seconds, at a moment that is age away from the report; d is the possible change of the
// offset, silence the time since chronyd should have replied.
//
//	bound = |offset| + root dispersion + root delay/2              [chronyc(1), tracking]
//	        + age x (skew + |residual frequency| + maxclockerror)
//	        + (age + took) x drift, if away from zero; else what of it is beyond zero,
//	          or before the reply
//	        + silence x (slew beyond drift)
//
// The dispersion in a reply is that of the moment of the reply; the second line is the rate at which chronyd itself
// increases it (reference.c, get_root_dispersion). The residual frequency belongs there: it is the part of the estimated
// frequency error that chronyd has not corrected. As in chronyd, the rule is symmetric in age. The third line is for a
// clock that is being slewed, or that chronyd does not control (see drift).
//
// The last line is for a chronyd that has ended or hangs: a slew that it started after the reply continues, with |offset|
// to slew (see plannedRate).
func (r *report) boundAt(age, silence time.Duration, maxClockError float64, d drift) float64 {
	rate := r.skew + math.Abs(r.residual) + maxClockError
	away := math.Abs(age.Seconds())
	offset, moved := math.Abs(r.offset), (away+r.took.Seconds())*d.rate
	if d.toward && age >= 0 {
		unanswered := max(0, r.took-age).Seconds() // before the reply the offset was larger
		offset = max(offset+unanswered*d.rate, moved-offset)
	} else {
		offset += moved
	}
	return offset + r.dispersion + r.delay/2 + away*rate +
		max(0, silence.Seconds())*max(0, plannedRate(r.offset)-d.rate)
}

// maxRate is the largest frequency offset of chronyd and the kernel, 100000 ppm (chrony.conf(5), maxslewrate).
const maxRate = 0.1

// plannedRate is the highest rate at which chronyd slews an offset: it plans no slew shorter than 1 s (sys_generic.c,
// MIN_SLEW_DURATION) and sets no frequency above maxRate.
func plannedRate(offset float64) float64 { return min(maxRate, math.Abs(offset)) }

// drift is the possible change of a clock's offset after a reply, in addition to the effect of its frequency error.
//
// Slewing reduces the offset, but chronyd ends a slew by a timer in its process, which is late on a busy host: the clock
// then continues beyond zero at the rate of the slew. With `chronyd -x` the clock is not corrected, and the offset grows
// with the complete frequency error.
type drift struct {
	rate   float64 // seconds per second, 0 to maxRate
	toward bool    // toward zero; otherwise possibly away from it
}

// driftOf is the drift after the reply to, where from is the previous reply, or the same without one. After an update chronyd
// has planned a slew of the remaining offset and of the update's; without one, a slew continues at the observed rate, or
// has ended.
func driftOf(from, to *report) drift {
	elapsed := (to.at - from.at).Seconds()
	known := elapsed > 0 && from.steps == to.steps
	var seen float64
	if known {
		seen = min(maxRate, math.Abs(to.offset-from.offset)/elapsed)
	}
	if known && !updated(from, to) {
		return drift{seen, math.Abs(to.offset) < math.Abs(from.offset) && to.offset*from.offset >= 0}
	}
	return drift{max(seen, plannedRate(math.Abs(from.offset)+math.Abs(to.lastOffset))), false}
}

// minus is a - b, clamped to the longest duration of its sign, since an instant may have any value.
func minus(a, b time.Duration) time.Duration {
	switch d := a - b; {
	case b > 0 && d > a:
		return math.MinInt64
	case b < 0 && d < a:
		return math.MaxInt64
	default:
		return d
	}
}

// roundUp converts seconds to a Duration, rounded up.
func roundUp(seconds float64) time.Duration {
	ns := math.Ceil(seconds * 1e9)
	if !(ns < math.MaxInt64) {
		return math.MaxInt64
	}
	return time.Duration(ns)
}

// kindOf is the kind of chronyd's source: the label `kind` of oneway_clock_reference_info.
//
// chronyd's protocol has only the reference ID of a reference clock: refid in chrony.conf, or else the driver's name and a
// number (refclock.c: PPS0, SHM0, SOC0, PHC0). The names below are those of the project's configurations. A shared-memory
// segment without a name counts as nmea: it may contain sentences or pulses, and nmea is the weaker of the two.
func kindOf(t *fb.Tracking) string {
	switch {
	case t.RefID == refIDLocal:
		return "local"
	case t.IPAddr != nil:
		return "ntp"
	}
	name := strings.ToUpper(fb.RefidToString(t.RefID))
	for prefix, kind := range map[string]string{
		"PPS": "pps", "GPPS": "pps", "NMEA": "nmea", "GPS": "nmea", "SHM": "nmea", "PHC": "ptp", "PTP": "ptp",
	} {
		if strings.HasPrefix(name, prefix) {
			return kind
		}
	}
	return "other"
}
