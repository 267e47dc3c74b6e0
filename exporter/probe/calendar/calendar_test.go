package calendar

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the host may lack a zone database

	"oneway.example/tests/testseed"
)

func zone(tb testing.TB, name string) *time.Location {
	tb.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		tb.Fatal(err)
	}
	return loc
}

func at(s string) time.Time {
	t, err := time.ParseInLocation("2006-01-02 15:04:05", s, time.UTC)
	if err != nil {
		panic(err)
	}
	return t
}

func parseWindow(s string) (w Window, err error) {
	err = w.UnmarshalText([]byte(s))
	return w, err
}

func windows(tb testing.TB, all ...string) (ws []Window) {
	tb.Helper()
	for _, s := range all {
		w, err := parseWindow(s)
		if err != nil {
			tb.Fatal(err)
		}
		ws = append(ws, w)
	}
	return ws
}

func TestWindowsAreParsedAndFormatted(t *testing.T) {
	for s, want := range map[string]string{
		"22:00-06:00":               "22:00-06:00",
		" 9:30-24:00 ":              "09:30-24:00",
		"mon-fri 09:00-17:00":       "mon,tue,wed,thu,fri 09:00-17:00",
		"Saturday,sun":              "sun,sat 00:00-24:00",
		"fri-mon 00:00-00:01":       "sun,mon,fri,sat 00:00-00:01",
		"wed,mon-tue 12:00-11:59":   "mon,tue,wed 12:00-11:59",
		"sun-sat":                   "sun,mon,tue,wed,thu,fri,sat 00:00-24:00",
		"mon-mon 00:00-24:00":       "mon 00:00-24:00",
		"MON\t08:00-09:00":          "mon 08:00-09:00",
		"thursday-friday 1:00-2:00": "thu,fri 01:00-02:00",
	} {
		var w Window
		if err := w.UnmarshalText([]byte(s)); err != nil {
			t.Errorf("%q: %v", s, err)
			continue
		}
		if w.String() != want {
			t.Errorf("%q: got %q, want %q", s, w, want)
		}
	}
	for s, want := range map[string]string{
		"":                    "it must be",
		"night":               "it must be",
		"22:00":               "it must be",
		"22:00-":              "it must be",
		"24:00-06:00":         "it must be",
		"06:00-00:00":         "it must be",
		"06:00-24:01":         "it must be",
		"06:60-07:00":         "it must be",
		"-1:00-07:00":         "it must be",
		"006:00-07:00":        "it must be",
		"6-7":                 "it must be",
		"mon 6:00-7:00 x":     "it must be",
		"6:00-7:00 mon":       "it must be",
		"mo 06:00-07:00":      "it must be",
		"mon, 06:00-07:00":    "it must be",
		"mon-tue-wed":         "it must be",
		"06:00-06:00":         "never open",
		"06:00-07:00-08:00":   "it must be",
		"mon-fri 07:00-07:00": "never open",
	} {
		var w Window
		if err := w.UnmarshalText([]byte(s)); err == nil || !strings.Contains(err.Error(), want) || w != (Window{}) {
			t.Errorf("%q: %v, %v", s, w, err)
		}
	}
}

func FuzzParseWindow(f *testing.F) {
	for _, s := range []string{"22:00-06:00", "mon-fri 09:00-17:00", "sat,sun", "fri-mon 0:00-24:00", "6:00-6:00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		w, err := parseWindow(s)
		if err != nil {
			return
		}
		again, err := parseWindow(w.String())
		if err != nil || again != w {
			t.Fatalf("%q is parsed as %v, and that as %v, %v", s, w, again, err)
		}
		if err := (Calendar{Every: time.Hour, Windows: []Window{w}}).Check(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestInvalidCalendarsAreRejected(t *testing.T) {
	for _, c := range []Calendar{
		{},
		{Every: -1},
		{Every: time.Hour, Jitter: -1},
		{Every: time.Hour, Jitter: time.Hour/JitterPart + 1},
		{Every: time.Hour, Windows: []Window{{}}},
		{Every: time.Hour, Windows: []Window{{From: 5, To: 2000}}},
		{Every: time.Hour, Windows: []Window{{From: -1, To: 5}}},
	} {
		if c.Check() == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
	if err := (Calendar{Every: time.Hour, Jitter: time.Hour / JitterPart, Windows: windows(t, "mon", "22:00-06:00")}).Check(); err != nil {
		t.Error(err)
	}
}

func TestFirstRunsAreStaggered(t *testing.T) {
	seed := testseed.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	c := Calendar{Every: 30 * time.Minute}
	start := at("2026-11-21 12:00:00")
	var parts [10]int
	for range 1000 {
		d := c.First(start, rng).Sub(start)
		if d < 0 || d >= c.Every {
			t.Fatalf("first after %v", d)
		}
		parts[d*10/c.Every]++
	}
	for i, n := range parts { // 100 each; the limits are exceeded with a probability below 1e-14 (Chernoff)
		if n < 5 || n > 195 {
			t.Errorf("%d of 1000 begin in tenth %d of the interval", n, i)
		}
	}
	if got := c.First(start, nil); !got.Equal(start) {
		t.Errorf("without rng the first is at %v", got)
	}
}

func TestJitterKeepsTheMean(t *testing.T) {
	seed := testseed.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	c := Calendar{Every: time.Hour, Jitter: 20 * time.Minute}
	begin := at("2026-11-21 12:00:00")
	due := begin
	const runs = 10_000
	for range runs {
		next := c.Next(due, rng)
		if d := next.Sub(due); d < 50*time.Minute || d > 70*time.Minute {
			t.Fatalf("%v between runs", d)
		}
		due = next
	}
	// The standard deviation of the mean is 20 min/sqrt(12)/100 = 3.5 s; ten of them are exceeded
	// with a probability below 1e-7 for any distribution (Hoeffding).
	if mean := due.Sub(begin) / runs; (mean - time.Hour).Abs() > 35*time.Second {
		t.Errorf("the mean is %v", mean)
	}
	if got := c.Next(begin, nil); !got.Equal(begin.Add(time.Hour)) {
		t.Errorf("without rng the next is at %v", got)
	}
}

func TestRunsBeginInTheirWindows(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	for _, c := range []struct {
		windows []string
		every   time.Duration
		after   string
		want    string
	}{
		{[]string{"22:00-06:00"}, 30 * time.Minute, "2026-11-20 23:50", "2026-11-21 00:20"},
		{[]string{"22:00-06:00"}, 30 * time.Minute, "2026-11-21 05:29", "2026-11-21 05:59"},
		{[]string{"22:00-06:00"}, 30 * time.Minute, "2026-11-21 05:30", "2026-11-21 22:00"},
		{[]string{"mon-fri 09:00-17:00"}, time.Hour, "2026-11-20 16:00", "2026-11-23 09:00"}, // Friday to Monday
		{[]string{"fri 22:00-06:00"}, time.Hour, "2026-11-21 04:59", "2026-11-21 05:59"},     // Friday's window, on Saturday
		{[]string{"fri 22:00-06:00"}, time.Hour, "2026-11-21 21:00", "2026-11-27 22:00"},
		{[]string{"mon-fri 09:00-17:00", "sat,sun"}, time.Hour, "2026-11-20 16:00", "2026-11-21 00:00"},
		{[]string{"00:00-24:00"}, time.Hour, "2026-11-20 23:30", "2026-11-21 00:30"},
		// The clocks go from 2:00 to 3:00 on 2026-03-29, and from 3:00 to 2:00 on 2026-10-25.
		{[]string{"02:10-02:50"}, time.Hour, "2026-03-28 04:00", "2026-03-30 02:10"},
		{[]string{"02:30-04:00"}, time.Hour, "2026-03-28 05:00", "2026-03-29 03:00"},
		{[]string{"sun 02:10-02:50"}, time.Hour, "2026-03-28 04:00", "2026-04-05 02:10"},
		{[]string{"02:10-02:50"}, time.Hour, "2026-10-24 04:00", "2026-10-25 02:10"},
		{[]string{"22:00-06:00"}, 24 * time.Hour, "2026-10-24 23:00", "2026-10-25 22:00"},
	} {
		after, err := time.ParseInLocation("2006-01-02 15:04", c.after, berlin)
		if err != nil {
			t.Fatal(err)
		}
		calendar := Calendar{Every: c.every, Windows: windows(t, c.windows...)}
		if got := calendar.Next(after, nil).Format("2006-01-02 15:04"); got != c.want {
			t.Errorf("%q, every %v, after %s: %s, want %s", c.windows, c.every, c.after, got, c.want)
		}
	}
	never := Calendar{Every: time.Hour, Windows: []Window{{}}}
	if got := never.Next(at("2026-11-21 00:00:00"), nil); !got.IsZero() {
		t.Errorf("a window that never opens returns %v", got)
	}
}

var zones = []string{
	"UTC", "Europe/Berlin", "America/New_York", "America/Sao_Paulo", // changed at midnight in the past
	"Australia/Lord_Howe", // by half an hour
	"Pacific/Apia",        // skipped a day in 2011
	"Africa/Cairo", "Asia/Kathmandu", "America/St_Johns",
}

// dayNear returns a day within a few days of a change of offset, if there is one.
func dayNear(rng *rand.Rand, loc *time.Location) time.Time {
	t := time.Date(2000+rng.IntN(27), time.Month(1+rng.IntN(12)), 1+rng.IntN(28), rng.IntN(24), rng.IntN(60), 0, 0, loc)
	if _, end := t.ZoneBounds(); !end.IsZero() && rng.IntN(4) > 0 {
		t = end.Add(time.Duration(rng.IntN(96)-48) * time.Hour)
	}
	return t.Truncate(time.Minute)
}

// TestWallIsTheFirstMomentThatIsShown compares with a search by minute.
func TestWallIsTheFirstMomentThatIsShown(t *testing.T) {
	seed := testseed.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := range 300 {
		loc := zone(t, zones[i%len(zones)])
		year, month, day := dayNear(rng, loc).Date()
		minute := rng.IntN(2*minutesOfDay + 1)
		if i%3 == 0 {
			minute = minutesOfDay
		}
		shown := time.Date(year, month, day, 0, minute, 0, 0, time.UTC)
		var exact, later time.Time
		for m := range 52 * 60 {
			at := shown.Add(time.Duration(m-26*60) * time.Minute).In(loc)
			if d := onWall(at).Sub(shown); d == 0 && exact.IsZero() {
				exact = at
			} else if d > 0 && later.IsZero() {
				later = at
			}
		}
		if exact.IsZero() {
			exact = later
		}
		if got := Wall(year, month, day, minute, loc); !got.Equal(exact) {
			t.Fatalf("%v, %s and %d minutes: %v, want %v", loc, shown.Format(time.DateOnly), minute, got, exact)
		}
	}
}

func TestMidnightIsTheBeginningOfTheNextDate(t *testing.T) {
	seed := testseed.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := range 2000 {
		now := dayNear(rng, zone(t, zones[i%len(zones)]))
		next := NextMidnight(now)
		before := next.Add(-1)
		if !next.After(now) || next.Sub(now) > 26*time.Hour || before.Format(time.DateOnly) >= next.Format(time.DateOnly) ||
			before.Format(time.DateOnly) != now.Format(time.DateOnly) {
			t.Fatalf("midnight after %v is %v", now, next)
		}
	}
}

// St. John's put its clocks back at 00:01 until 2011: the earlier date began again.
func TestRepeatedMidnightIsAlwaysAhead(t *testing.T) {
	loc := zone(t, "America/St_Johns")
	for _, c := range []struct{ now, want string }{
		{"2003-10-25T12:00:00-02:30", "2003-10-26T00:00:00-02:30"},
		{"2003-10-26T00:00:30-02:30", "2003-10-27T00:00:00-03:30"},
		{"2003-10-25T23:01:00-03:30", "2003-10-26T00:00:00-03:30"},
	} {
		now, err := time.Parse(time.RFC3339, c.now)
		if err != nil {
			t.Fatal(err)
		}
		if got := NextMidnight(now.In(loc)).Format(time.RFC3339); got != c.want {
			t.Errorf("midnight after %s is %s, want %s", c.now, got, c.want)
		}
	}
}

// TestRandomCalendarsKeepTheirWindows compares Open with a search by minute.
func TestRandomCalendarsKeepTheirWindows(t *testing.T) {
	seed := testseed.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := range 150 {
		loc := zone(t, zones[i%len(zones)])
		c := Calendar{Every: time.Duration(1+rng.IntN(600)) * time.Minute}
		for range 1 + rng.IntN(2) {
			w := Window{Days: uint8(rng.IntN(128)), From: rng.IntN(minutesOfDay), To: 1 + rng.IntN(minutesOfDay)}
			if w.From == w.To {
				w.To = w.From + 1
			}
			c.Windows = append(c.Windows, w)
		}
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
		after := dayNear(rng, loc)
		due := after.Add(c.Every)
		opens := due
		for !c.Open(opens) {
			opens = opens.Add(time.Minute)
		}
		got := c.Next(after, rng)
		switch {
		case !c.Open(got):
			t.Fatalf("%v after %v: %v is in no window", c.Windows, after, got)
		case opens.Equal(due) && !got.Equal(due):
			t.Fatalf("%v after %v: %v, want %v", c.Windows, after, got, due)
		case got.Before(opens) || got.Sub(opens) > c.Every:
			t.Fatalf("%v every %v after %v: %v, but the next window opens at %v", c.Windows, c.Every, after, got, opens)
		}
	}
}
