package vmlab

import (
	"errors"
	"strings"
	"testing"
	"time"

	"oneway.example/tests/vmlab/record"
)

// coarse is a run of the steady state with a bound beyond the limit, and otherwise right.
func coarse() *Result {
	j := met(4000, 0, 0)
	j.Delays, j.Valid, j.Covered = 8000, 8000, 8000
	j.Bounds, j.Errors = []time.Duration{105 * us}, []time.Duration{us}
	return &Result{Scenario: steady(), Seen: []string{"synchronized"}, Judgment: j}
}

func printed(asserted bool, results ...*Result) (string, error) {
	var text strings.Builder
	err := Print(&text, results, asserted)
	return text.String(), err
}

func TestPrecisionIsAlwaysReportedAndAFaultOnlyWhereAsserted(t *testing.T) {
	again := coarse()
	again.Repeated = true
	for _, c := range []struct {
		name     string
		asserted bool
		result   *Result
		fault    error
		say      []string
	}{
		{"asserted", true, coarse(), ErrFaults, []string{"  missed  ", "FAULT PPS, steady: the median bound is 105µs"}},
		{"printed", false, coarse(), nil, []string{"  missed, not asserted  ", "MISSED PPS, steady: the median bound is 105µs"}},
		{"run again", true, again, nil, []string{"  missed, run again  ", "MISSED PPS, steady: the median bound is 105µs"}},
	} {
		text, err := printed(c.asserted, c.result)
		if !errors.Is(err, c.fault) {
			t.Errorf("%s: %v; want %v", c.name, err, c.fault)
		}
		for _, want := range c.say {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is not in\n%s", c.name, want, text)
			}
		}
	}
}

func TestDelayOutsideItsBoundIsAFault(t *testing.T) {
	outside := coarse()
	outside.Judgment.Covered = 7991
	state := coarse()
	state.Faults = []string{"states are [silent]"}
	for name, r := range map[string]*Result{"coverage": outside, "state": state} {
		if text, err := printed(false, r); !errors.Is(err, ErrFaults) || !strings.Contains(text, "FAULT") {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
}

// Clocks that are 20 us apart make a path of 15 us negative, within their bounds.
func TestNegativeDelayIsATruthWithinItsBoundAndAFaultBeyond(t *testing.T) {
	r := newRig(ms + 20*us)
	for bound, impossible := range map[time.Duration]int{100 * us: 0, 20 * us: 1} {
		got := r.Judge.Judge([]record.Packet{r.packet(time.Second, bound)}, r.all())
		if got.Impossible != impossible {
			t.Errorf("-20us +- %v: %d impossible; want %d", bound, got.Impossible, impossible)
		}
	}
}

func TestClockThatDoesNotSettleIsAMissAndNotRunAgain(t *testing.T) {
	r := coarse()
	r.Scenario, r.Missed = coldStart(), []string{"near: not settled"}
	if r.Spoiled() || len(r.Misses()) != 1 {
		t.Errorf("spoiled %v, missed %q", r.Spoiled(), r.Misses())
	}
}
