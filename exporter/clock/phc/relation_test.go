package phc

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/tests/testseed"
)

var _ tstamp.HardwareClock = (*Relation)(nil)

// card is a clock with an offset and a rate of its own.
type card struct {
	offset time.Duration
	ppm    float64
	start  instant.Time
}

func (c card) at(system instant.Time) instant.Time {
	since := float64(system.Sub(c.start))
	return c.start.Add(c.offset + time.Duration(since*(1+c.ppm*1e-6)))
}

const start = instant.Time(1_700_000_000_000_000_000)

func TestCardTimestampsAreConvertedToSystemTime(t *testing.T) {
	seed := testseed.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		c := card{time.Duration(rng.Int64N(int64(80*time.Hour))) - 40*time.Hour, rng.Float64()*400 - 200, start}
		var r Relation
		for i := range 3 {
			now := start.Add(time.Duration(i) * time.Second)
			r.Add(Reading{Device: c.at(now), System: now, Uncertainty: 80})
		}
		for range 20 {
			truth := start.Add(2*time.Second + time.Duration(rng.Int64N(int64(2*time.Second))) - 500*time.Millisecond)
			got, ok := r.System(c.at(truth))
			if diff := got.Sub(truth); !ok || diff.Abs() > 10 {
				t.Fatalf("seed %d: card %+v: error %v, ok %v", seed, c, diff, ok)
			}
		}
		// Five times that of a reading, and the effect of rounding to nanoseconds on the rate.
		if u, ok := r.Uncertainty(); u < 5*80 || u > 5*80+20 || !ok {
			t.Errorf("seed %d: uncertainty %v, %v", seed, u, ok)
		}
	}
}

func TestNothingIsConvertedBeforeTwoReadingsAgree(t *testing.T) {
	var r Relation
	expectOK := func(when string, want bool) {
		t.Helper()
		if _, ok := r.System(start); ok != want {
			t.Errorf("%s: ok %v, want %v", when, ok, want)
		}
		if _, ok := r.Uncertainty(); ok != want {
			t.Errorf("%s: uncertainty ok %v, want %v", when, ok, want)
		}
	}
	expectOK("nothing read", false)
	r.Add(Reading{Device: start, System: start})
	expectOK("one reading", false)
	r.Add(Reading{Device: start.Add(time.Second), System: start.Add(time.Second)})
	expectOK("two readings", true)
	r.Add(Reading{Device: start.Add(2 * time.Second), System: start.Add(3 * time.Second)})
	expectOK("system clock stepped", false)
	r.Add(Reading{Device: start.Add(3 * time.Second), System: start.Add(4 * time.Second)})
	if at, ok := r.System(start.Add(3 * time.Second)); !ok || at != start.Add(4*time.Second) {
		t.Errorf("after the step: %v, ok %v", at, ok)
	}
	r.Add(Reading{Device: start, System: start.Add(5 * time.Second)})
	expectOK("card set back", false)
}

// follow adds readings at 1 s intervals, each with its error, and returns the uncertainty after the last.
func follow(u time.Duration, off ...time.Duration) (time.Duration, bool) {
	var r Relation
	for i, o := range off {
		now := start.Add(time.Duration(i) * time.Second)
		r.Add(Reading{Device: now, System: now.Add(o), Uncertainty: u})
	}
	return r.Uncertainty()
}

func TestNothingIsConvertedAboveMaxUncertainty(t *testing.T) {
	for _, c := range []struct {
		name string
		u    time.Duration
		off  []time.Duration
		want time.Duration // 0: not converted
	}{
		{"good readings", time.Microsecond, []time.Duration{0, 0, 0}, 5 * time.Microsecond},
		{"at the limit", MaxUncertainty / 5, []time.Duration{0, 0}, MaxUncertainty},
		{"readings above the limit", MaxUncertainty/5 + 1, []time.Duration{0, 0}, 0},
		{"slewed by 2 ppm", 0, []time.Duration{0, 0, 2000}, 4 * time.Microsecond},
		{"stepped by too little for Add to detect", 0, []time.Duration{0, 0, 500_000}, 0},
		{"the reading after that step", 0, []time.Duration{0, 0, 500_000, 500_000}, 0},
		{"two readings after it", 0, []time.Duration{0, 0, 500_000, 500_000, 500_000}, 1},
		{"free-running card, first line", 0, []time.Duration{0, 50_000}, 0},
		{"free-running card, second line", 0, []time.Duration{0, 50_000, 100_000}, 1},
	} {
		got, ok := follow(c.u, c.off...)
		if ok != (c.want > 0) || (got-c.want).Abs() > 2 {
			t.Errorf("%s: %v, %v; want %v", c.name, got, ok, c.want)
		}
	}
}

func TestTimestampFarFromTheReadingsIsNotConverted(t *testing.T) {
	var r Relation
	r.Add(Reading{Device: start, System: start})
	r.Add(Reading{Device: start.Add(time.Second), System: start.Add(time.Second)})
	for _, c := range []struct {
		at time.Duration
		ok bool
	}{{-maxAge - 1, false}, {-maxAge, true}, {time.Second + maxAge, true}, {time.Second + maxAge + 1, false}} {
		if _, ok := r.System(start.Add(c.at)); ok != c.ok {
			t.Errorf("%v: ok %v, want %v", c.at, ok, c.ok)
		}
	}
}

// broken succeeds a few times and then fails.
type broken struct {
	left int
	card card
	now  func() instant.Time
}

var errGone = errors.New("device gone")

func (b *broken) Read() (Reading, error) {
	if b.left--; b.left < 0 {
		return Reading{}, errGone
	}
	return Reading{Device: b.card.at(b.now()), System: b.now()}, nil
}

func TestFollowForgetsWhenTheDeviceFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := func() instant.Time { return instant.FromTime(time.Now()) }
		reader := &broken{left: 3, card: card{offset: 37 * time.Second, start: now()}, now: now}
		var r Relation
		result := make(chan error)
		go func() { result <- r.Follow(t.Context(), reader, Interval) }()
		// simulated time (synctest)
		time.Sleep(Interval + 1)
		synctest.Wait()
		if at, ok := r.System(reader.card.at(now())); !ok || at.Sub(now()).Abs() > 1 {
			t.Errorf("after two readings: %v, ok %v", at, ok)
		}
		if err := <-result; !errors.Is(err, errGone) {
			t.Errorf("Follow: %v, want its cause", err)
		}
		if _, ok := r.System(reader.card.at(now())); ok {
			t.Error("System converts after the device failed")
		}
	})
}

func TestFollowEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var r Relation
	reader := &broken{left: 100, card: card{start: start}, now: func() instant.Time { return start }}
	if err := r.Follow(ctx, reader, Interval); err != nil {
		t.Error(err)
	}
}

func TestConvertingDoesNotAllocate(t *testing.T) {
	var r Relation
	r.Add(Reading{Device: start, System: start})
	r.Add(Reading{Device: start.Add(time.Second), System: start.Add(time.Second)})
	if n := testing.AllocsPerRun(100, func() { r.System(start) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
