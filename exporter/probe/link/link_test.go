package link

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/probe/quota"
	"oneway.example/tests/testseed"
)

func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := testseed.Of(t)
	return rand.New(rand.NewPCG(seed, 0))
}

func TestWaitersAreServedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewTable(nil)
		first, err := l.Acquire(t.Context(), "uplink", "0")
		if err != nil {
			t.Fatal(err)
		}
		var order []int // the holder of the link appends
		for i := range 5 {
			go func() {
				release, err := l.Acquire(t.Context(), "uplink", "x")
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, i)
				// simulated time (synctest)
				time.Sleep(time.Second)
				release()
			}()
			synctest.Wait()
		}
		if _, ok := l.TryAcquire("uplink", "impatient"); ok {
			t.Error("TryAcquire took a held link")
		}
		if _, ok := l.TryAcquire("downlink", "another"); !ok {
			t.Error("TryAcquire failed on another link")
		}
		first()
		first() // must not release for the next holder
		if _, ok := l.TryAcquire("uplink", "impatient"); ok {
			t.Error("TryAcquire overtook waiters")
		}
		time.Sleep(time.Minute) // simulated time (synctest)
		synctest.Wait()
		if !slices.Equal(order, []int{0, 1, 2, 3, 4}) {
			t.Errorf("order was %v", order)
		}
		if holder, _, ok := l.Holder("uplink"); ok {
			t.Errorf("%s still holds it", holder)
		}
	})
}

func TestCanceledWaiterDoesNotGetTheLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewTable(nil)
		begin := time.Now()
		release, _ := l.TryAcquire("uplink", "a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := l.Acquire(ctx, "uplink", "b"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v", err)
		}
		if holder, since, ok := l.Holder("uplink"); holder != "a" || !since.Equal(begin) || !ok {
			t.Errorf("holder is %q since %v, %v", holder, since, ok)
		}
		release()
		if _, ok := l.TryAcquire("uplink", "c"); !ok {
			t.Error("the link went to a canceled waiter")
		}
		if _, err := l.Acquire(ctx, "free", "d"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Acquire with a context that has ended: %v", err)
		}
	})
}

// The end of the context and the release both come before the waiter runs.
func TestLinkIsNotLostWhenReleaseAndCancelCoincide(t *testing.T) {
	var came, gaveUp int
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			l := NewTable(nil)
			first, ok := l.TryAcquire("x", "a")
			if !ok {
				t.Fatal("TryAcquire failed on a free link")
			}
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				release, err := l.Acquire(ctx, "x", "b")
				if err != nil {
					gaveUp++
					return
				}
				came++
				release()
			}()
			synctest.Wait()
			cancel()
			first()
			synctest.Wait()
			if holder, _, ok := l.Holder("x"); ok {
				t.Fatalf("%s still holds the link", holder)
			}
		})
	}
	if gaveUp == 0 {
		t.Errorf("acquired %d times, canceled %d times: the test covers nothing", came, gaveUp)
	}
}

// Many goroutines wait, try and cancel, while SetLinks is called repeatedly.
func TestNoTwoHoldALink(t *testing.T) {
	seed := testseed.Of(t)
	l := NewTable(nil)
	var holders atomic.Int32
	var held atomic.Int64
	use := func(release func()) {
		if n := holders.Add(1); n != 1 {
			t.Errorf("%d holders at once", n)
		}
		held.Add(1)
		holders.Add(-1)
		release()
	}
	var all sync.WaitGroup
	for i := range 8 {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		all.Go(func() {
			for range 300 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // exceeded only if the link is lost
				switch rng.IntN(4) {
				case 0:
					if release, ok := l.TryAcquire("x", "try"); ok {
						use(release)
					}
				case 1:
					go cancel() // at a random time while it waits
					if release, err := l.Acquire(ctx, "x", "hasty"); err == nil {
						use(release)
					}
				case 2:
					if err := l.SetLinks([]Options{{Name: "x"}}[:rng.IntN(2)]); err != nil {
						t.Error(err)
					}
				default:
					release, err := l.Acquire(ctx, "x", "patient")
					if err != nil {
						t.Error(err)
						cancel()
						return
					}
					use(release)
				}
				cancel()
			}
		})
	}
	all.Wait()
	if _, ok := l.TryAcquire("x", "last"); !ok || held.Load() == 0 {
		t.Errorf("the link is not free at the end; it was held %d times", held.Load())
	}
}

func TestUnusedNamesAreRemoved(t *testing.T) {
	l := NewTable(nil)
	if err := l.SetLinks([]Options{{Name: "configured"}}); err != nil {
		t.Fatal(err)
	}
	rng := seeded(t)
	for range 100 {
		name := string(rune('a' + rng.IntN(26)))
		if release, ok := l.TryAcquire(name, "w"); ok {
			r, err := l.Reserve(name, 10)
			if err != nil {
				t.Fatal(err)
			}
			r.Settle(0)
			release()
		}
		_ = l.Usage(name)
	}
	var names []string
	l.Each(func(name string, _ quota.Usage) { names = append(names, name) })
	if !slices.Equal(names, []string{"configured"}) || len(l.links) != 1 {
		t.Errorf("links are %q, %d in memory", names, len(l.links))
	}
}

func wantUsage(tb testing.TB, l *Table, want quota.Usage) {
	tb.Helper()
	if diff := cmp.Diff(want, l.Usage("uplink")); diff != "" {
		tb.Errorf("usage (-want +got):\n%s", diff)
	}
}

func TestReloadChangesQuotasAndKeepsUsage(t *testing.T) {
	l := NewTable(nil)
	if err := l.SetLinks([]Options{{Name: "uplink", QuotaBytes: 1000}}); err != nil {
		t.Fatal(err)
	}
	spent, err := l.Reserve("uplink", 400)
	if err != nil {
		t.Fatal(err)
	}
	spent.Settle(400)
	running, err := l.Reserve("uplink", 300)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ limit, left int64 }{{2000, 1300}, {500, 0}, {0, math.MaxInt64}} {
		if err := l.SetLinks([]Options{{Name: "uplink", QuotaBytes: c.limit}, {Name: "other"}}); err != nil {
			t.Fatal(err)
		}
		wantUsage(t, l, quota.Usage{Limit: c.limit, Used: 400, Reserved: 300, Left: c.left})
	}
	if err := l.SetLinks(nil); err != nil {
		t.Fatal(err)
	}
	running.Settle(100)
	if err := l.SetLinks([]Options{{Name: "uplink", QuotaBytes: 1000}}); err != nil {
		t.Fatal(err)
	}
	wantUsage(t, l, quota.Usage{Limit: 1000, Used: 500, Left: 500})
	for _, wrong := range [][]Options{{{}}, {{Name: "a"}, {Name: "a"}}, {{Name: "a", QuotaBytes: -1}}} {
		if err := l.SetLinks(wrong); err == nil {
			t.Errorf("%+v was accepted", wrong)
		}
	}
	wantUsage(t, l, quota.Usage{Limit: 1000, Used: 500, Left: 500})
}
