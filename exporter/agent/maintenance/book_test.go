package maintenance

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// clock is the time of a test.
type clock struct{ now time.Time }

func newBook(t *testing.T) (*Book, *clock) {
	t.Helper()
	c := &clock{at(t, "2026-12-01T20:00:00Z")}
	return New(Options{Now: func() time.Time { return c.now }}), c
}

func (c *clock) window(length time.Duration, paths ...string) Window {
	return Window{Selection: Selection{Paths: paths}, To: c.now.Add(length), Reason: "new router"}
}

func TestAddedWindowSurvivesARestartUntilItIsOver(t *testing.T) {
	file := filepath.Join(t.TempDir(), "made", "maintenance.json")
	b, c := newBook(t)
	b.Put(nil, file)
	one, err := b.Add(c.window(time.Hour, "berlin"))
	if err != nil || one.ID == "" || !one.From.Equal(c.now) {
		t.Fatalf("%+v, %v", one, err)
	}
	two, err := b.Add(Window{Selection: Selection{Sites: []string{"hamburg"}}, Weekly: weekly(t, "sun 02:00-04:00"), Reason: "updates"})
	if err != nil || two.ID == one.ID {
		t.Fatalf("%+v, %v", two, err)
	}
	again := New(Options{Now: b.now})
	again.Put(nil, file)
	all := again.List()
	if len(all) != 2 || all[0].ID != one.ID || !all[0].Open || !all[0].Until.Equal(one.To) || all[1].Open || !all[1].Next.Equal(at(t, "2026-12-06T02:00:00Z")) {
		t.Fatalf("after the restart: %+v", all)
	}
	if s := again.Now().OfPath(Path{Name: "berlin"}); s == nil || s.Reason != "new router" || !s.Until.Equal(one.To) {
		t.Errorf("the path is %+v", s)
	}
	if s := again.Now().OfPath(Path{Name: "munich"}); s != nil {
		t.Errorf("another path is %+v", s)
	}
	c.now = one.To
	if s := again.Now().OfPath(Path{Name: "berlin"}); s != nil || len(again.List()) != 1 {
		t.Errorf("after its end: %+v, %+v", s, again.List())
	}
	three, err := again.Add(c.window(time.Hour, "berlin"))
	if err != nil || three.ID == one.ID || three.ID == two.ID {
		t.Errorf("an ID is given twice: %+v, %v", three, err)
	}
}

func TestEndOfAWindowIsSaved(t *testing.T) {
	file := filepath.Join(t.TempDir(), "maintenance.json")
	b, c := newBook(t)
	b.Put([]Window{{Selection: Selection{All: true}, Weekly: weekly(t, "sun"), Reason: "updates"}}, file)
	one, err := b.Add(c.window(time.Hour, "berlin"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.End("m99"); !errors.As(err, new(*NotFoundError)) || !strings.Contains(err.Error(), one.ID) {
		t.Errorf("error is %v", err)
	}
	if ended, err := b.End(one.ID); err != nil || ended.ID != one.ID || !b.Now().None() {
		t.Errorf("%+v, %v", ended, err)
	}
	again := New(Options{Now: b.now})
	again.Put(nil, file)
	if all := again.List(); len(all) != 0 {
		t.Errorf("after a restart: %+v", all)
	}
	if all := b.List(); len(all) != 1 || !all[0].Configured {
		t.Errorf("the configured window is gone: %+v", all)
	}
}

func TestLastEndAndItsReasonCount(t *testing.T) {
	b, c := newBook(t)
	for length, reason := range map[time.Duration]string{time.Hour: "short", 3 * time.Hour: "long", 2 * time.Hour: "middle"} {
		w := c.window(length, "*")
		w.Reason = reason
		if _, err := b.Add(w); err != nil {
			t.Fatal(err)
		}
	}
	if s := b.Now().OfPath(Path{Name: "a"}); s == nil || s.Reason != "long" {
		t.Errorf("the state is %+v", s)
	}
	if s := b.Now().OfAgent(); s != nil {
		t.Errorf("without all, the agent is %+v", s)
	}
}

func TestDamagedFileStaysAndNothingIsAdded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "maintenance.json")
	for _, text := range []string{
		"", "{}", `{"version":1,"last":1,"windows":[{"id":"m1"}]}`, `{"version":2,"last":1,"windows":[]}`, `{"version":1,"last":1,"windows":[],"x":1}`,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		b, c := newBook(t)
		b.Put(nil, file)
		if _, err := b.Add(c.window(time.Hour, "a")); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%q: error is %v", text, err)
		}
		if now, err := os.ReadFile(file); err != nil || string(now) != text {
			t.Errorf("the file is now %q, %v", now, err)
		}
		if b.Stored() || len(b.List()) != 0 {
			t.Errorf("%q: stored %v, %+v", text, b.Stored(), b.List())
		}
	}
}

func TestWindowThatCannotBeSavedIsNotAdded(t *testing.T) {
	b, c := newBook(t)
	b.Put(nil, filepath.Join(os.DevNull, "maintenance.json")) // no directory, and root cannot make one
	if _, err := b.Add(c.window(time.Hour, "a")); err == nil || len(b.List()) != 0 {
		t.Errorf("%v, %+v", err, b.List())
	}
}

func TestWindowOfThePastIsRefused(t *testing.T) {
	b, c := newBook(t)
	w := c.window(-time.Minute, "a")
	w.From = c.now.Add(-time.Hour)
	if _, err := b.Add(w); err == nil || !strings.Contains(err.Error(), "to is 2026-12-01T19:59:00Z, which is past") {
		t.Errorf("error is %v", err)
	}
}

func TestNumberOfAddedWindowsIsLimited(t *testing.T) {
	b, c := newBook(t)
	for range MaxAdded {
		if _, err := b.Add(c.window(time.Hour, "a")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Add(c.window(time.Hour, "a")); err == nil {
		t.Error("one more was added")
	}
	c.now = c.now.Add(2 * time.Hour)
	if _, err := b.Add(c.window(time.Hour, "a")); err != nil {
		t.Errorf("after all are over: %v", err)
	}
}

// FuzzState parses files: what is accepted is written and read again as the same.
func FuzzState(f *testing.F) {
	f.Add([]byte(`{"version":1,"last":3,"windows":[{"id":"m3","all":true,"weekly":["sun 02:00-04:00"],"reason":"x"}]}`))
	f.Add([]byte(`{"version":1,"last":1,"windows":[{"id":"m1","paths":["a*"],"from":"2026-12-01T20:00:00Z","to":"2026-12-01T21:00:00Z","reason":"x"}]}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		windows, last, err := parse(content)
		if err != nil {
			return
		}
		file := filepath.Join(t.TempDir(), "maintenance.json")
		if err := write(file, windows, last); err != nil {
			t.Fatal(err)
		}
		again, number, err := read(file)
		if err != nil || number != last || len(again) != len(windows) {
			t.Errorf("%+v was read as %+v: %v", windows, again, err)
		}
	})
}
