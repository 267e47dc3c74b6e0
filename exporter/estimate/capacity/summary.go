package capacity

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Summary is what the trains of one size said.
type Summary struct {
	IPBytes int
	// Trains counts by result, indexed by Result.
	Trains [TokenBucket + 1]int
	// P5, Median and P95 are of the clean trains' capacity, in IP octets a second; defined
	// only if OK: at least MinClean trains were clean, and no fewer than were contaminated
	// (Unstamped and what follows). Trains with a loss, and the like, are not counted: they
	// are to be repeated.
	P5, Median, P95 float64
	// MeanGap is the mean dispersion of the clean trains: time between two packets.
	MeanGap time.Duration
	OK      bool
	// Refusal says, if not OK, what contaminates most trains, in words.
	Refusal string
	// Capacities are of the clean trains, ascending: the whole distribution.
	Capacities []float64
}

// MinClean is how many clean trains a Summary needs.
const MinClean = 3

// Summarise puts together what the trains said, by size, the largest first.
func Summarise(verdicts []Verdict) (all []Summary) {
	for _, v := range verdicts {
		i := slices.IndexFunc(all, func(s Summary) bool { return s.IPBytes == v.IPBytes })
		if i < 0 {
			i = len(all)
			all = append(all, Summary{IPBytes: v.IPBytes})
		}
		s := &all[i]
		if v.Result > TokenBucket {
			continue
		}
		s.Trains[v.Result]++
		if v.Result == Clean {
			s.Capacities = append(s.Capacities, v.Capacity)
			s.MeanGap += v.MeanGap
		}
	}
	for i := range all {
		all[i].finish()
	}
	slices.SortFunc(all, func(a, b Summary) int { return cmp.Compare(b.IPBytes, a.IPBytes) })
	return all
}

func (s *Summary) finish() {
	clean := s.Trains[Clean]
	if clean > 0 {
		s.MeanGap /= time.Duration(clean)
		slices.Sort(s.Capacities)
	}
	contaminated, worst := 0, Lost
	for _, r := range Results()[1:] {
		if s.Trains[r] > s.Trains[worst] {
			worst = r
		}
		if r >= Unstamped {
			contaminated += s.Trains[r]
		}
	}
	switch {
	case clean >= MinClean && clean >= contaminated:
		s.OK = true
		s.P5, s.Median, s.P95 = s.quantile(0.05), s.quantile(0.5), s.quantile(0.95)
	case s.Trains[worst] == 0:
		s.Refusal = fmt.Sprintf("only %d trains, want %d", clean, MinClean)
	default:
		s.Refusal = fmt.Sprintf("%d trains clean, %d %v", clean, s.Trains[worst], worst)
	}
}

// quantile is the nearest rank; of an even number of trains the median is the mean of
// both in the middle.
func (s *Summary) quantile(q float64) float64 {
	n := len(s.Capacities)
	if q == 0.5 {
		return (s.Capacities[(n-1)/2] + s.Capacities[n/2]) / 2
	}
	return s.Capacities[min(max(int(math.Ceil(q*float64(n)*(1-1e-12)))-1, 0), n-1)]
}
