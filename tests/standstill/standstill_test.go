package standstill

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/tests/precision"
)

// fixed is a watch whose thread has looked at the clock at these times.
func fixed(looks ...time.Duration) (w *Watch, begin instant.Time) {
	begin = instant.Now().Add(-time.Hour)
	w = &Watch{last: []instant.Time{begin}}
	for _, at := range looks {
		w.look(0, begin.Add(at))
	}
	return w, begin
}

func TestLateLookIsAStandstillOfTheTimesItOverlaps(t *testing.T) {
	const ms = time.Millisecond
	w, begin := fixed(2*ms, 23*ms, 25*ms, 225*ms, 227*ms)
	for _, c := range []struct {
		from, to time.Duration
		want     Standstills
	}{
		{0, 25 * ms, Standstills{}}, // 21 ms are 19 more than the interval
		{25 * ms, 227 * ms, Standstills{1, 200 * ms, 200 * ms}},
		{100 * ms, 110 * ms, Standstills{1, 200 * ms, 200 * ms}},
		{226 * ms, 227 * ms, Standstills{}},
	} {
		if got := w.Found(begin.Add(c.from), begin.Add(c.to)); got != c.want {
			t.Errorf("%v to %v: %v, want %v", c.from, c.to, got, c.want)
		}
	}
	if got := w.FoundFrom(begin.Add(228 * ms)); got.Spans != 1 || got.Longest < 59*time.Minute {
		t.Errorf("a standstill that has not ended: %v", got)
	}
}

// fake is a test whose end is a panic of itself.
type fake struct {
	testing.TB
	failed, skipped []string
}

func (f *fake) Helper()             {}
func (f *fake) Logf(string, ...any) {}
func (f *fake) Error(args ...any)   { f.failed = append(f.failed, args[0].(string)) }
func (f *fake) Fatal(args ...any)   { f.Error(args...); panic(f) }
func (f *fake) Skip(args ...any)    { f.skipped = append(f.skipped, args[0].(string)); panic(f) }
func decide(f *fake, w *Watch, round func(r precision.TB)) {
	defer func() { _ = recover() }()
	Decide(f, w, round)
}

func TestRoundIsRepeatedOnlyAfterAStandstill(t *testing.T) {
	t.Setenv(precision.Variable, "")
	stand := func(w *Watch) {
		w.last[0] = w.last[0].Add(-time.Second)
		w.look(0, instant.Now())
	}
	for _, c := range []struct {
		name                    string
		still, failing          int // the first rounds that do
		rounds, failed, skipped int
	}{
		{"passes", 0, 0, 1, 0, 0},
		{"passes in a standstill", 1, 0, 1, 0, 0},
		{"fails", 0, 1, 1, 1, 0},
		{"fails in standstills, then passes", 2, 2, 3, 0, 0},
		{"fails in a standstill, then without", 1, 2, 2, 1, 0},
		{"fails in standstills only", Rounds, Rounds, Rounds, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, n := &fake{}, 0
			w := &Watch{last: []instant.Time{instant.Now()}}
			decide(f, w, func(r precision.TB) {
				w.look(0, instant.Now())
				if n++; n <= c.still {
					stand(w)
				}
				if n <= c.failing {
					r.Errorf("wrong by %d", n)
				}
			})
			if n != c.rounds || len(f.failed) != c.failed || len(f.skipped) != c.skipped {
				t.Errorf("%d rounds, failed %q, skipped %q", n, f.failed, f.skipped)
			}
			for _, text := range f.skipped {
				if !strings.HasPrefix(text, Words) || !strings.Contains(text, "wrong by") {
					t.Error(text)
				}
			}
		})
	}
	t.Setenv(precision.Variable, "1")
	f, w := &fake{}, &Watch{last: []instant.Time{instant.Now()}}
	decide(f, w, func(r precision.TB) { stand(w); r.Errorf("wrong") })
	if len(f.failed) != 1 || len(f.skipped) != 0 {
		t.Errorf("on a quiet machine: failed %q, skipped %q", f.failed, f.skipped)
	}
}

// A stop of the whole process is found, of the length that it had.
func TestStopOfTheProcessIsFound(t *testing.T) {
	w := Begin(t)
	begin := instant.Now()
	const stop = 300 * time.Millisecond
	cmd := exec.Command("sh", "-c", `kill -STOP "$0"; sleep 0.3; kill -CONT "$0"`, strconv.Itoa(syscall.Getpid()))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if s := w.FoundFrom(begin); s.Longest < stop-interval {
		t.Errorf("stopped for %v: %v", stop, s)
	}
}
