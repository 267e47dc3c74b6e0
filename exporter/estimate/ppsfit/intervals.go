package ppsfit

import "time"

// remembered is how many intervals the median is taken of. Half of them may be
// wrong; a crystal's rate does not change in as many seconds.
const remembered = 16

// intervals are the recent intervals between pulses and their median.
type intervals struct {
	values  [remembered]time.Duration
	n, next int
	// median is of one second on the raw clock; zero before the first interval.
	median time.Duration
}

// learn takes the time between one pulse and the next. A pulse may have been
// missed: the interval of several seconds tells the length of one as well. What
// is no number of seconds at all is not learnt from.
func (v *intervals) learn(since time.Duration) {
	if since < time.Second/2 || since > reach {
		return
	}
	k := (since + time.Second/2) / time.Second
	if (since - k*time.Second).Abs() > k*time.Duration(float64(time.Second)*nominal) {
		return
	}
	v.values[v.next] = since / k
	v.next = (v.next + 1) % remembered
	v.n = min(v.n+1, remembered)
	v.median = v.middle()
}

// middle is the median; of an even number the lower of the two in the middle.
func (v *intervals) middle() time.Duration {
	sorted := v.values
	for i := 1; i < v.n; i++ {
		for j := i; j > 0 && sorted[j-1] > sorted[j]; j-- {
			sorted[j-1], sorted[j] = sorted[j], sorted[j-1]
		}
	}
	return sorted[(v.n-1)/2]
}
