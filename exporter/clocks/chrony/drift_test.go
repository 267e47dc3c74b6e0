package chrony

import (
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
)

// slewed is a reply at a time of the monotonic clock, of an update at another time; zero: of none.
func slewed(at, updated time.Duration, offset, lastOffset float64) *report {
	r := &report{at: at, offset: offset, lastOffset: lastOffset}
	if updated != 0 {
		r.updated = instant.Time(updated)
	}
	return r
}

// Observed on two guests of the VM lab: chronyd found the clock 50 ms fast and slewed it in one second, at 52000 ppm. At the
// reply the slew was still in progress and 1.4 ms beyond zero; 26 ms later the clock was 2.65 ms off until the next reply.
func TestBoundHoldsForASlewThatGoesBeyondZero(t *testing.T) {
	start := slewed(time.Second, 0, 0, 0)
	reply := slewed(2*time.Second, 1100*time.Millisecond, -1.397e-3, 0.050)
	d := driftOf(start, reply)
	if d.toward || d.rate < 0.050 {
		t.Fatalf("drift %+v; chronyd slews 50 ms in a second", d)
	}
	for age, off := range map[time.Duration]float64{26 * time.Millisecond: 2.65e-3, time.Second: 2.65e-3} {
		if got := reply.boundAt(age, 0, 0, d); got < off {
			t.Errorf("%v after the reply the bound is %v s, and the clock %v s off", age, got, off)
		}
	}
}

func TestDriftIsThePlannedOrObservedOne(t *testing.T) {
	const update = 500 * time.Millisecond
	second := func(offset float64) *report { return slewed(2*time.Second, update, offset, 0.010) }
	for name, c := range map[string]struct {
		from, to *report
		want     drift
	}{
		"no reply before":             {second(0.001), second(0.001), drift{0.011, false}},
		"an update since":             {slewed(time.Second, 0, 0.001, 0), second(0.010), drift{0.011, false}},
		"slewing toward zero":         {slewed(time.Second, update, 0.005, 0.010), second(0.001), drift{0.004, true}},
		"through zero":                {slewed(time.Second, update, 0.005, 0.010), second(-0.001), drift{0.006, false}},
		"growing":                     {slewed(time.Second, update, 0.001, 0.010), second(0.003), drift{0.002, false}},
		"not faster than chronyd may": {slewed(time.Second, update, 5, 0.010), second(3), drift{maxRate, true}},
	} {
		got := driftOf(c.from, c.to)
		if got.toward != c.want.toward || got.rate < c.want.rate-1e-9 || got.rate > c.want.rate+1e-9 {
			t.Errorf("%s: %+v; want %+v", name, got, c.want)
		}
	}
}

// A slew toward zero does not widen the bound before it can have passed zero, and afterwards by the possible distance
// beyond zero.
func TestBoundOfASlewTowardsZero(t *testing.T) {
	r := slewed(time.Second, time.Millisecond, 0.002, 0)
	d := drift{rate: 0.004, toward: true}
	for age, want := range map[time.Duration]float64{0: 0.002, 500 * time.Millisecond: 0.002, time.Second: 0.002, 2 * time.Second: 0.006, -time.Second: 0.006} {
		if got := r.boundAt(age, 0, 0, d); got < want-1e-9 || got > want+1e-9 {
			t.Errorf("age %v: bound %v s; want %v s", age, got, want)
		}
	}
	r.took = 250 * time.Millisecond // the reply was generated at some time within these
	for age, want := range map[time.Duration]float64{0: 0.003, 100 * time.Millisecond: 0.0026, 250 * time.Millisecond: 0.002} {
		if got := r.boundAt(age, 0, 0, d); got < want-1e-9 || got > want+1e-9 {
			t.Errorf("age %v, with a reply that took 250 ms: bound %v s; want %v s", age, got, want)
		}
	}
	if got := r.boundAt(time.Second, 0, 0, d); got < 0.003-1e-9 || got > 0.003+1e-9 {
		t.Errorf("with a reply that took 250 ms: bound %v s; want 0.003 s", got)
	}
}
