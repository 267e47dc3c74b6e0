package history

import (
	"math"
	"slices"

	"oneway.example/exporter/estimate/orderstat"
)

// Order statistics of sums of pairs, without the pairs: values are counted in O(n) and the value is found by bisection.

// differences are all a - b of two sorted samples.
type differences struct{ a, b []float64 }

func (d differences) size() int { return len(d.a) * len(d.b) }

func (d differences) limits() (low, high float64) {
	return d.a[0] - d.b[len(d.b)-1], d.a[len(d.a)-1] - d.b[0]
}

// count is the number of differences that are at most v, the largest of them, and the smallest that is above v.
func (d differences) count(v float64) (n int, largest, next float64) {
	largest, next = math.Inf(-1), math.Inf(1)
	j := 0 // b[j:] have a - b <= v
	for _, a := range d.a {
		for j < len(d.b) && a-d.b[j] > v {
			j++
		}
		if n += len(d.b) - j; j < len(d.b) {
			largest = max(largest, a-d.b[j])
		}
		if j > 0 {
			next = min(next, a-d.b[j-1])
		}
	}
	return n, largest, next
}

// walsh are the means of all pairs of a sorted sample, each value with itself included (Walsh 1949).
type walsh struct{ x []float64 }

func (w walsh) size() int { return len(w.x) * (len(w.x) + 1) / 2 }

func (w walsh) limits() (low, high float64) { return w.x[0], w.x[len(w.x)-1] }

func (w walsh) count(v float64) (n int, largest, next float64) {
	largest, next = math.Inf(-1), math.Inf(1)
	j := len(w.x) // x[i] with x[:j] have means <= v
	for i, x := range w.x {
		for j > 0 && (x+w.x[j-1])/2 > v {
			j--
		}
		if j > i {
			n += j - i
			largest = max(largest, (x+w.x[j-1])/2)
		}
		if k := max(i, j); k < len(w.x) {
			next = min(next, (x+w.x[k])/2)
		}
	}
	return n, largest, next
}

// pairs are differences or walsh.
type pairs interface {
	size() int
	limits() (low, high float64)
	count(v float64) (n int, largest, next float64)
}

// kth is the k-th smallest value of pairs, 1..size.
func kth(p pairs, k int) float64 {
	low, high := p.limits()
	n, _, next := p.count(low)
	if n >= k {
		return low
	}
	for next < high { // count(low) < k <= count(high)
		middle := low + (high-low)/2
		if middle <= low || middle >= high {
			break
		}
		n, largest, above := p.count(middle)
		if n >= k {
			high = largest
		} else {
			low, next = middle, above
		}
	}
	return high
}

// pairQuantile is the value with a share p of the pairs below; infinite beyond them. At one half it is the median.
func pairQuantile(p pairs, share float64) float64 {
	n := float64(p.size())
	at := share*n + 0.5 // position, from 1 on; the median's is (n + 1) / 2
	switch low, high := math.Floor(at), math.Ceil(at); {
	case low < 1:
		return math.Inf(-1)
	case high > n:
		return math.Inf(1)
	case low == high:
		return kth(p, int(low))
	default:
		return (kth(p, int(low)) + kth(p, int(high))) / 2
	}
}

// HodgesLehmann is the median of all differences a - b (Hodges and Lehmann 1963); false without values.
func HodgesLehmann(a, b []float64) (float64, bool) {
	if len(a) == 0 || len(b) == 0 {
		return 0, false
	}
	return pairQuantile(differences{orderstat.Sorted(a), orderstat.Sorted(b)}, 0.5), true
}

// Pseudomedian is the median of the means of all pairs of values, each value with itself included (Hodges and Lehmann 1963); false without values.
func Pseudomedian(x []float64) (float64, bool) {
	if len(x) == 0 {
		return 0, false
	}
	return pairQuantile(walsh{orderstat.Sorted(x)}, 0.5), true
}

// placements are, for each of values, the share of a sorted sample below it; equal ones count half.
func placements(values, sorted []float64) []float64 {
	shares := make([]float64, len(values))
	n := float64(len(sorted))
	for i, v := range values {
		low, _ := slices.BinarySearch(sorted, v)
		high, _ := slices.BinarySearch(sorted, math.Nextafter(v, math.Inf(1)))
		shares[i] = (float64(low) + float64(high)) / (2 * n)
	}
	return shares
}
