package capacity

import (
	"fmt"
	"math"
	"slices"
	"time"

	"oneway.example/exporter/estimate/order"
)

// Summary is what the trains of one size said.
type Summary struct {
	// Trains counts by result, indexed by Result.
	Trains [TooShort + 1]int
	// P5, Median and P95 are of the clean trains' capacity, in IP octets a second, and Low
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

// Summarise puts together what trains of one size said, of which least must be clean.
func Summarise(verdicts []Verdict, least int) (s Summary) {
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
// many octets a token bucket must have for the trains not to show it; refusal says, in words,
// that the long trains show one, and so the rate of the summary does not last.
//
// A bucket of b octets lets b/(1-r/p) pass at the rate p of the line before it, r being its
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
			slower, evidence = slower+1, fmt.Sprintf("trains of %d octets came at %.4g Mb/s, of %d at %.4g Mb/s",
				int(v.octets()+0.5), 8e-6*v.Capacity, packetBytes*(packets-1), 8e-6*s.Median)
		case low < s.High*(1+agree):
			kept = append(kept, seen(packetBytes, int(v.octets()+0.5)/packetBytes))
		}
	}
	if slower >= max(2, len(kept)) {
		return 0, "a token bucket, which longer trains empty: " + evidence
	}
	slices.Sort(kept)
	return kept[max(0, len(kept)-2)], ""
}

// seen is the octets of the largest bucket that a train of so many gaps shows.
func seen(packetBytes, gaps int) int { return max(0, gaps-tail) * packetBytes / 2 }
