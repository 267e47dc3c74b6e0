package capacity

import (
	"fmt"
	"slices"
)

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
