package loadsession_test

import (
	"testing"

	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/loadtest"
)

func TestTokenRateIsNotedOnceFromHalfOfItsLimitOn(t *testing.T) {
	for _, c := range []struct {
		limit float64
		rates []float64
		want  int
	}{{0, []float64{1e9}, 0}, {1e6, []float64{5e5}, 0}, {1e6, []float64{5.1e5}, 1}, {1e6, []float64{1e5, 9e5, 1e6}, 1}} {
		r := &loadtest.Run{}
		for _, rate := range c.rates {
			loadsession.NoteTokenRate(r, loadcontrol.Limits{BytesPerSecond: c.limit}, rate)
		}
		if len(r.Notes) != c.want {
			t.Errorf("limit %g, rates %g: got the notes %q, want %d", c.limit, c.rates, r.Notes, c.want)
		}
	}
}
