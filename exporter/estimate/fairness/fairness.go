// Package fairness computes how flows share a path: those of one direction, and those of two.
//
// A function that cannot know its value returns false.
package fairness

import (
	"slices"

	"oneway.example/exporter/estimate/orderstat"
)

// Jain returns Jain's index of rates: 1 if all are equal, 1/n if one has all (Halepovic 2008 section 4.4, whose fair
// throughput is the same for all flows and cancels).
func Jain(rates []float64) (float64, bool) {
	sum, squares := 0.0, 0.0
	largest := 0.0
	for _, r := range rates {
		if !(r >= 0) {
			return 0, false
		}
		largest = max(largest, r)
	}
	if largest == 0 {
		return 0, false
	}
	for _, r := range rates {
		r /= largest // squares of large rates overflow
		sum, squares = sum+r, squares+r*r
	}
	return sum * sum / (float64(len(rates)) * squares), true
}

// Index is Jain's index of a transfer.
type Index struct {
	// Whole is that of the mean rates. Quartiles are those of Windows, nil without any: in short times flows share less
	// equally.
	Whole     float64
	Quartiles *[3]float64
	Windows   int
}

// Over computes the index of flows from the mean rate of each, and from its rates in windows of equal length:
// windows[flow][window]. Windows in which nothing arrived, or that a flow lacks, do not count.
func Over(rates []float64, windows [][]float64) (x Index, ok bool) {
	if x.Whole, ok = Jain(rates); !ok || len(windows) == 0 {
		return x, ok
	}
	var all []float64
	one := make([]float64, len(windows))
	for w := range slices.MinFunc(windows, func(a, b []float64) int { return len(a) - len(b) }) {
		for f := range windows {
			one[f] = windows[f][w]
		}
		if v, ok := Jain(one); ok {
			all = append(all, v)
		}
	}
	if x.Windows = len(all); x.Windows > 0 {
		slices.Sort(all)
		x.Quartiles = &[3]float64{orderstat.Quantile(all, 0.25), orderstat.Quantile(all, 0.5), orderstat.Quantile(all, 0.75)}
	}
	return x, true
}

// Share is what the flows of a variant have of the whole.
type Share struct {
	Variant string
	Flows   int
	// Ratio is their part of the rate of all flows, and OfFair that part over the part of equal flows: 1 is fair.
	Ratio, OfFair float64
}

// Shares computes what each variant has, in the order of names; the names are those of the flows, one for each rate.
func Shares(variants []string, rates []float64) ([]Share, bool) {
	sum, by := 0.0, map[string]Share{}
	for i, name := range variants {
		s := by[name]
		by[name] = Share{Variant: name, Flows: s.Flows + 1, Ratio: s.Ratio + rates[i]}
		sum += rates[i]
	}
	if !(sum > 0) {
		return nil, false
	}
	var all []Share
	for _, s := range by {
		s.Ratio /= sum
		s.OfFair = s.Ratio * float64(len(rates)) / float64(s.Flows)
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Share) int {
		if a.Variant < b.Variant {
			return -1
		}
		return 1
	})
	return all, true
}
