package endclock

import (
	"testing"
	"testing/synctest"
	"time"

	"oneway.example/exporter/clock/clocktest"
	"oneway.example/exporter/core/sample"
)

// A clock may be lost during a transfer and return, or have a larger bound than at both ends of the transfer.
func TestBoundOfATransferIsTheLargestOfItsSamples(t *testing.T) {
	good, wide := sample.Bound{Error: time.Millisecond, Reason: sample.OK}, sample.Bound{Error: 7 * time.Millisecond, Reason: sample.OK}
	for between, want := range map[sample.Bound][2]sample.Bound{ // by the end that has the clock
		good:                         {good, good},
		wide:                         {wide, wide},
		{Reason: sample.ClockSilent}: {{Reason: sample.ClockSilent}, {Reason: sample.RemoteUnsynchronized}},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, end := Watch(&clocktest.Passing{After: sampleEvery / 2, Until: 3 * sampleEvery, Bound: between})
			time.Sleep(10 * sampleEvery) // simulated time (synctest)
			s, exact := end(), Span{Before: State{Reason: sample.OK.String()}, After: State{Reason: sample.OK.String()}}
			if got := [2]sample.Bound{Bound(s, exact, false), Bound(exact, s, false)}; got != want {
				t.Errorf("%+v during the transfer: %+v, want %+v", between, got, want)
			}
		})
	}
}
