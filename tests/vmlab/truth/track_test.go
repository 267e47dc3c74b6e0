package truth

import (
	"errors"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
)

// line is one count a nanosecond.
func line() Line {
	return Line{Counter: 1_000_000, UTC: instant.FromUnix(1_800_000_000, 0), Hertz: 1e9}
}

// pairsOf are a pair every 10 ms for 10 s of a clock that is off by offset(seconds).
func pairsOf(l Line, offset func(seconds float64) time.Duration) (pairs []Pair) {
	for i := range 1000 {
		counter := l.Counter + uint64(i)*10_000_000
		pairs = append(pairs, Pair{counter, l.At(counter).Add(offset(float64(i) / 100)), 40_000})
	}
	return pairs
}

func TestTruthOfAStampIsFoundThroughOffsetAndDrift(t *testing.T) {
	l := line()
	drifting := func(s float64) time.Duration { return 3*time.Second + time.Duration(s*50e3) } // 50 ppm
	track := NewTrack(l, pairsOf(l, drifting), time.Millisecond)
	for _, s := range []float64{0.005, 1.2345, 9.98} {
		at := l.Counter + uint64(s*1e9)
		really := l.At(at)
		got, blur, err := track.True(really.Add(drifting(s)), at+1e9)
		if err != nil || got.Sub(really).Abs() > 2 || blur != 20*time.Microsecond {
			t.Errorf("after %v s: %v from the truth, blur %v, %v", s, got.Sub(really), blur, err)
		}
		if offset, err := track.Offset(at); err != nil || (offset-drifting(s)).Abs() > 2 {
			t.Errorf("after %v s: offset %v, want %v, %v", s, offset, drifting(s), err)
		}
	}
}

func TestClockSteppedBackShowsOneTimeTwice(t *testing.T) {
	l := line()
	back := func(s float64) time.Duration {
		if s < 5 {
			return 0
		}
		return -time.Second
	}
	track := NewTrack(l, pairsOf(l, back), time.Millisecond)
	clock := l.UTC.Add(4500 * time.Millisecond) // first after 4.5 s, again after 5.5 s
	for _, c := range []struct{ seen, want time.Duration }{
		{4600 * time.Millisecond, 4500 * time.Millisecond}, {5600 * time.Millisecond, 5500 * time.Millisecond},
	} {
		got, _, err := track.True(clock, l.Counter+uint64(c.seen))
		if err != nil || got.Sub(l.UTC) != c.want {
			t.Errorf("seen after %v: %v after the beginning, want %v, %v", c.seen, got.Sub(l.UTC), c.want, err)
		}
	}
	if steps := track.Steps(); len(steps) != 1 || steps[0].Sub(l.UTC) != 4995*time.Millisecond {
		t.Errorf("steps at %v", steps)
	}
}

func TestNoTruthAcrossAStepNorOutsideOfTheTrack(t *testing.T) {
	l := line()
	forward := func(s float64) time.Duration {
		if s < 5 {
			return 0
		}
		return time.Second
	}
	track := NewTrack(l, pairsOf(l, forward), time.Millisecond)
	if _, _, err := track.True(l.UTC.Add(5500*time.Millisecond), l.Counter+5_100_000_000); !errors.Is(err, ErrStep) {
		t.Errorf("a time that the step left out: %v, want %v", err, ErrStep)
	}
	for _, at := range []time.Duration{-time.Second, time.Minute} {
		if _, _, err := track.True(l.UTC.Add(at), l.Counter+9_000_000_000); !errors.Is(err, ErrNoTrack) {
			t.Errorf("%v: %v, want %v", at, err, ErrNoTrack)
		}
	}
	if _, _, err := (&Track{}).True(l.UTC, 0); !errors.Is(err, ErrNoTrack) {
		t.Errorf("an empty track: %v", err)
	}
}

// Slewing at chrony's limit of 83333 ppm is no step; a millisecond and a bit within
// 10 ms is.
func TestSlewIsNoStep(t *testing.T) {
	l := line()
	slew := func(s float64) time.Duration { return time.Duration(s * 83_333e3) }
	if steps := NewTrack(l, pairsOf(l, slew), time.Millisecond).Steps(); len(steps) != 0 {
		t.Errorf("%d steps in a slew", len(steps))
	}
	jump := func(s float64) time.Duration {
		if s < 5 {
			return 0
		}
		return 2500 * time.Microsecond
	}
	if steps := NewTrack(l, pairsOf(l, jump), time.Millisecond).Steps(); len(steps) != 1 {
		t.Errorf("%d steps, want 1", len(steps))
	}
}

func TestWidePairsAreNotUsed(t *testing.T) {
	l := line()
	pairs := pairsOf(l, func(float64) time.Duration { return 0 })
	pairs[500].Gap = 5_000_000
	if got := NewTrack(l, pairs, time.Millisecond).Len(); got != len(pairs)-1 {
		t.Errorf("%d of %d pairs in use", got, len(pairs))
	}
}

func TestPairsSurviveTheFile(t *testing.T) {
	want := []Pair{{1, 2, 3}, {1 << 60, -5, 1 << 31}}
	var b []byte
	for _, p := range want {
		b = p.AppendTo(b)
	}
	got := ParsePairs(append(b, 1, 2, 3)) // the last one is still being written
	if len(b) != len(want)*PairBytes || len(got) != len(want) || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%d bytes: %v", len(b), got)
	}
}

func FuzzParsePairs(f *testing.F) {
	f.Add(Pair{1, 2, 3}.AppendTo(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		pairs := ParsePairs(b)
		var again []byte
		for _, p := range pairs {
			again = p.AppendTo(again)
		}
		if string(again) != string(b[:len(b)/PairBytes*PairBytes]) {
			t.Errorf("%x became %x", b, again)
		}
		_, _, _ = NewTrack(line(), pairs, time.Millisecond).True(1, 2)
	})
}

func TestCounterEndsWithTheClock(t *testing.T) {
	if !Supported {
		t.Skip("SKIPPED, NOT PASSED: no counter that guests share on this processor")
	}
	before := Counter()
	counter, _, gap := Read()
	after := Counter()
	if counter < before || counter > after || gap > after-before {
		t.Errorf("%d, %d, %d: gap %d", before, counter, after, gap)
	}
}
