package eventlog

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"oneway.example/exporter/core/event"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/output/promsink"
)

// listened is a log with its sink, and a listener of its tables.
type listened struct {
	*Log
	sink metrictest.Sink
	to   record.Recorder
	rows *record.Listener[record.Table]
}

func newListened(paths ...string) *listened {
	l := &listened{}
	l.rows = l.to.Tables().Listen(10)
	l.Log = New(&l.sink, &l.to)
	l.SetPaths(set(paths...))
	return l
}

func set(names ...string) func(string) bool {
	return func(path string) bool { return slices.Contains(names, path) }
}

// tables are the tables that outputs got.
func (l *listened) tables() []record.Table {
	into := make([]record.Table, 10)
	n, _ := l.rows.Take(into)
	return into[:n]
}

func TestAnEventHasASeriesWithItsTimeAndARowWithItsText(t *testing.T) {
	l := newListened("a")
	at := time.Unix(1_790_000_000, 500_000_000)
	if n := l.sink.Open(); n != 0 {
		t.Errorf("%d series before the first event", n)
	}
	l.OfPath(event.Down, "a", at, "no reply")
	l.OfPath(event.Down, "a", at.Add(time.Minute), "no reply again")
	l.OfAgent(event.Restarted, at, "oneway 1")
	if v, _ := l.sink.Value(metric.PathEvent, "a", "down"); v != 1_790_000_060.5 {
		t.Errorf("the series of the path has %v", v)
	}
	if v, _ := l.sink.Value(metric.AgentEvent, "restarted"); v != 1_790_000_000.5 {
		t.Errorf("the series of the agent has %v", v)
	}
	rows := l.tables()
	if len(rows) != 3 || rows[0].ID != "no reply" || rows[0].Begin.Time() != at.UTC() || rows[0].Tags[0] != "down" || rows[0].Tags[1] != "a" || rows[2].Tags[1] != "" {
		t.Errorf("%+v", rows)
	}
}

// TestAPathThatIsGoneHasNoEvents: its series end with it, and what its end causes is no event.
func TestAPathThatIsGoneHasNoEvents(t *testing.T) {
	l := newListened("a", "b")
	l.OfPath(event.Down, "a", time.Now(), "")
	l.OfPath(event.Down, "b", time.Now(), "")
	l.OfAgent(event.Reloaded, time.Now(), "")
	l.SetPaths(set("b"))
	l.OfPath(event.MaintenanceEnded, "a", time.Now(), "")
	if n := l.sink.Open(); n != 2 {
		t.Errorf("series %v, want these of b and of the agent", l.sink.Present(""))
	}
	l.End()
	l.OfAgent(event.Reloaded, time.Now(), "")
	if n := l.sink.Open(); n != 0 {
		t.Errorf("%d series after the end", n)
	}
	if rows := l.tables(); len(rows) != 3 {
		t.Errorf("%d rows", len(rows))
	}
}

// TestASeriesIsOpenOnce, whoever is the first of many, within an Update of the real sink and outside of it.
func TestASeriesIsOpenOnce(t *testing.T) {
	sink := promsink.New(promsink.Options{})
	l := New(sink, nil)
	l.SetPaths(set("a"))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			sink.Update(func() { l.OfPath(event.LoadTest, "a", time.Now(), "") })
			l.OfPath(event.LoadTest, "a", time.Now(), "")
		})
	}
	all.Wait()
	if n := families(t, sink); n != 1 {
		t.Errorf("%d families, want 1", n)
	}
	l.SetPaths(set())
	if n := families(t, sink); n != 0 {
		t.Errorf("%d families are left", n)
	}
}

// families is the number of families of events that a scrape has.
func families(t *testing.T, sink *promsink.Sink) (n int) {
	t.Helper()
	all, err := sink.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if f.GetName() == metric.PathEvent.Name {
			n++
		}
	}
	return n
}

func TestTextsAreShort(t *testing.T) {
	for _, text := range []string{"", strings.Repeat("ab", maxText/2), strings.Repeat("aé", maxText)} {
		got := shortened(text)
		if len(got) > maxText || !utf8.ValidString(got) || len(text) <= maxText && got != text || len(text) > maxText && len(got) < maxText-6 {
			t.Errorf("%d bytes became %d: %q", len(text), len(got), got)
		}
	}
}

func TestNilLogTakesEvents(t *testing.T) {
	(*Log)(nil).OfAgent(event.Restarted, time.Now(), "")
}
