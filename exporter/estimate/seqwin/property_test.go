package seqwin

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneway.example/tests/testseed"
)

const ms = time.Millisecond

// network converts sent numbers to arrivals: a seeded mix of every fault.
type network struct {
	rng                                *rand.Rand
	loss, duplicate, reorder, veryLate float64
	burst                              int
}

type packet struct {
	n  uint64
	at time.Duration
}

func (nw *network) carry(first uint64, count int, interval time.Duration) []packet {
	var arrivals []packet
	lost := 0
	for i := range count {
		n, at := first+uint64(i), time.Duration(i)*interval
		if lost == 0 && nw.rng.Float64() < nw.loss {
			lost = 1 + nw.rng.IntN(nw.burst)
		}
		if lost > 0 {
			lost--
			continue
		}
		copies := 1
		for nw.rng.Float64() < nw.duplicate {
			copies++
		}
		for range copies {
			d := 20 * ms
			if nw.rng.Float64() < nw.reorder {
				d += time.Duration(nw.rng.Int64N(int64(20 * interval)))
			}
			if nw.rng.Float64() < nw.veryLate {
				d += time.Second + time.Duration(nw.rng.Int64N(int64(10*time.Second)))
			}
			arrivals = append(arrivals, packet{n, at + d})
		}
	}
	slices.SortStableFunc(arrivals, func(a, b packet) int { return int(min(max(a.at-b.at, -1), 1)) })
	return arrivals
}

func TestWindowAgreesWithTheReferenceUnderEveryMixOfFaults(t *testing.T) {
	mixes := map[string]network{
		"clean":       {burst: 1},
		"loss":        {loss: 0.1, burst: 5},
		"outages":     {loss: 0.01, burst: 2000},
		"duplication": {duplicate: 0.3, burst: 1},
		"reordering":  {reorder: 0.3, burst: 1},
		"lateness":    {veryLate: 0.1, burst: 1},
		"everything":  {loss: 0.05, duplicate: 0.1, reorder: 0.2, veryLate: 0.05, burst: 700},
	}
	firsts := map[string]uint64{"0": 0, "1": 1, "before the wrap": 1<<32 - 700, "far": 5<<32 - 3}
	seed := testseed.Of(t)
	for name, mix := range mixes {
		for at, first := range firsts {
			t.Run(name+" from "+at, func(t *testing.T) {
				mix.rng = rand.New(rand.NewPCG(seed, first))
				follow(t, mix.carry(first, 3000, 10*ms), first, mix.rng)
			})
		}
	}
}

// follow passes the arrivals to both receivers through the 32 bits of the wire and compares them after every step.
func follow(t *testing.T, arrivals []packet, first uint64, rng *rand.Rand) {
	t.Helper()
	var w Window
	w.Start(first)
	r := newReference(first)
	last, before := first, w.Counts()
	for i, p := range arrivals {
		n := Extend(last, uint32(p.n))
		if n != p.n {
			t.Fatalf("step %d: number %d was extended to %d (last %d)", i, p.n, n, last)
		}
		last = max(last, n)
		if got, want := w.Add(n, p.at), r.add(n, p.at); got != want {
			t.Fatalf("step %d: Add(%d) = %d, want %d", i, n, got, want)
		}
		if rng.IntN(4) == 0 {
			w.Expire(p.at, 3*time.Second)
			r.expire(p.at, 3*time.Second)
		}
		after := w.Counts()
		if pending := after.Pending(); pending != r.pending() || pending > MaxSize {
			t.Fatalf("step %d: %d pending, want %d", i, pending, r.pending())
		}
		onlyGrows(t, &before, &after)
		before = after
		// The slow one is compared in full only at some steps, to limit the duration.
		if i%50 == 0 || i == len(arrivals)-1 {
			if diff := cmp.Diff(r.counts(), after); diff != "" {
				t.Fatalf("step %d (-want +got):\n%s", i, diff)
			}
		}
	}
	w.Finish(first+3000, time.Hour)
	r.finish(first+3000, time.Hour)
	after := w.Counts()
	if diff := cmp.Diff(r.counts(), after); diff != "" {
		t.Fatalf("finished (-want +got):\n%s", diff)
	}
	if after.Pending() != 0 || after.Received+after.Lost != 3000 {
		t.Fatalf("3000 sent, but received %d + lost %d, pending %d", after.Received, after.Lost, after.Pending())
	}
}

func onlyGrows(t *testing.T, a, b *Counts) {
	t.Helper()
	if b.Base < a.Base || b.Next < a.Next || b.Received < a.Received || b.Lost < a.Lost ||
		b.Duplicated < a.Duplicated || b.Reordered < a.Reordered || b.Late < a.Late || b.Bursts < a.Bursts {
		t.Fatalf("a counter decreased: %+v, then %+v", *a, *b)
	}
}

// FuzzWindow reads three bytes a step: the operation and the size of the number.
func FuzzWindow(f *testing.F) {
	f.Add(uint64(0), []byte{0, 0, 1, 0, 0, 5, 0, 0, 2, 1, 0, 0})
	f.Add(uint64(1<<32-5), []byte{0, 2, 0, 0, 4, 0, 0, 8, 1, 2, 0, 9, 3, 255, 255})
	f.Fuzz(func(t *testing.T, first uint64, steps []byte) {
		first %= 1 << 40
		var w Window
		w.Start(first)
		r := newReference(first)
		var now time.Duration
		for i := 0; i+3 <= len(steps) && i < 3*32; i += 3 {
			value := uint64(steps[i+1])<<8 | uint64(steps[i+2])
			switch steps[i] % 4 {
			case 0: // forward, up to 2047 ahead
				n := r.next + value%2048
				mustAgree(t, w.Add(n, now), r.add(n, now), n)
			case 1: // back
				n := r.next - min(r.next, value%2048)
				mustAgree(t, w.Add(n, now), r.add(n, now), n)
			case 2: // time passes
				now += time.Duration(value) * ms
				w.Expire(now, 3*time.Second)
				r.expire(now, 3*time.Second)
			case 3:
				next := r.base + value%4096
				w.Finish(next, now)
				r.finish(next, now)
			}
			if diff := cmp.Diff(r.counts(), w.Counts()); diff != "" {
				t.Fatalf("step %d (-want +got):\n%s", i/3, diff)
			}
			c := w.Counts()
			if c.Pending() != r.pending() {
				t.Fatalf("step %d: pending %d, want %d", i/3, c.Pending(), r.pending())
			}
		}
	})
}

func mustAgree(t *testing.T, got, want Verdict, n uint64) {
	t.Helper()
	if got != want {
		t.Fatalf("Add(%d) = %d, want %d", n, got, want)
	}
}
