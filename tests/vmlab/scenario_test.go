package vmlab

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/tests/vmlab/record"
)

func TestAlertsOfTheScenariosAreRules(t *testing.T) {
	files, err := filepath.Glob("../../deploy/prometheus/rules/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var rules string
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		rules += string(text)
	}
	for _, s := range Scenarios() {
		if s.Alert != "" && !strings.Contains(rules, "- alert: "+s.Alert+"\n") {
			t.Errorf("%s: there is no alert %s", s.Name, s.Alert)
		}
	}
}

func TestStatesAndReasonsOfTheScenariosExist(t *testing.T) {
	var known, reasons []string
	for _, s := range clock.States() {
		known = append(known, s.String())
	}
	for _, r := range sample.Reasons() {
		reasons = append(reasons, r.String())
	}
	for _, s := range Scenarios() {
		for _, state := range s.States {
			if !slices.Contains(known, state) {
				t.Errorf("%s: no state %q", s.Name, state)
			}
		}
		if s.Reason != "" && !slices.Contains(reasons, s.Reason) {
			t.Errorf("%s: no reason %q", s.Name, s.Reason)
		}
		if s.Metric == "" || s.Met == nil || s.Do == nil || len(s.States) == 0 {
			t.Errorf("%s: a scenario has states, a metric and something to do", s.Name)
		}
	}
}

func checked(s Scenario, seen ...string) []string {
	r := &Result{Scenario: s, Seen: seen, Judgment: &Judgment{Delays: 1, Reasons: map[sample.Reason]int{}}}
	r.check(newValues(nil, Span{}), newValues(nil, Span{}))
	return r.Faults
}

func TestStatesMustFollowEachOtherAsExpected(t *testing.T) {
	s := Scenario{States: []string{"synchronized", "stepping", "synchronized"}}
	if f := checked(s, "synchronized", "stepping", "unsynchronized", "synchronized"); len(f) != 0 {
		t.Errorf("with another state between: %q", f)
	}
	for _, seen := range [][]string{{"synchronized"}, {"synchronized", "stepping"}, {"stepping", "synchronized"}, nil} {
		if f := checked(s, seen...); len(f) == 0 {
			t.Errorf("%v was taken for %v", seen, s.States)
		}
	}
}

func TestStateAtTheStartIsTheFirstOfASequence(t *testing.T) {
	var states []record.State
	for i, s := range []string{"holdover", "synchronized", "unsynchronized", "unsynchronized", "synchronized", "stepping"} {
		states = append(states, record.State{Counter: uint64(10 * (i + 1)), State: s})
	}
	for _, c := range []struct {
		in   Span
		want string
	}{
		{Span{25, 55}, "synchronized unsynchronized synchronized"},
		{Span{0, 15}, "holdover"},
		{Span{42, 48}, ""},
		{Span{70, 90}, ""},
	} {
		if got := strings.Join(sequence(states, c.in), " "); got != c.want {
			t.Errorf("%v: %q; want %q", c.in, got, c.want)
		}
	}
}

func TestMissingReasonAndMetricAreFaults(t *testing.T) {
	s := Scenario{States: []string{"synchronized"}, Reason: "local_stepped", Met: func(local, _ *Values) bool { return local.Grew("x{}") > 0 }}
	if f := checked(s, "synchronized"); len(f) != 2 {
		t.Errorf("%q", f)
	}
}

func TestValuesAreThoseOfTheSpan(t *testing.T) {
	v := func(f float64) *float64 { return &f }
	all := []record.Metrics{
		{Counter: 1, Values: map[string]*float64{"steps{c}": v(2), "state{c,holdover}": v(0)}},
		{Counter: 5, Values: map[string]*float64{"steps{c}": v(3), "state{c,holdover}": v(1), "info{c,pps}": v(1)}},
		{Counter: 7, Values: map[string]*float64{"state{c,holdover}": v(0), "info{c,pps}": nil}},
		{Counter: 9, Values: map[string]*float64{"steps{c}": v(8)}},
	}
	got := newValues(all, Span{3, 9})
	if got.Grew("steps{c}") != 1 || !got.Reached("state{c,holdover}", 1) || !got.Appeared("info", ",pps}") || got.Has("info", ",pps}") || got.Reached("nothing", 0) {
		t.Errorf("%+v", got)
	}
}

func TestSentencesAreThoseOfTheSecond(t *testing.T) {
	got := sentences(time.Date(2026, 12, 31, 23, 59, 58, 0, time.UTC))
	lines := strings.Split(got, "\r\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[0], "$GPRMC,235958.00,A,") || !strings.Contains(lines[0], ",311226,") || !strings.HasPrefix(lines[2], "$GPGSA,A,3,") {
		t.Errorf("%q", lines)
	}
}

func TestLeapDayIsTheLastOfTheYearAndNotItsLastHour(t *testing.T) {
	for _, hour := range []int{0, 12, 22, 23} {
		now := instant.FromTime(time.Date(2026, 5, 4, hour, 30, 0, 5, time.UTC))
		got := leapDay(now).Time()
		if got.Month() != time.December || got.Day() != 31 || got.Year() != 2026 || got.Hour() > 22 || got.Nanosecond() != 5 {
			t.Errorf("%v became %v", now, got)
		}
	}
}

func TestTailReadsWholeLinesOnly(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	l := tail[record.State]{file: file}
	if got, err := l.get(); got != nil || err != nil {
		t.Fatal("no file yet:", got, err)
	}
	write := func(text string) {
		f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	write("{\"Steps\":1}\n{\"Ste")
	if got, err := l.get(); len(got) != 1 || err != nil {
		t.Fatal(got, err)
	}
	write("ps\":2}\n")
	if got, err := l.get(); len(got) != 2 || got[1].Steps != 2 || err != nil {
		t.Fatal(got, err)
	}
	write("nonsense\n")
	if _, err := l.get(); err == nil {
		t.Error("nonsense was read")
	}
}
