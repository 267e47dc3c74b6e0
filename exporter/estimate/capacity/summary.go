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
	wander := 0
	for i := range verdicts {
		v := &verdicts[i]
		if s.Trains[v.Result]++; v.Result != Clean {
			continue
		}
		low, high := v.interval()
		lows, highs = append(lows, low), append(highs, high)
		s.Capacities = append(s.Capacities, v.Capacity)
		s.MeanGap += v.MeanGap
		if v.wanders {
			wander++
		}
	}
	// Where others' packets spoil most trains, those that they spoil little are left.
	clean, worst, contaminated := s.Trains[Clean], s.worst(), s.Trains[Interleaved]
	for _, n := range s.Trains[Coalesced:] {
		contaminated += n
	}
	if clean > 0 {
		s.MeanGap /= time.Duration(clean)
	}
	slices.Sort(s.Capacities)
	slices.Sort(lows)
	slices.Sort(highs)
	switch {
	case clean < max(least, MinClean, contaminated):
		s.Refusal = fmt.Sprintf("%d of %d trains clean (want %d)", clean, len(verdicts), max(least, MinClean, contaminated))
		if n := s.Trains[worst]; n > 0 {
			s.Refusal += fmt.Sprintf(", %d %v, such as: %s", n, worst, lastEvidence(verdicts, worst))
		}
	case order.Quantile(lows, 0.95) > (1+agree)*order.Quantile(highs, 0.05):
		s.Refusal = fmt.Sprintf("the trains disagree: 5 %% found %.4g Mb/s or less, 5 %% %.4g Mb/s or more; the link's rate varies, or others use it",
			8e-6*order.Quantile(s.Capacities, 0.05), 8e-6*order.Quantile(s.Capacities, 0.95))
	case 3*wander > clean:
		s.Refusal = fmt.Sprintf("arrivals of %d of %d trains wander off even distances as packets of others in between make them", wander, clean)
	default:
		s.OK, s.Median = true, order.Median(s.Capacities)
		s.P5, s.P95 = order.Quantile(s.Capacities, 0.05), order.Quantile(s.Capacities, 0.95)
		few := fewer(clean) * (s.P95 - s.P5)
		s.Low, s.High = max(0, order.Quantile(lows, 0.05)-few), order.Quantile(highs, 0.95)+few
	}
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

// worst is the result, other than Clean, of most trains.
func (s *Summary) worst() (worst Result) {
	worst = Lost
	for _, r := range Results()[1:] {
		if s.Trains[r] > s.Trains[worst] {
			worst = r
		}
	}
	return worst
}

func lastEvidence(verdicts []Verdict, r Result) (evidence string) {
	for i := range verdicts {
		if verdicts[i].Result == r {
			evidence = verdicts[i].Evidence
		}
	}
	return evidence
}
