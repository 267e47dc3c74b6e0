package loss

import (
	"math/rand/v2"
	"slices"
	"testing"

	"oneway.example/exporter/estimate/seqwin"

	"github.com/google/go-cmp/cmp"
	"oneway.example/tests/testseed"
)

// outcomes makes a random stream of received (true) and lost numbers with bursts.
func outcomes(rng *rand.Rand, count int, loss float64, burst int) []bool {
	out := make([]bool, 0, count+burst)
	for len(out) < count {
		if rng.Float64() < loss {
			out = append(out, make([]bool, 1+rng.IntN(burst))...)
			continue
		}
		out = append(out, true)
	}
	return append(out[:count], true)
}

// runs is the reference: the lengths of all runs of lost numbers.
func runs(outcomes []bool) (lengths []int) {
	length := 0
	for _, received := range append(slices.Clone(outcomes), true) {
		if received && length > 0 {
			lengths = append(lengths, length)
			length = 0
		}
		if !received {
			length++
		}
	}
	return lengths
}

// watch runs the stream through a receiver that is read after every step numbers (at random up to that) and returns
// the sum of the tracker's deltas.
func watch(t *testing.T, stream []bool, step, known int, rng *rand.Rand) (sum Delta, completed []int) {
	t.Helper()
	var w seqwin.Window
	var tracker Tracker
	look := func() {
		c := w.Counts()
		d := tracker.UpdateWithin(c, known)
		if d.Restarted || d.Stale {
			t.Fatalf("delta %+v of a healthy receiver", d)
		}
		sum.Decided += d.Decided
		sum.Received += d.Received
		sum.Lost += d.Lost
		sum.Bursts += d.Bursts
		sum.PatternLost += d.PatternLost
		completed = append(completed, d.Completed...)
		if sum.Decided != c.Base || sum.Lost != c.Lost || sum.Received != c.Received {
			t.Fatalf("sum of deltas %+v differs from counts %+v", sum, c)
		}
	}
	next := 1 + rng.IntN(step)
	for n, received := range stream {
		if received {
			w.Add(uint64(n), 0)
		}
		if n >= next {
			w.Finish(uint64(n+1), 0)
			look()
			next = n + 1 + rng.IntN(step)
		}
	}
	w.Finish(uint64(len(stream)), 0)
	look()
	return sum, completed
}

func total(lengths []int) (n uint64) {
	for _, l := range lengths {
		n += uint64(l)
	}
	return n
}

func TestRunLengthsAreExactUpTo256DecidedNumbersAnUpdate(t *testing.T) {
	seed := testseed.Of(t)
	for _, words := range []int{1, 2, 4} {
		for _, loss := range []float64{0, 0.01, 0.1, 0.5} {
			rng := rand.New(rand.NewPCG(seed, uint64(words)))
			stream := outcomes(rng, 20000, loss, 40)
			sum, completed := watch(t, stream, 64*words, 64*words, rng)
			if diff := cmp.Diff(runs(stream), completed); diff != "" {
				t.Fatalf("%d words, loss %v (-want +got):\n%s", words, loss, diff)
			}
			if sum.PatternLost != 0 || sum.Bursts != uint64(len(completed)) {
				t.Errorf("%d words, loss %v: %+v with %d runs", words, loss, sum, len(completed))
			}
		}
	}
}

func TestEveryLossIsAccountedForWhenTooManyWereDecidedAtOnce(t *testing.T) {
	seed := testseed.Of(t)
	for _, known := range []int{0, 1, 64, 256} {
		for _, loss := range []float64{0.001, 0.1, 0.5} {
			rng := rand.New(rand.NewPCG(seed, uint64(known)))
			stream := outcomes(rng, 20000, loss, 1000)
			sum, completed := watch(t, stream, 2000, known, rng)
			if sum.Lost != total(completed)+sum.PatternLost {
				t.Errorf("known %d, loss %v: lost %d, but %d in runs and %d without order",
					known, loss, sum.Lost, total(completed), sum.PatternLost)
			}
			if want := uint64(len(runs(stream))); sum.Bursts != want {
				t.Errorf("known %d, loss %v: %d bursts, want %d", known, loss, sum.Bursts, want)
			}
		}
	}
}

func TestLongOutageIsOneExactRunThoughItExceedsTheBitmap(t *testing.T) {
	for name, c := range map[string]struct {
		before, lost, between, after int
	}{
		"at an update":            {before: 1000, lost: 5000, after: 1000},
		"amid received":           {before: 900, lost: 5000, after: 130},
		"ending within the words": {before: 900, lost: 5000, after: 900},
	} {
		stream := slices.Repeat([]bool{true}, c.before)
		stream = append(stream, make([]bool, c.lost)...)
		stream = append(stream, slices.Repeat([]bool{true}, c.after)...)
		var w seqwin.Window
		var tracker Tracker
		var got []int
		for n, received := range stream {
			if received {
				w.Add(uint64(n), 0)
			}
			if n == 800 || n == len(stream)-1 {
				w.Finish(uint64(n+1), 0)
				d := tracker.Update(w.Counts())
				got = append(got, d.Completed...)
				if d.PatternLost != 0 {
					t.Errorf("%s: %d losses without order", name, d.PatternLost)
				}
			}
		}
		if diff := cmp.Diff([]int{c.lost}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestRunThatSpansManyUpdatesIsReportedOnceWhenItEnds(t *testing.T) {
	var w seqwin.Window
	var tracker Tracker
	w.Add(0, 0)
	for next := uint64(1); next <= 1000; next += 100 {
		w.Finish(next, 0)
		if d := tracker.Update(w.Counts()); len(d.Completed) != 0 {
			t.Fatalf("at %d: reported %v before it ended", next, d.Completed)
		}
	}
	w.Add(950, 0)
	if d := tracker.Update(w.Counts()); len(d.Completed) != 0 {
		t.Errorf("reported %v before 901..949 were decided", d.Completed)
	}
	w.Finish(951, 0)
	if d := tracker.Update(w.Counts()); !slices.Equal(d.Completed, []int{949}) {
		t.Errorf("reported %v, want [949]", d.Completed)
	}
}

func TestCountersThatGoBackwardsNeverUnderflow(t *testing.T) {
	var tracker Tracker
	tracker.Update(seqwin.Counts{Base: 1000, Next: 1000, Received: 990, Lost: 10, Bursts: 10, Late: 3, Recent: [4]uint64{^uint64(0)}})
	// The remote end restarted: it receives our next numbers but has counted few.
	restarted := seqwin.Counts{Base: 1010, Next: 1012, Received: 11, Lost: 1, Bursts: 1}
	d := tracker.Update(restarted)
	want := Delta{Restarted: true, Decided: 12, Received: 11, Lost: 1, Bursts: 1, Completed: d.Completed, PatternLost: d.PatternLost}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if total(d.Completed)+d.PatternLost > 1 {
		t.Errorf("one packet lost, but runs %v and %d without order", d.Completed, d.PatternLost)
	}
	restarted.Received, restarted.Base, restarted.Next = 20, 1021, 1021
	if d := tracker.Update(restarted); d.Received != 9 || d.Lost != 0 || d.Restarted {
		t.Errorf("after the restart: %+v", d)
	}
}

func TestOtherFirstNumberIsARestart(t *testing.T) {
	var tracker Tracker
	tracker.Update(seqwin.Counts{Base: 10, Next: 10, Received: 10})
	d := tracker.Update(seqwin.Counts{First: 20, Base: 40, Next: 40, Received: 20})
	if !d.Restarted || d.Received != 20 || d.Decided != 20 || d.Lost != 0 {
		t.Errorf("%+v", d)
	}
}

func TestOvertakenReplyIsStaleAndChangesNothing(t *testing.T) {
	var tracker Tracker
	older := seqwin.Counts{Base: 90, Next: 91, Received: 90, Lost: 1, Bursts: 1}
	newer := seqwin.Counts{Base: 100, Next: 100, Received: 98, Lost: 2, Bursts: 2}
	tracker.Update(newer)
	if diff := cmp.Diff(Delta{Stale: true}, tracker.Update(older)); diff != "" {
		t.Errorf("older (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Delta{}, tracker.Update(newer)); diff != "" {
		t.Errorf("the same again (-want +got):\n%s", diff)
	}
}

func TestResetTakesTheNextCountsWhole(t *testing.T) {
	var tracker Tracker
	c := seqwin.Counts{Base: 100, Next: 100, Received: 98, Lost: 2, Bursts: 2}
	tracker.Update(c)
	tracker.Reset()
	if d := tracker.Update(c); d.Lost != 2 || d.Received != 98 || d.Restarted || d.Stale {
		t.Errorf("%+v", d)
	}
}

func FuzzTrackerTakesAnythingFromTheRemoteEnd(f *testing.F) {
	f.Add(uint64(1), uint64(2), uint64(3), uint64(4), uint64(5), uint64(6), 256)
	f.Add(uint64(1<<63), uint64(2), ^uint64(0), uint64(1<<40), uint64(5), uint64(6), -1)
	f.Fuzz(func(t *testing.T, base, received, lost, bursts, bitmap, more uint64, known int) {
		var tracker Tracker
		var w Window
		a := seqwin.Counts{Base: base, Next: base, Received: received, Lost: lost, Bursts: bursts, Recent: [4]uint64{bitmap, more, bitmap, more}}
		b := seqwin.Counts{Base: more, Next: base, Received: lost, Lost: received, Bursts: bitmap, Recent: [4]uint64{more, bursts}}
		for _, c := range []seqwin.Counts{a, b, a, a, b} {
			d := tracker.UpdateWithin(c, known)
			if d.Lost > max(a.Lost, b.Lost) || d.Received > max(a.Received, b.Received) {
				t.Fatalf("underflow: %+v", d)
			}
			if d.PatternLost > d.Lost {
				t.Fatalf("more without order than lost: %+v", d)
			}
			w.Add(d)
			if p, ok := w.Ratio(); ok && !(p >= 0 && p <= 1) {
				t.Fatalf("ratio %v", p)
			}
			if r, ok := w.BurstRatio(); ok && !(r >= 0) {
				t.Fatalf("burst ratio %v", r)
			}
		}
	})
}

func TestUpdateDoesNotAllocateOnceItsBufferHasGrown(t *testing.T) {
	var w seqwin.Window
	var tracker Tracker
	var n uint64
	step := func() {
		for range 100 {
			w.Add(n, 0)
			n += 2
		}
		w.Finish(n, 0)
		if d := tracker.Update(w.Counts()); d.Lost != 100 {
			t.Fatalf("%+v", d)
		}
	}
	step()
	if allocs := testing.AllocsPerRun(100, step); allocs != 0 {
		t.Errorf("%v allocations an update", allocs)
	}
}

func BenchmarkUpdate(b *testing.B) {
	b.ReportAllocs()
	var w seqwin.Window
	var tracker Tracker
	var n uint64
	for b.Loop() {
		w.Add(n, 0)
		n++
		tracker.Update(w.Counts())
	}
}
