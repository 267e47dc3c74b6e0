package stamp

import (
	"math"
	"testing"
	"time"

	"oneway.example/exporter/core/pathstate"
	"oneway.example/exporter/core/sample"
)

// TestDelayIsAboveItsLimitsForCertain: or possibly, or not, by its error bound and the smallest delay of the hour.
func TestDelayIsAboveItsLimitsForCertain(t *testing.T) {
	const ms = time.Millisecond
	o := DefaultOptions()
	for name, c := range map[string]struct {
		floor, delay, bound time.Duration
		slow, maybe         uint32
	}{
		"short":                                {10 * ms, 149 * ms, 0, 0, 0},
		"at the limit":                         {10 * ms, 150 * ms, 0, 0, 0},
		"long":                                 {10 * ms, 151 * ms, 0, 1, 0},
		"long, steady":                         {290 * ms, 300 * ms, 0, 0, 0},
		"long, not steady":                     {240 * ms, 300 * ms, 0, 1, 0},
		"long, the limit within the bound":     {10 * ms, 151 * ms, 2 * ms, 0, 1},
		"short, the limit within the bound":    {10 * ms, 149 * ms, 2 * ms, 0, 1},
		"a bound larger than the delay":        {4 * ms, 5 * ms, 20 * ms, 0, 0},
		"a bound that permits any delay":       {4 * ms, 60 * ms, 200 * ms, 0, 1},
		"negative, within its bound, and long": {-20 * ms, 151 * ms, 0, 1, 0},
	} {
		l := limited{windows: 1}
		l.add(sample.Delay{Value: c.floor, Reason: sample.OK}, &o)
		l.add(sample.Delay{Value: c.delay, Bound: c.bound, Reason: sample.OK}, &o)
		if l.slow != c.slow || l.maybeSlow != c.maybe || l.delays != 2 || l.unbounded != 0 {
			t.Errorf("%s: %+v, want %d certain and %d possible", name, l, c.slow, c.maybe)
		}
	}
}

// TestFloorIsOfTheLastHour: a route that stays longer is no fault after an hour.
func TestFloorIsOfTheLastHour(t *testing.T) {
	o := DefaultOptions()
	if err := o.check(); err != nil {
		t.Fatal(err)
	}
	l := limited{windows: o.floorWindows()}
	hour := int(time.Hour / o.Window)
	l.add(sample.Delay{Value: 100 * time.Millisecond, Reason: sample.OK}, &o)
	for i := range 2 * hour {
		before := l.slow
		l.add(sample.Delay{Value: 200 * time.Millisecond, Reason: sample.OK}, &o)
		if above := l.slow > before; above != (i < hour) && math.Abs(float64(i-hour)) > float64(l.windows) {
			t.Fatalf("window %d of %d in an hour: above its limits is %v", i, hour, above)
		}
		l.next()
	}
}

func TestDelayWithoutABoundHasItsReason(t *testing.T) {
	o := DefaultOptions()
	for _, why := range sample.Invalid() {
		var l limited
		l.add(sample.Delay{Reason: why}, &o)
		var w pathstate.Way
		l.way(&w)
		if w.Unbounded != 1 || w.Delays != 1 || w.Slow+w.MaybeSlow != 0 || w.Why.State() != pathstate.Unknown {
			t.Errorf("%v: %+v", why, w)
		}
	}
}
