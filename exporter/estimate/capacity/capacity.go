// Package capacity learns a link's capacity from packet trains: N packets sent back to
// back, and spread by the slowest link to the time that it takes for each.
//
// The formula is b = (N-1) L / D, D being the time from the first to the last
// arrival (WPI EvDO report section 2.2.1, after Dovrolis et al.), L in IP bytes. Nothing in it
// needs the two clocks to agree.
//
// A train says something of the link only if nothing else has spread, or gathered, its
// packets. What did is its Result; see there. How far its dispersion may be off is bounded
// by the receiver's stamps, its clock's rate and how far arrivals lie off even distances
// (Verdict.Error), and the result of several trains by what these say and by how far they
// differ (Summary).
//
// Trains cannot tell everything. A shaper whose bucket holds more than the longest train
// shows the rate of the line before it; and traffic of others that is even over a train's
// time slows all of them alike: the value is then what is left to a train.
package capacity

import (
	"fmt"
	"math"
	"slices"
	"time"

	"oneway.example/exporter/estimate/order"
	"oneway.example/exporter/instant"
)

// Packet is a packet of a train, in the order of sending.
type Packet struct {
	// Sent is when it left by the sender's clock; zero: not known. Arrived is when its first copy
	// came by the receiver's; zero: not known or, with Lost, never.
	Sent, Arrived instant.Time
	Lost          bool
	// Duplicates is how many more copies came.
	Duplicates int
}

// Train is a train: its packets have one size.
type Train struct {
	// IPBytes is the size of each packet with the IP header.
	IPBytes int
	Packets []Packet
}

// Options of Judge. The zero value is good.
type Options struct {
	// StampError is how far the time between two of the receiver's stamps may be off. Zero:
	// typicalStampError.
	StampError time.Duration
	// Drift is by what share of itself a time by the receiver's clock may be off; what is
	// less than Oscillator is that.
	Drift float64
}

const (
	// typicalStampError is what a kernel's software stamp is off by on a host that is not
	// busy: p99 of kernel to kernel over veth is 1.5 us. The sender's pauses are looked for by it.
	typicalStampError = 2 * time.Microsecond
	// Oscillator is how remote one that nothing disciplines may run wrong.
	Oscillator = 100e-6
)

// Result says whether a train is clean, or why it says nothing.
type Result uint8

// The results. Of several that hold, one of Lost to SenderPace is said rather than one of the others,
// but Coalesced before SenderPace: with stamps equal nothing can be said of pace.
const (
	// Clean: the train was spread by the slowest link.
	Clean Result = iota
	// Lost: a packet did not arrive, or there are fewer than two.
	Lost
	// Reordered: a packet arrived before one that left earlier.
	Reordered
	// Duplicated: a packet arrived more than once.
	Duplicated
	// Unstamped: a packet has no kernel stamp at one of the ends.
	Unstamped
	// SenderPace: most packets left the sender no earlier than 0.8 of the time that the link
	// needs for those before, or one beyond the train's first quarter left when the link had
	// sent all before it. A pause that the link has not noticed does no harm.
	SenderPace
	// Coalesced: three of ten packets or more have the stamp of the one before: the
	// receiver (GRO, or the card) merged them.
	Coalesced
	// Batched: as many came right after the one before: in groups, of an interrupt each, or of
	// a link that is scheduled in slots. A train that is long beside its groups bears them.
	Batched
	// TokenBucket: the first packets came faster than the rest: a shaper lets a burst
	// pass at the rate of the line before it. A train that is no longer than the burst
	// cannot be told from one on a faster link: longer ones can.
	TokenBucket
	// Interleaved: the mean time between arrivals is well above the median, or arrivals wander
	// off even distances: packets of others were in between, or the link paused or varied.
	Interleaved
	// TooShort: stamps and clock may be off by more than a tenth of the dispersion.
	TooShort
)

// Results lists all values in order.
func Results() []Result {
	return []Result{Clean, Lost, Reordered, Duplicated, Unstamped, SenderPace, Coalesced, Batched, TokenBucket, Interleaved, TooShort}
}

// String is the value of the metric label `result`.
func (r Result) String() string {
	words := [...]string{
		"clean", "lost", "reordered", "duplicated", "unstamped", "sender_pace", "coalesced", "batched", "token_bucket", "interleaved", "too_short",
	}
	if int(r) >= len(words) {
		return "invalid"
	}
	return words[r]
}

// Verdict is what one train said.
type Verdict struct {
	IPBytes int
	Result  Result
	// Evidence says in words why it is not clean.
	Evidence string
	// Capacity is b in IP bytes a second; defined, as Dispersion is, for a train that is
	// complete, in order and stamped, but to be believed only if Result is Clean.
	Capacity float64
	// Dispersion is the time from the first to the last arrival, MeanGap the mean time between
	// two. Both, and Capacity, are without the first Skipped packets.
	Dispersion, MeanGap time.Duration
	// Error is how far Dispersion may be off what the link alone makes it: the receiver's
	// stamps and clock, and how far arrivals lie off even distances.
	Error time.Duration
	// Skipped is how many packets at the begin were left out, for the sender paused after
	// them until the link was idle; of a clean train a quarter at the most.
	Skipped int
}

// interval is what the capacity may be, given Error.
func (v *Verdict) interval() (low, high float64) {
	if low = v.bytes() / (v.Dispersion + v.Error).Seconds(); v.Error >= v.Dispersion {
		return low, math.Inf(1)
	}
	return low, v.bytes() / (v.Dispersion - v.Error).Seconds()
}

// bytes came within Dispersion.
func (v *Verdict) bytes() float64 { return v.Capacity * v.Dispersion.Seconds() }

// Summary is what the trains of one size said.
type Summary struct {
	// Trains counts by result, indexed by Result.
	Trains [TooShort + 1]int
	// P5, Median and P95 are of the clean trains' capacity, in IP bytes a second, and Low
	// and High enclose the capacity of which Median is the estimate; defined only if OK.
	P5, Median, P95, Low, High float64
	// MeanGap is the mean dispersion of the clean trains: time between two packets.
	MeanGap time.Duration
	// OK: enough trains were clean, no fewer than were contaminated (Coalesced and what
	// follows; Interleaved count twice), and they agree. Trains with a loss, and the like, are not counted: they are
	// to be repeated; nor those that the sender held up, which is seen in each.
	OK bool
	// Refusal says, if not OK, why, in words.
	Refusal string
	// Capacities are of the clean trains, ascending: the whole distribution.
	Capacities []float64
}

const (
	// MinClean is how many clean trains a Summary needs at the least.
	MinClean = 3
	// agree is by what share the train of the 95th percentile may be faster than that of the
	// 5th, beyond what each may be off.
	agree = 0.1
	// missed is how often the interval of trains that scatter may miss.
	missed = 0.01
)

// Summarize puts together what trains of one size said, of which least must be clean.
func Summarize(verdicts []Verdict, least int) (s Summary) {
	var lows, highs []float64
	var evidence [len(s.Trains)]string // of the last with each result
	for i := range verdicts {
		v := &verdicts[i]
		s.Trains[v.Result]++
		if evidence[v.Result] = v.Evidence; v.Result != Clean {
			continue
		}
		low, high := v.interval()
		lows, highs = append(lows, low), append(highs, high)
		s.Capacities = append(s.Capacities, v.Capacity)
		s.MeanGap += v.MeanGap
	}
	// Where others' packets spoil most trains, those that they spoil little are left.
	clean, contaminated := s.Trains[Clean], s.Trains[Interleaved]
	for _, n := range s.Trains[Coalesced:] {
		contaminated += n
	}
	s.MeanGap /= time.Duration(max(1, clean))
	slices.Sort(s.Capacities)
	slices.Sort(lows)
	slices.Sort(highs)
	p5, p95 := order.Quantile(s.Capacities, 0.05), order.Quantile(s.Capacities, 0.95)
	low, high := order.Quantile(lows, 0.05), order.Quantile(highs, 0.95)
	if want := max(least, MinClean, contaminated); clean < want {
		s.Refusal = fmt.Sprintf("%d of %d trains clean (want %d)", clean, len(verdicts), want)
		worst := slices.MaxFunc(Results()[Lost:], func(a, b Result) int { return s.Trains[a] - s.Trains[b] })
		if n := s.Trains[worst]; n > 0 {
			s.Refusal += fmt.Sprintf(", %d %v, such as: %s", n, worst, evidence[worst])
		}
		return s
	}
	if order.Quantile(lows, 0.95) > (1+agree)*order.Quantile(highs, 0.05) {
		s.Refusal = fmt.Sprintf("the trains disagree: 5 %% found %.4g Mb/s or less, 5 %% %.4g Mb/s or more; the link's rate varies, or others use it",
			8e-6*p5, 8e-6*p95)
		return s
	}
	few := fewer(clean) * (p95 - p5)
	s.OK, s.P5, s.Median, s.P95, s.Low, s.High = true, p5, order.Median(s.Capacities), p95, max(0, low-few), high+few
	return s
}

// fewer is by how many of their ranges the interval of n trains is wider than from the
// smallest to the largest, at either end; zero from eight on.
//
// If each is off the truth by an error of any distribution without bias, smallest and
// largest enclose it but for 2^(1-n). Where all n are to one side of it, their distances are
// spread no closer together than evenly if small errors are no rarer than large ones: then the
// truth is k ranges from the nearest in (1+k)^(1-n) of these cases at the most.
func fewer(n int) float64 {
	return max(0, math.Pow(missed, -1/float64(n-1))/2-1)
}

// Sustained holds long trains against a summary that is OK, of the same size. hidden is how
// many bytes a token bucket must have for the trains not to show it; refusal says, in words,
// that the long trains show one, and so the rate of the summary does not last.
//
// A bucket of b bytes lets b/(1-r/p) pass at the rate p of the line before it, r being its
// own: 2b if it halves the rate. Of the trains that keep the rate, the short ones of packets
// each among them, the second longest counts: one alone may have been lucky.
func (s *Summary) Sustained(long []Verdict, packetBytes, packets int) (hidden int, refusal string) {
	kept, slower, evidence := []int{seen(packetBytes, packets-1)}, 0, ""
	for i := range long {
		v := &long[i]
		low, high := v.interval()
		switch {
		case v.Result == TokenBucket:
			slower, evidence = slower+1, v.Evidence
		case v.Result != Clean:
		case high < s.Low/(1+agree):
			slower, evidence = slower+1, fmt.Sprintf("trains of %d bytes came at %.4g Mb/s, of %d at %.4g Mb/s",
				int(v.bytes()+0.5), 8e-6*v.Capacity, packetBytes*(packets-1), 8e-6*s.Median)
		case low < s.High*(1+agree):
			kept = append(kept, seen(packetBytes, int(v.bytes()+0.5)/packetBytes))
		}
	}
	if slower >= max(2, len(kept)) {
		return 0, "a token bucket, which longer trains empty: " + evidence
	}
	slices.Sort(kept)
	return kept[max(0, len(kept)-2)], ""
}

// seen is the bytes of the largest bucket that a train of so many gaps shows.
func seen(packetBytes, gaps int) int { return max(0, gaps-tail) * packetBytes / 2 }
