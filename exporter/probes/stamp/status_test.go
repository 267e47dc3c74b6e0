package stamp

import (
	"maps"
	"math"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/stamp/ledger"
)

// TestStatusHasTheMedianOfEachDelay: a reader compares the three figures.
func TestStatusHasTheMedianOfEachDelay(t *testing.T) {
	f := newSessionFixture(t, 20*us, nil)
	for i := range 21 {
		busy := time.Duration(0)
		if i >= 5 { // most packets wait in a queue
			busy = 80 * time.Millisecond
		}
		f.bring(10*time.Millisecond+busy, 5*time.Millisecond+busy)
		f.account.RoundTripsReceived++
	}
	f.closed()
	medians := map[string]float64{}
	for _, r := range f.told().results() {
		if r.Quantity == "delay" || r.Quantity == "round trip" {
			medians[r.Direction+r.Quantity] = *r.Numbers[0].Value
		}
	}
	for name, want := range map[string]float64{"forwarddelay": 0.090, "reversedelay": 0.085, "round trip": 0.175} {
		if got := medians[name]; math.Abs(got-want) > 0.01*want {
			t.Errorf("%s: %v s, want the median %v s; %v", name, got, want, medians)
		}
	}
}

// TestStatusWithoutAMedianHasNoRoundTrip: most packets were lost, so that the median is beyond all limits.
func TestStatusWithoutAMedianHasNoRoundTrip(t *testing.T) {
	f := newSessionFixture(t, 20*us, nil)
	f.bring(time.Millisecond, time.Millisecond)
	f.account.RoundTripsReceived++
	f.closed()
	v := f.told()
	v.window.roundTrip.ranks[0].Known = false
	for _, r := range append([]probe.Result{{}}, v.results()...) {
		if r.Quantity == "round trip" {
			t.Errorf("%+v", r)
		}
	}
}

// TestStatusHasTheLossOfRoundTripsIfADirectionHasNone: a reader of the page sees the loss of a stateless reflector, too.
func TestStatusHasTheLossOfRoundTripsIfADirectionHasNone(t *testing.T) {
	for _, c := range []struct {
		forward, reverse bool // whether the loss of the direction is known
		want             map[string]float64
	}{
		{false, false, map[string]float64{"": 0.25}},
		{true, false, map[string]float64{"forward": 0.2, "": 0.25}},
		{true, true, map[string]float64{"forward": 0.2, "reverse": 0.1}},
	} {
		f := newSessionFixture(t, 20*us, nil)
		f.bring(time.Millisecond, time.Millisecond)
		f.account.RoundTripsReceived = 30
		f.closed()
		v := f.told()
		v.window.lossRatio = ledger.OptionalOf(0.25, true)
		v.window.directions[sample.Forward].lossRatio = ledger.OptionalOf(0.2, c.forward)
		v.window.directions[sample.Reverse].lossRatio = ledger.OptionalOf(0.1, c.reverse)
		got := map[string]float64{}
		for _, r := range v.results() {
			if r.Quantity == "loss" {
				got[r.Direction] = *r.Numbers[0].Value
			}
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("forward known %t, reverse %t: %v, want %v", c.forward, c.reverse, got, c.want)
		}
	}
}

// TestPathWithoutAClockByItsConfigurationIsNotImpaired: its one-way delays are not measured. A clock that fails is a defect.
func TestPathWithoutAClockByItsConfigurationIsNotImpaired(t *testing.T) {
	for why, c := range map[sample.Reason]struct {
		cause    string
		unwanted int // directions with the words "not measured"
	}{
		sample.NoClock:             {"", 2},
		sample.ClockSilent:         {"clock_silent", 0},
		sample.LocalUnsynchronized: {"local_unsynchronized", 0},
		sample.Unknown:             {"", 0}, // a good clock
	} {
		f := newSessionFixture(t, 20*us, nil)
		f.clock.reason = why
		for range 20 {
			f.bring(10*time.Millisecond, 5*time.Millisecond)
			f.account.RoundTripsReceived++
		}
		f.closed()
		v := f.told()
		v.up, v.decided = true, true
		st := v.status()
		unwanted := 0
		for _, r := range st.Results {
			if r.Quantity == "delay" && r.Value == "not measured" {
				unwanted++
			}
		}
		if !st.Up || st.Cause != c.cause || (st.Reason == "") != (c.cause == "") || unwanted != c.unwanted {
			t.Errorf("%v: cause %q (%s), %d times not measured, want %q and %d: %+v", why, st.Cause, st.Reason, unwanted, c.cause, c.unwanted, st.Results)
		}
	}
}
