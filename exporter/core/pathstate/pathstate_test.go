package pathstate

import (
	"math"
	"slices"
	"testing"
)

// TestNumbersKeepTheirWords: dashboards and users' alerts have the numbers.
func TestNumbersKeepTheirWords(t *testing.T) {
	const states = "0 up, 1 unknown, 2 degraded, 3 down"
	if got := StateNumbers(); got != states {
		t.Errorf("%s, want %s", got, states)
	}
	const reasons = "0 none, 10 no_data, 11 not_running, 12 load_test, 13 few_packets, 14 local_clock, 15 remote_clock, 16 timestamps, 17 bound_too_wide, 18 clock_wrong, 19 path_minimum, " +
		"20 loss_forward, 21 loss_reverse, 22 loss, 23 delay_forward, 24 delay_reverse, 25 other_host, 30 no_reply, 31 unreachable, 32 key, 33 discarded, 34 not_sent, 35 unresolved"
	if got := ReasonNumbers(); got != reasons {
		t.Errorf("%s, want %s", got, reasons)
	}
	words := map[string]bool{}
	for i, e := range Entries() {
		if e.Sentence == "" || words[e.Word] || !slices.Contains(States(), e.Reason.State()) || i > 0 && e.Reason <= Entries()[i-1].Reason {
			t.Errorf("%+v", e)
		}
		if words[e.Word] = true; e.Reason.String() != e.Word || e.Reason.Sentence() != e.Sentence {
			t.Errorf("%d is %q, %q", e.Reason, e.Reason, e.Reason.Sentence())
		}
	}
}

// TestIntervalsAreClopperAndPearsons: the limits are by sums of the binomial distribution in another program; binom.test of R gives them too.
func TestIntervalsAreClopperAndPearsons(t *testing.T) {
	for _, c := range []struct{ n, k, low, high float64 }{
		{100, 3, 0.006229972, 0.08517605},
		{300, 9, 0.01380781956, 0.05618354824},
		{10, 5, 0.1870860, 0.8129140},
		{1000, 1, 0.00002531749, 0.005558924},
	} {
		const near = 1e-4
		if exceeds(c.n, c.k, c.low*(1+near)) || !exceeds(c.n, c.k, c.low*(1-near)) {
			t.Errorf("%v of %v: the lower limit is not %v", c.k, c.n, c.low)
		}
		if staysBelow(c.n, c.k, c.high*(1-near)) || !staysBelow(c.n, c.k, c.high*(1+near)) {
			t.Errorf("%v of %v: the upper limit is not %v", c.k, c.n, c.high)
		}
	}
	for _, limit := range []float64{0.01, 1} {
		if exceeds(0, 0, limit) || exceeds(10, 10, 1) || staysBelow(0, 0, limit) || math.IsNaN(probability(1e6, 1e4, 0.01)) {
			t.Errorf("limit %v", limit)
		}
	}
}
