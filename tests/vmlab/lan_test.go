package vmlab

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"oneway.example/tests/vmlab/alerting"
	"oneway.example/tests/vmlab/record"
	"oneway.example/tests/vmlab/truth"
)

// met is a judgment of the LAN check: of so many delays per direction some late, and some that
// met a machine that stood still.
func met(n, late, stood int) *Judgment {
	v := slices.Repeat([]time.Duration{60 * us}, n)
	for i := range late {
		v[i] = lanLimit + 1
	}
	return &Judgment{Values: [2][]time.Duration{v, v}, True: [2][]time.Duration{v, v}, Stood: [2]int{stood, stood}}
}

func TestLANCheckAllowsOneInAHundredAndAMachineThatMostlyRuns(t *testing.T) {
	for name, c := range map[string]struct {
		j      *Judgment
		faults int
	}{
		"all in time":             {met(4000, 0, 0), 0},
		"one in a hundred late":   {met(4000, 40, 0), 0},
		"more":                    {met(4000, 41, 0), 2},
		"half of them left out":   {met(2000, 0, 2000), 0},
		"more than half left out": {met(1999, 0, 2001), 2},
		"none":                    {met(0, 0, 0), 2},
	} {
		faults := 0
		checkLAN(c.j, func(string, ...any) { faults++ })
		if faults != c.faults {
			t.Errorf("%s: %d faults; want %d", name, faults, c.faults)
		}
	}
}

func TestLANTableListsOmittedPackets(t *testing.T) {
	var text strings.Builder
	printLAN(&text, met(100, 3, 7))
	for _, want := range []string{"above 0.8 ms", "3 of 100", "of these truly not", "left out: the machine stood still"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, &text)
		}
	}
}

func TestPacketsDuringAStallOfTheMachineAreExcludedFromTheDelaysOnly(t *testing.T) {
	r := newRig(0)
	r.Stood = []Span{{r.Line.Counter + uint64(2*time.Second) - 1, r.Line.Counter + uint64(2*time.Second) + 100}}
	got := r.Judge.Judge([]record.Packet{r.packet(time.Second, us), r.packet(2*time.Second, us)}, r.all())
	// The second packet had left when the machine stood still, and had no reply yet.
	if got.Stood != [2]int{1, 0} || len(got.Values[0]) != 1 || len(got.Values[1]) != 2 || len(got.True[0]) != 1 || got.Judged() != 4 || len(got.Bounds) != 4 {
		t.Errorf("%+v", got)
	}
}

func TestSpanIsExtendedByAStallOfTheMachine(t *testing.T) {
	if s, ok := stoodStill(1000, 1651, 650); !ok || s != (Span{1000, 2302}) {
		t.Errorf("%v, %v", s, ok)
	}
	if _, ok := stoodStill(1000, 1650, 650); ok {
		t.Error("looks at their usual distance are called a standstill")
	}
}

func TestWatchEndsWhenStopped(t *testing.T) {
	l := &Lab{Line: truth.Line{Hertz: 1e9}}
	for _, s := range l.watchMachine()() {
		if s.To <= s.From {
			t.Errorf("a span from %d to %d", s.From, s.To)
		}
	}
}

func TestAlertOfAScenarioIsExpectedInItAndNotBefore(t *testing.T) {
	result := func(s Scenario, from, to int) *Result {
		return &Result{Scenario: s, Span: Span{uint64(from) * 1000, uint64(to) * 1000}}
	}
	got := expectations(alerting.Clock{Line: truth.Line{Hertz: 1000}}, []*Result{
		result(coldStart(), 0, 10), result(steady(), 10, 30), result(offset(), 30, 40), result(drift(), 40, 50), result(leap(), 50, 60),
	})
	want := []alerting.Expect{
		{Name: "cold start", From: 0, To: 10, Fires: steppedAlert},
		{Name: steadyName, From: 10, To: 30},
		{Name: "offset 50 ms", From: 30, To: 40, Fires: steppedAlert, Lasting: true},
		{Name: "leap second announced", From: 50, To: 60, Fires: "OnewayLeapSecondPending"},
	}
	for i := range want {
		want[i].Besides = []string{steppedAlert}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

func TestLimitsAreOfTheSteadyStateOnly(t *testing.T) {
	slow := met(4000, 41, 0)
	slow.Bounds, slow.Errors = []time.Duration{time.Second}, []time.Duration{0}
	for name, want := range map[string]bool{steadyName: true, lanName: true, "offset 50 ms": false} {
		if got := (&Result{Scenario: Scenario{Name: name}, Judgment: slow}).Spoiled(); got != want {
			t.Errorf("%s with a bound of 1 s and 41 late: spoiled %v; want %v", name, got, want)
		}
	}
}
