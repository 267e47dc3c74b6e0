package maintenance

import (
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/probe/calendar"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	when, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return when
}

func weekly(t *testing.T, texts ...string) []calendar.Window {
	t.Helper()
	all, err := ParseWeekly(texts)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestWrongWeeklyTimesAreNamedByTheirPlace(t *testing.T) {
	_, err := ParseWeekly([]string{"sun", "sunny 3", "mon 02:00-04:00", ""})
	if err == nil || !strings.Contains(err.Error(), `weekly[1] is "sunny 3"; it must be a time`) || !strings.Contains(err.Error(), `weekly[3] is ""`) || strings.Contains(err.Error(), "weekly[0]") {
		t.Errorf("error is %v", err)
	}
}

func TestSelectionSelectsByEachOfItsFields(t *testing.T) {
	p := Path{Name: "berlin/to-hamburg", Host: "Probe.Hamburg.example.net.", Site: "hamburg", Links: []string{"uplink", "lab"}}
	for _, c := range []struct {
		s    Selection
		want bool
	}{
		{Selection{}, false},
		{Selection{All: true}, true},
		{Selection{Paths: []string{"berlin/to-hamburg"}}, true},
		{Selection{Paths: []string{"berlin"}}, false},
		{Selection{Paths: []string{"berlin/*"}}, true},
		{Selection{Paths: []string{"*"}}, true},
		{Selection{Paths: []string{"*burg"}}, true},
		{Selection{Paths: []string{"*b*r*g"}}, true},
		{Selection{Paths: []string{"berlin?to-hamburg"}}, true},
		{Selection{Paths: []string{"berlin?"}}, false},
		{Selection{Paths: []string{"berlin/to-hamburg?"}}, false},
		{Selection{Paths: []string{"Berlin/*"}}, false},
		{Selection{Paths: []string{"munich", "ber*"}}, true},
		{Selection{Peers: []string{"probe.hamburg.example.net"}}, true},
		{Selection{Peers: []string{"*.HAMBURG.example.net."}}, true},
		{Selection{Peers: []string{"hamburg"}}, false},
		{Selection{Links: []string{"lab"}}, true},
		{Selection{Links: []string{"la*"}}, false},
		{Selection{Sites: []string{"hamburg"}}, true},
		{Selection{Sites: []string{"ham*"}}, false},
	} {
		if got := c.s.Selects(p); got != c.want {
			t.Errorf("%q selects %v, want %v", c.s.String(), got, c.want)
		}
	}
	if s := (Selection{Sites: []string{""}}); s.Selects(Path{Name: "a"}) {
		t.Error("a path without a site is selected by an empty one")
	}
}

func TestPatternOfStarsIsQuick(t *testing.T) {
	if matches(strings.Repeat("*a", 100), strings.Repeat("a", 300)+"b") {
		t.Error("a text that ends otherwise matches")
	}
}

func TestWindowIsOpenFromItsBeginUntilBeforeItsEnd(t *testing.T) {
	w := Window{From: at(t, "2026-12-01T22:00:00+01:00"), To: at(t, "2026-12-02T04:00:00+01:00")}
	for text, want := range map[string]bool{
		"2026-12-01T20:59:59Z": false, "2026-12-01T21:00:00Z": true, "2026-12-02T02:59:59Z": true, "2026-12-02T03:00:00Z": false,
	} {
		until, open := w.Open(at(t, text))
		if open != want || open && !until.Equal(w.To) {
			t.Errorf("%s: open %v until %v, want %v", text, open, until, want)
		}
	}
	if next := w.Next(at(t, "2026-11-01T00:00:00Z")); !next.Equal(w.From) {
		t.Errorf("it opens next at %v", next)
	}
	if next := w.Next(w.From); !next.IsZero() {
		t.Errorf("it opens again at %v", next)
	}
}

// In Berlin the clocks go back on 2026-10-25, from 03:00 to 02:00: the night from Saturday to Sunday has an hour more.
func TestWeeklyWindowIsInLocalTime(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	w := Window{Weekly: weekly(t, "sat 23:00-04:00")}
	for text, want := range map[string]string{
		"2026-10-24T20:59:59Z": "", "2026-10-24T21:00:00Z": "2026-10-25T03:00:00Z", "2026-10-25T02:59:59Z": "2026-10-25T03:00:00Z", "2026-10-25T03:00:00Z": "",
		"2026-10-18T01:59:59Z": "2026-10-18T02:00:00Z", "2026-10-18T02:00:00Z": "",
	} {
		until, open := w.Open(at(t, text).In(berlin))
		if open != (want != "") || open && !until.Equal(at(t, want)) {
			t.Errorf("%s: open %v until %v, want %q", text, open, until.UTC(), want)
		}
	}
	if next := w.Next(at(t, "2026-10-20T00:00:00Z").In(berlin)); !next.Equal(at(t, "2026-10-24T21:00:00Z")) {
		t.Errorf("it opens next at %v", next.UTC())
	}
}

func TestWeeklyTimesThatMeetAreOneMaintenance(t *testing.T) {
	w := Window{Weekly: weekly(t, "sat 22:00-24:00", "sun 00:00-03:00", "sun 02:00-05:00")}
	until, open := w.Open(at(t, "2026-12-05T23:00:00Z"))
	if !open || !until.Equal(at(t, "2026-12-06T05:00:00Z")) {
		t.Errorf("open %v until %v", open, until)
	}
	always := Window{Weekly: weekly(t, "00:00-24:00")}
	now := at(t, "2026-12-05T23:00:00Z")
	if until, open = always.Open(now); !open || !until.After(now) || until.Sub(now) > 7*24*time.Hour {
		t.Errorf("what is always open is open %v until %v", open, until)
	}
}

func TestWrongWindowSaysWhereAndWhatIsExpected(t *testing.T) {
	good := func() Window {
		return Window{Selection: Selection{All: true}, From: at(t, "2026-12-01T22:00:00Z"), To: at(t, "2026-12-02T04:00:00Z"), Reason: "new router"}
	}
	valid := good()
	if err := valid.Check(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(w *Window){
		"selects nothing":                        func(w *Window) { w.All = false },
		`paths[1] is ""`:                         func(w *Window) { w.Paths = []string{"a", ""} },
		`sites[0] is "a\nb"`:                     func(w *Window) { w.Sites = []string{"a\nb"} },
		"links has 101 entries; it may have 100": func(w *Window) { w.Links = make([]string, 101) },
		"either a begin and an end":              func(w *Window) { w.Weekly = weekly(t, "sun") },
		"has no time; it must have from and to":  func(w *Window) { w.From, w.To = time.Time{}, time.Time{} },
		"from is missing; it must be":            func(w *Window) { w.From = time.Time{} },
		"to is missing; it must be":              func(w *Window) { w.To = time.Time{} },
		"to is 2026-12-01T22:00:00Z, which is not after from, 2026-12-01T22:00:00Z": func(w *Window) { w.To = w.From },
		"more than 31 days after from; it may be at most 2027-01-01T22:00:00Z":      func(w *Window) { w.To = w.From.Add(MaxLength + time.Second) },
		`reason is ""`:          func(w *Window) { w.Reason = "" },
		`reason is "a\x1b[2Jb"`: func(w *Window) { w.Reason = "a\x1b[2Jb" },
	} {
		w := good()
		change(&w)
		if err := w.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %s", err, want)
		}
	}
}
