package sched

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneway.example/tests/testseed"
)

// wallClock is a clock that a test sets.
type wallClock struct{ time.Time }

func (c *wallClock) now() time.Time { return c.Time }

func at(s string) time.Time {
	t, err := time.ParseInLocation("2006-01-02 15:04:05", s, time.UTC)
	if err != nil {
		panic(err)
	}
	return t
}

func limited(tb testing.TB, limit int64, clock *wallClock) *Links {
	tb.Helper()
	return newLinks(tb, LinksOptions{Links: []LinkOptions{{Name: "uplink", BudgetBytes: limit}}, Now: clock.now})
}

// spend reserves and uses n octets.
func spend(tb testing.TB, l *Links, n int64) {
	tb.Helper()
	r, err := l.Reserve("uplink", n)
	if err != nil {
		tb.Fatal(err)
	}
	r.Settle(n)
}

func wantUsage(tb testing.TB, l *Links, want Usage) {
	tb.Helper()
	if diff := cmp.Diff(want, l.Usage("uplink")); diff != "" {
		tb.Errorf("usage (-want +got):\n%s", diff)
	}
}

func TestBudgetIsNotOverrun(t *testing.T) {
	clock := &wallClock{at("2026-11-21 17:00:00")}
	l := limited(t, 1000, clock)
	first, err := l.Reserve("uplink", 700)
	if err != nil {
		t.Fatal(err)
	}
	wantUsage(t, l, Usage{Limit: 1000, Reserved: 700, Left: 300})
	_, err = l.Reserve("uplink", 301)
	missing, ok := errors.AsType[*BudgetError](err)
	if !ok || *missing != (BudgetError{Link: "uplink", Left: 300, Need: 301, Renewed: at("2026-11-22 00:00:00")}) {
		t.Fatalf("error is %v", err)
	}
	if text := err.Error(); !strings.Contains(text, "300 octets left, 301 are needed; it is renewed at 2026-11-22T00:00:00Z") {
		t.Error(text)
	}
	second, err := l.Reserve("uplink", 300)
	if err != nil {
		t.Errorf("all that is left is not to be had: %v", err)
	}
	first.Settle(100)
	first.Settle(100) // does nothing
	wantUsage(t, l, Usage{Limit: 1000, Used: 100, Reserved: 300, Left: 600})
	second.Settle(950) // more than was set aside: told, and held against what follows
	wantUsage(t, l, Usage{Limit: 1000, Used: 1050, Left: 0})
	if _, err := l.Reserve("uplink", 1); err == nil {
		t.Error("a budget that is used up still gives")
	}
	if _, err := l.Reserve("uplink", 0); err != nil {
		t.Errorf("nothing needs no budget: %v", err)
	}
	if _, err := l.Reserve("uplink", -1); err == nil {
		t.Error("a negative amount was set aside")
	}
	(*Reservation)(nil).Settle(5)
}

func TestLinkWithoutABudgetIsOnlyCounted(t *testing.T) {
	clock := &wallClock{at("2026-11-21 17:00:00")}
	l := newLinks(t, LinksOptions{Now: clock.now})
	for range 3 { // also where sums would overflow
		r, err := l.Reserve("uplink", math.MaxInt64)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Settle(0)
		r, err = l.Reserve("uplink", math.MaxInt64)
		if err != nil {
			t.Fatal(err)
		}
		r.Settle(math.MaxInt64)
	}
	wantUsage(t, l, Usage{Used: math.MaxInt64, Reserved: l.Usage("uplink").Reserved, Left: math.MaxInt64})
}

func TestReloadChangesBudgetsAndKeepsUsage(t *testing.T) {
	clock := &wallClock{at("2026-11-21 17:00:00")}
	l := limited(t, 1000, clock)
	spend(t, l, 400)
	running, err := l.Reserve("uplink", 300)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ limit, left int64 }{{2000, 1300}, {500, 0}, {0, math.MaxInt64}} {
		if err := l.SetLinks([]LinkOptions{{Name: "uplink", BudgetBytes: c.limit}, {Name: "other"}}); err != nil {
			t.Fatal(err)
		}
		wantUsage(t, l, Usage{Limit: c.limit, Used: 400, Reserved: 300, Left: c.left})
	}
	if err := l.SetLinks(nil); err != nil {
		t.Fatal(err)
	}
	running.Settle(100)
	if err := l.SetLinks([]LinkOptions{{Name: "uplink", BudgetBytes: 1000}}); err != nil {
		t.Fatal(err)
	}
	wantUsage(t, l, Usage{Limit: 1000, Used: 500, Left: 500})
	for _, wrong := range [][]LinkOptions{{{}}, {{Name: "a"}, {Name: "a"}}, {{Name: "a", BudgetBytes: -1}}} {
		if err := l.SetLinks(wrong); err == nil {
			t.Errorf("%+v was put in force", wrong)
		}
		if _, err := NewLinks(LinksOptions{Links: wrong}); err == nil {
			t.Errorf("%+v was made", wrong)
		}
	}
	wantUsage(t, l, Usage{Limit: 1000, Used: 500, Left: 500})
}

func TestMidnightRenewsTheBudget(t *testing.T) {
	clock := &wallClock{at("2026-11-21 23:59:30")}
	l := limited(t, 1000, clock)
	spend(t, l, 600)
	across, err := l.Reserve("uplink", 300)
	if err != nil {
		t.Fatal(err)
	}
	clock.Time = at("2026-11-22 00:00:00")
	wantUsage(t, l, Usage{Limit: 1000, Reserved: 300, Left: 700})
	across.Settle(300)
	wantUsage(t, l, Usage{Limit: 1000, Used: 300, Left: 700})
}

func TestSteppedClockRenewsNothing(t *testing.T) {
	clock := &wallClock{at("2026-11-22 00:00:01")}
	l := limited(t, 1000, clock)
	spend(t, l, 600)
	for _, c := range []struct {
		now  string
		used int64
	}{
		{"2026-11-21 23:59:59", 600}, // back over midnight
		{"2026-11-22 00:00:00", 600}, // and there again
		{"2024-01-01 00:00:00", 600}, // to a date never seen
		{"2026-11-22 00:00:02", 600},
		{"2026-11-23 00:00:00", 0}, // the next day in truth
		{"2026-11-22 23:59:59", 600},
		{"2026-11-23 00:00:00", 0},
	} {
		clock.Time = at(c.now)
		if got := l.Usage("uplink").Used; got != c.used {
			t.Errorf("%s: %d used, want %d", c.now, got, c.used)
		}
	}
}

func TestClockThatWasFarAheadDoesNotHoldTheBudgetForYears(t *testing.T) {
	clock := &wallClock{at("2030-01-01 12:00:00")}
	l := limited(t, 1000, clock)
	spend(t, l, 1000)
	clock.Time = at("2026-11-21 12:00:00")
	wantUsage(t, l, Usage{Limit: 1000, Used: 1000})
	clock.Time = at("2026-11-22 00:00:00")
	wantUsage(t, l, Usage{Limit: 1000, Left: 1000})
}

func TestBookForgetsOldDates(t *testing.T) {
	clock := &wallClock{at("2026-11-01 12:00:00")}
	l := limited(t, 1000, clock)
	for range 100 {
		spend(t, l, 1000)
		clock.Time = clock.AddDate(0, 0, 1)
	}
	if n := len(l.book.days); n > maxDays {
		t.Errorf("%d days in memory", n)
	}
}

// TestNoDayMovesMoreThanItsBudget goes through days with runs at random, whatever
// is reserved and settled.
func TestNoDayMovesMoreThanItsBudget(t *testing.T) {
	seed := testseed.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	clock := &wallClock{at("2026-03-28 00:00:00").In(zone(t, "Europe/Berlin"))}
	const limit = 10_000
	l := limited(t, limit, clock)
	moved := map[string]int64{}
	type run struct {
		*Reservation
		most int64
	}
	var open []run
	refused := 0
	for range 20_000 {
		clock.Time = clock.Add(time.Duration(rng.Int64N(int64(10 * time.Minute))))
		if n := len(open); n > 0 && rng.IntN(2) == 0 {
			used := rng.Int64N(open[n-1].most + 1)
			open[n-1].Settle(used)
			moved[clock.Format(time.DateOnly)] += used
			open = open[:n-1]
			continue
		}
		most := rng.Int64N(limit / 2)
		r, err := l.Reserve("uplink", most)
		if err != nil {
			refused++
			continue
		}
		open = append(open, run{r, most})
	}
	for date, n := range moved {
		if n > limit {
			t.Errorf("%s: %d moved", date, n)
		}
	}
	if len(moved) < 30 || refused == 0 {
		t.Errorf("%d days, %d refused: nothing was tested", len(moved), refused)
	}
}
