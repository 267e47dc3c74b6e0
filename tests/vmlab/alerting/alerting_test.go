package alerting

import (
	"os/exec"
	"strings"
	"testing"

	"oneway.example/exporter/core/instant"
	"oneway.example/tests/vmlab/record"
	"oneway.example/tests/vmlab/truth"
)

const rules = "../../../deploy/prometheus/rules"

// millis is a clock of which one count is a millisecond.
func millis() Clock { return Clock{Line: truth.Line{UTC: instant.Time(0), Hertz: 1000}} }

// holdover is an agent whose clock is in holdover from second 10 to 20.
func holdover() Host {
	at := func(second int, held, synchronized float64) record.Metrics {
		return record.Metrics{Counter: uint64(second) * 1000, Values: map[string]*float64{
			"oneway_clock_state{chrony,holdover}": new(held), "oneway_clock_synchronized{chrony}": new(synchronized),
		}}
	}
	return Host{Name: "near", Metrics: []record.Metrics{at(0, 0, 1), at(10, 1, 1), at(20, 0, 1)}}
}

func check(t *testing.T, expect ...Expect) error {
	t.Helper()
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Skip("NOT TESTED: promtool is not installed (Debian package prometheus)")
	}
	return Check(t.Context(), rules, millis(), []Host{holdover()}, expect)
}

func TestAlertFires(t *testing.T) {
	err := check(t,
		Expect{Name: "before", From: 0, To: 8},
		Expect{Name: "held", From: 9, To: 25, Fires: "OnewayClockHoldover"},
		Expect{Name: "later", From: 12, To: 25, Fires: "OnewayClockHoldover", Lasting: true},
	)
	if err != nil {
		t.Error(err)
	}
}

func TestUnexpectedAlertsAreReported(t *testing.T) {
	for _, e := range []Expect{
		{Name: "too early", From: 0, To: 8, Fires: "OnewayClockHoldover"},
		{Name: "fired before", From: 15, To: 25, Fires: "OnewayClockHoldover"},
		{Name: "another", From: 9, To: 25, Fires: "OnewayClockUnsynchronized"},
		{Name: "none expected", From: 9, To: 25},
	} {
		if err := check(t, e); err == nil || !strings.Contains(err.Error(), "FAILED") {
			t.Errorf("%s: promtool is content: %v", e.Name, err)
		}
	}
}

func TestSeriesHaveAValueASecond(t *testing.T) {
	h := Host{Name: "far", Metrics: []record.Metrics{
		{Counter: 1500, Values: map[string]*float64{"oneway_clock_steps_total{chrony}": new(float64(2))}},
		{Counter: 2900, Values: map[string]*float64{"oneway_clock_steps_total{chrony}": new(float64(3))}},
		{Counter: 4000, Values: map[string]*float64{"oneway_clock_steps_total{chrony}": nil}},
	}}
	got, err := millis().sampled(h, 7)
	if err != nil || len(got) != 2 {
		t.Fatal(got, err)
	}
	if up := (series{`up{job="oneway",instance="far"}`, "1x6"}); got[0] != up {
		t.Errorf("%v; want %v", got[0], up)
	}
	want := series{`oneway_clock_steps_total{job="oneway",instance="far",clock="chrony"}`, "_ _ 2 3 stale _ _"}
	if got[1] != want {
		t.Errorf("%v; want %v", got[1], want)
	}
}

func TestUnknownNamesAreErrors(t *testing.T) {
	for _, key := range []string{"oneway_nothing{}", "oneway_clock_steps_total{a,b}", "oneway_clock_steps_total"} {
		if _, err := labeled(key, "near"); err == nil {
			t.Errorf("%s: no error", key)
		}
	}
}

func TestSecondsAreRoundedUp(t *testing.T) {
	c := millis()
	c.Start = 500
	for counter, want := range map[uint64]int{500: 0, 501: 1, 1500: 1, 1501: 2} {
		if got := c.Second(counter); got != want {
			t.Errorf("counter %d: second %d; want %d", counter, got, want)
		}
	}
}
