package quota

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the host may lack a zone database

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

// limit is the quota of uplink in these tests.
const limit = 1000

// spend reserves and settles n bytes.
func spend(tb testing.TB, s *Store, n int64) {
	tb.Helper()
	r, err := s.Reserve("uplink", limit, n)
	if err != nil {
		tb.Fatal(err)
	}
	r.Settle(n)
}

func wantUsage(tb testing.TB, s *Store, want Usage) {
	tb.Helper()
	if diff := cmp.Diff(want, s.Usage("uplink", want.Limit)); diff != "" {
		tb.Errorf("usage (-want +got):\n%s", diff)
	}
}

func TestQuotaIsNotExceeded(t *testing.T) {
	clock := &wallClock{at("2026-11-21 17:00:00")}
	s := New(Options{Now: clock.now})
	first, err := s.Reserve("uplink", limit, 700)
	if err != nil {
		t.Fatal(err)
	}
	wantUsage(t, s, Usage{Limit: 1000, Reserved: 700, Left: 300})
	_, err = s.Reserve("uplink", limit, 301)
	missing, ok := errors.AsType[*ExceededError](err)
	if !ok || *missing != (ExceededError{Name: "uplink", Left: 300, Need: 301, Renewed: at("2026-11-22 00:00:00")}) {
		t.Fatalf("error is %v", err)
	}
	if text := err.Error(); !strings.Contains(text, "300 B left, and the run may need 301 B; it is renewed at 2026-11-22T00:00:00Z") {
		t.Error(text)
	}
	second, err := s.Reserve("uplink", limit, 300)
	if err != nil {
		t.Errorf("reserve all that is left: %v", err)
	}
	first.Settle(100)
	first.Settle(100) // does nothing
	wantUsage(t, s, Usage{Limit: 1000, Used: 100, Reserved: 300, Left: 600})
	second.Settle(950) // more than was reserved: counted against the next
	wantUsage(t, s, Usage{Limit: 1000, Used: 1050, Left: 0})
	if _, err := s.Reserve("uplink", limit, 1); err == nil {
		t.Error("a used-up quota reserved bytes")
	}
	if _, err := s.Reserve("uplink", limit, 0); err != nil {
		t.Errorf("reserve 0 bytes: %v", err)
	}
	if _, err := s.Reserve("uplink", limit, -1); err == nil {
		t.Error("a negative number was reserved")
	}
	(*Reservation)(nil).Settle(5)
}

func TestLinkWithoutAQuotaIsCountedOnly(t *testing.T) {
	clock := &wallClock{at("2026-11-21 17:00:00")}
	s := New(Options{Now: clock.now})
	for range 3 { // sums would overflow
		r, err := s.Reserve("uplink", 0, math.MaxInt64)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Settle(0)
		r, err = s.Reserve("uplink", 0, math.MaxInt64)
		if err != nil {
			t.Fatal(err)
		}
		r.Settle(math.MaxInt64)
	}
	wantUsage(t, s, Usage{Used: math.MaxInt64, Reserved: s.Usage("uplink", 0).Reserved, Left: math.MaxInt64})
}

func TestMidnightRenewsTheQuota(t *testing.T) {
	clock := &wallClock{at("2026-11-21 23:59:30")}
	s := New(Options{Now: clock.now})
	spend(t, s, 600)
	across, err := s.Reserve("uplink", limit, 300)
	if err != nil {
		t.Fatal(err)
	}
	clock.Time = at("2026-11-22 00:00:00")
	wantUsage(t, s, Usage{Limit: 1000, Reserved: 300, Left: 700})
	across.Settle(300)
	wantUsage(t, s, Usage{Limit: 1000, Used: 300, Left: 700})
}

func TestSteppedClockRenewsNothing(t *testing.T) {
	clock := &wallClock{at("2026-11-22 00:00:01")}
	s := New(Options{Now: clock.now})
	spend(t, s, 600)
	for _, c := range []struct {
		now  string
		used int64
	}{
		{"2026-11-21 23:59:59", 600}, // back over midnight
		{"2026-11-22 00:00:00", 600}, // and forward again
		{"2024-01-01 00:00:00", 600}, // a date not in the book
		{"2026-11-22 00:00:02", 600},
		{"2026-11-23 00:00:00", 0}, // the next day
		{"2026-11-22 23:59:59", 600},
		{"2026-11-23 00:00:00", 0},
	} {
		clock.Time = at(c.now)
		if got := s.Usage("uplink", limit).Used; got != c.used {
			t.Errorf("%s: %d used, want %d", c.now, got, c.used)
		}
	}
}

func TestQuotaIsRenewedAtMidnightAfterAClockFarAhead(t *testing.T) {
	clock := &wallClock{at("2030-01-01 12:00:00")}
	s := New(Options{Now: clock.now})
	spend(t, s, 1000)
	clock.Time = at("2026-11-21 12:00:00")
	wantUsage(t, s, Usage{Limit: 1000, Used: 1000})
	clock.Time = at("2026-11-22 00:00:00")
	wantUsage(t, s, Usage{Limit: 1000, Left: 1000})
}

func TestOldDatesAreRemoved(t *testing.T) {
	clock := &wallClock{at("2026-11-01 12:00:00")}
	s := New(Options{Now: clock.now})
	for range 100 {
		spend(t, s, 1000)
		clock.Time = clock.AddDate(0, 0, 1)
	}
	if n := len(s.book.days); n > maxDays {
		t.Errorf("%d days in memory", n)
	}
}

// TestNoDayMovesMoreThanItsQuota reserves and settles at random through several days.
func TestNoDayMovesMoreThanItsQuota(t *testing.T) {
	seed := testseed.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	clock := &wallClock{at("2026-03-28 00:00:00").In(berlin)}
	const limit = 10_000
	s := New(Options{Now: clock.now})
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
		r, err := s.Reserve("uplink", limit, most)
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
		t.Errorf("%d days, %d refused: the test covers nothing", len(moved), refused)
	}
}
