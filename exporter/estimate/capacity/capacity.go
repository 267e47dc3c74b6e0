// Package capacity estimates a link's capacity from packet trains: N packets sent back to back, which the slowest
// link spaces by its time for each.
//
// The formula is b = (N-1) L / D, D being the time from the first to the last arrival (WPI EvDO report section
// 2.2.1, after Dovrolis et al.), L in IP bytes. It does not need synchronized clocks.
//
// A train is valid only if nothing else changed the distances of its packets; see Result. The error of its
// dispersion is bounded by the receiver's timestamps, its clock's rate and the deviation of arrivals from even
// distances (Verdict.Error); that of several trains by their errors and their differences (Summary).
//
// Two effects are not detected. With a shaper whose bucket exceeds the longest train, the result is the rate of the
// line before it. Cross traffic that is constant over a train's time slows all trains alike; the result is then the
// remaining rate.
package capacity

import (
	"fmt"
	"math"
	"slices"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/estimate/orderstat"
)

// Packet is a packet of a train, in the order of sending.
type Packet struct {
	// Sent is the send time by the sender's clock; zero: unknown. Arrived is the arrival of the first copy by the
	// receiver's; zero: unknown or, with Lost, never.
	Sent, Arrived instant.Time
	Lost          bool
	// Duplicates is the number of further copies.
	Duplicates int
}

// Train is a train: its packets have one size.
type Train struct {
	// IPBytes is the size of each packet with the IP header.
	IPBytes int
	Packets []Packet
}

// Options of Evaluate. The zero value is usable.
type Options struct {
	// StampError is the error limit of the time between two of the receiver's timestamps. Zero: typicalStampError.
	StampError time.Duration
	// Drift is the relative rate error of the receiver's clock, at least Oscillator.
	Drift float64
}

const (
	// typicalStampError is the error of a kernel timestamp on a host that is not busy: p99 of kernel to kernel over
	// veth is 1.5 us. The detection of the sender's pauses uses it.
	typicalStampError = 2 * time.Microsecond
	// Oscillator is the largest rate error of an oscillator that is not disciplined.
	Oscillator = 100e-6
)

// Result is clean, or the reason why a train is invalid.
type Result uint8

// The results. If several hold, one of Lost to SenderPace has priority over the others, but Coalesced has priority
// over SenderPace: equal timestamps do not show the pace.
const (
	// Clean: the slowest link determined the distances of the packets.
	Clean Result = iota
	// Lost: a packet did not arrive, or there are fewer than two.
	Lost
	// Reordered: a packet arrived before one that was sent earlier.
	Reordered
	// Duplicated: a packet arrived more than once.
	Duplicated
	// Unstamped: a packet has no kernel timestamp at one of the ends.
	Unstamped
	// SenderPace: most packets were sent no earlier than 0.8 of the link's time for those before, or one beyond the
	// train's first quarter was sent when the link was idle. A pause that does not leave the link idle is harmless.
	SenderPace
	// Coalesced: at least 30 % of the packets have the timestamp of the previous one: the receiver (GRO, or the
	// card) merged them.
	Coalesced
	// Batched: at least 30 % arrived right after the previous one: in groups, by interrupt or by slots of a
	// scheduled link. A train that is long compared with its groups remains valid.
	Batched
	// TokenBucket: the first packets arrived faster than the rest: a shaper passes a burst at the rate of the line
	// before it. For a train no longer than the burst this looks like a faster link; longer trains show it.
	TokenBucket
	// Interleaved: the mean interval of arrivals is well above the median, or arrivals deviate from even distances:
	// other packets were in between, or the link paused or varied.
	Interleaved
	// TooShort: the error of timestamps and clock may exceed a tenth of the dispersion.
	TooShort
)

// Results lists all values in order.
func Results() []Result {
	return []Result{Clean, Lost, Reordered, Duplicated, Unstamped, SenderPace, Coalesced, Batched, TokenBucket, Interleaved, TooShort}
}

// String is the value of the metric label `result`.
func (r Result) String() string {
	words := [...]string{
		"clean", "lost", "reordered", "duplicated", "no_timestamp", "sender_pace", "coalesced", "batched", "token_bucket", "interleaved", "too_short",
	}
	if int(r) >= len(words) {
		return "invalid"
	}
	return words[r]
}

// Words are the result as they follow a number of trains: "2 with lost packets".
func (r Result) Words() string {
	words := [...]string{
		"clean", "with lost packets", "out of order", "with duplicates", "without kernel timestamps", "sent too slowly", "merged by the receiver",
		"in batches", "slowed by a token bucket", "mixed with other packets", "too short",
	}
	if int(r) >= len(words) {
		return r.String()
	}
	return words[r]
}

// Verdict is the result of one train.
type Verdict struct {
	IPBytes int
	Result  Result
	// Evidence is the reason in words why the train is not clean.
	Evidence string
	// Capacity is b in IP bytes a second. Like Dispersion, it is defined for a train that is complete, in order and
	// timestamped, but valid only if Result is Clean.
	Capacity float64
	// Dispersion is the time from the first to the last arrival, MeanGap the mean interval. Both, and Capacity, are
	// without the first Skipped packets.
	Dispersion, MeanGap time.Duration
	// Error limits the difference of Dispersion from that of the link alone: the receiver's timestamps and clock,
	// and the deviation of arrivals from even distances.
	Error time.Duration
	// Skipped is how many packets at the begin were left out because the sender then paused until the link was
	// idle; at most a quarter of a clean train.
	Skipped int
	// Part is, of a train with losses, the verdict about the longest run of packets that arrived, if it is clean; else nil. A link that
	// is slow now and then loses the trains of that time, whose queue is full for longer, and clean ones are of its fast time only.
	Part *Verdict
}

// interval is the range of the capacity, given Error.
func (v *Verdict) interval() (low, high float64) {
	if low = v.bytes() / (v.Dispersion + v.Error).Seconds(); v.Error >= v.Dispersion {
		return low, math.Inf(1)
	}
	return low, v.bytes() / (v.Dispersion - v.Error).Seconds()
}

// bytes is the number of bytes that arrived within Dispersion.
func (v *Verdict) bytes() float64 { return v.Capacity * v.Dispersion.Seconds() }

// Summary is the result of the trains of one size.
type Summary struct {
	// Trains counts by result, indexed by Result.
	Trains [TooShort + 1]int
	// P5, Median and P95 are of the clean trains' capacity, in IP bytes a second; Low and High enclose the capacity
	// that Median estimates. They are defined only if OK.
	P5, Median, P95, Low, High float64
	// MeanGap is the mean dispersion of the clean trains: time between two packets.
	MeanGap time.Duration
	// OK: enough trains were clean, at least as many as contaminated ones (Coalesced and later results; Interleaved
	// counts twice), and they and the parts of those with losses agree. Trains with losses and the like are not counted, since they are repeated, nor
	// those that the sender delayed, which each train shows.
	OK bool
	// Refusal is, if not OK, the reason in words, and Cause the most frequent reason of trains that are not clean; Clean: there are
	// too few trains, or they disagree.
	Refusal  string
	Cause    Result
	Disagree bool // the reason is that the clean trains disagree
	// Capacities are those of the clean trains, ascending: the whole distribution.
	Capacities []float64
}

const (
	// MinClean is the least number of clean trains of a Summary.
	MinClean = 3
	// agree is the largest relative difference of the 95th and the 5th percentile, beyond the errors of both.
	agree = 0.1
	// missed is the probability that the interval of scattered trains misses the value.
	missed = 0.01
)

// intervals are the limits of the capacity by several trains, and what each found, ascending.
type intervals struct{ lows, highs, found []float64 }

func (in *intervals) add(v *Verdict) {
	low, high := v.interval()
	in.lows, in.highs, in.found = append(in.lows, low), append(in.highs, high), append(in.found, v.Capacity)
}

func (in *intervals) sort() {
	slices.Sort(in.lows)
	slices.Sort(in.highs)
	slices.Sort(in.found)
}

// disagreement is, in words, that the trains disagree; empty: they agree.
func (in *intervals) disagreement() string {
	if orderstat.Quantile(in.lows, 0.95) <= (1+agree)*orderstat.Quantile(in.highs, 0.05) {
		return ""
	}
	return fmt.Sprintf("the trains disagree: 5 %% found %s or less, 5 %% %s or more; the link's rate varies, or others use it",
		unit.BytesPerSecond.Format(orderstat.Quantile(in.found, 0.05)), unit.BytesPerSecond.Format(orderstat.Quantile(in.found, 0.95)))
}

// Summarize joins the results of trains of one size; least of them must be clean.
func Summarize(verdicts []Verdict, least int) (s Summary) {
	var whole, all intervals           // of clean trains, and with the parts of others
	var evidence [len(s.Trains)]string // of the last one with each result
	for i := range verdicts {
		v := &verdicts[i]
		s.Trains[v.Result]++
		evidence[v.Result] = v.Evidence
		if v.Part != nil {
			all.add(v.Part)
		}
		if v.Result == Clean {
			whole.add(v)
			all.add(v)
			s.MeanGap += v.MeanGap
		}
	}
	// If cross traffic contaminates most trains, the clean ones are slightly contaminated.
	clean, contaminated := s.Trains[Clean], s.Trains[Interleaved]
	for _, n := range s.Trains[Coalesced:] {
		contaminated += n
	}
	s.MeanGap /= time.Duration(max(1, clean))
	whole.sort()
	all.sort()
	s.Capacities = whole.found
	if want := max(least, MinClean, contaminated); clean < want {
		s.Refusal = fmt.Sprintf("%d of %d trains are clean, %d are needed", clean, len(verdicts), want)
		worst := slices.MaxFunc(Results()[Lost:], func(a, b Result) int { return s.Trains[a] - s.Trains[b] })
		if n := s.Trains[worst]; n > 0 {
			s.Cause = worst
			s.Refusal += fmt.Sprintf("; %d %s, such as: %s", n, worst.Words(), evidence[worst])
		}
		return s
	}
	for _, in := range []*intervals{&whole, &all} {
		if s.Refusal = in.disagreement(); s.Refusal != "" {
			s.Disagree = true
			return s
		}
	}
	p5, p95 := orderstat.Quantile(s.Capacities, 0.05), orderstat.Quantile(s.Capacities, 0.95)
	few := extension(clean) * (p95 - p5)
	s.OK, s.P5, s.Median, s.P95 = true, p5, orderstat.Median(s.Capacities), p95
	s.Low, s.High = max(0, orderstat.Quantile(whole.lows, 0.05)-few), orderstat.Quantile(whole.highs, 0.95)+few
	return s
}

// extension is the factor by which the interval of n trains is extended at either end, in ranges from the smallest to
// the largest value; zero from eight trains on.
//
// If the errors of the trains have any distribution without bias, smallest and largest enclose the true value with
// a probability of 1-2^(1-n). If all n are on one side of it and small errors are at least as frequent as large
// ones, the true value is more than k ranges from the nearest one in at most (1+k)^(1-n) of these cases.
func extension(n int) float64 {
	return max(0, math.Pow(missed, -1/float64(n-1))/2-1)
}

// Sustained compares long trains with a summary that is OK, of the same size. hidden is the least size in bytes of
// a token bucket that the trains do not show; refusal is, in words, that the long trains show one, so that the rate
// of the summary does not last.
//
// A bucket of b bytes passes b/(1-r/p) at the rate p of the line before it, r being its own rate: 2b if it halves
// the rate. Of the trains that keep the rate, including the short ones of packets each, the second longest counts,
// since a single one may be an outlier.
func (s *Summary) Sustained(long []Verdict, packetBytes, packets int) (hidden int, refusal string) {
	kept, slower, evidence := []int{detectable(packetBytes, packets-1)}, 0, ""
	for i := range long {
		v := &long[i]
		low, high := v.interval()
		switch {
		case v.Result == TokenBucket:
			slower, evidence = slower+1, v.Evidence
		case v.Result != Clean:
		case high < s.Low/(1+agree):
			slower, evidence = slower+1, fmt.Sprintf("trains of %d bytes arrived at %s, of %d at %s",
				int(v.bytes()+0.5), unit.BytesPerSecond.Format(v.Capacity), packetBytes*(packets-1), unit.BytesPerSecond.Format(s.Median))
		case low < s.High*(1+agree):
			kept = append(kept, detectable(packetBytes, int(v.bytes()+0.5)/packetBytes))
		}
	}
	if slower >= max(2, len(kept)) {
		return 0, "a token bucket, which longer trains empty: " + evidence
	}
	slices.Sort(kept)
	return kept[max(0, len(kept)-2)], ""
}

// detectable is the size in bytes of the largest bucket that a train of so many gaps shows.
func detectable(packetBytes, gaps int) int { return max(0, gaps-tail) * packetBytes / 2 }
