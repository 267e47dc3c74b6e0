package main

import (
	"log/slog"
	"testing"

	"github.com/alecthomas/kingpin/v2"
	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/core/document"
	"oneway.example/exporter/core/metric"
)

// parsedClock are the clock's flags after a command line.
func parsedClock(t *testing.T, args ...string) *clockFlags {
	t.Helper()
	f, app := &clockFlags{}, kingpin.New("oneway", "").Terminate(nil)
	f.register(app.Command("x", ""))
	if _, err := app.Parse(append([]string{"x"}, args...)); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFlagsSetTheOptionsOfClockSources(t *testing.T) {
	for _, c := range []struct {
		args     []string
		settings document.Settings
		wrong    string
	}{
		{nil, document.Settings{"clock": "chrony"}, ""},
		{[]string{"--clock=none"}, document.Settings{"clock": "none"}, ""},
		{[]string{"--clock=static"}, document.Settings{"clock": "static", "clock_bound_seconds": 1e-3}, ""},
		{[]string{"--clock=static", "--clock-bound=20us"}, document.Settings{"clock": "static", "clock_bound_seconds": 20e-6}, ""},
		{[]string{"--clock=static", "--clock-bound=2s"}, document.Settings{"clock": "static", "clock_bound_seconds": 2.0}, "--clock-bound is 2s; it must be between 0s and 1s"},
		{[]string{"--clock-address=x"}, document.Settings{"clock": "chrony"}, `--clock-address is "x"; it must begin with unix:/// or udp://, such as unix:///run/chrony/chronyd.sock or udp://127.0.0.1:323`},
	} {
		f := parsedClock(t, c.args...)
		if diff := cmp.Diff(c.settings, f.settings()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.args, diff)
		}
		_, err := f.monitor(metric.Discard{}, slog.New(slog.DiscardHandler))
		if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || err.Error() != c.wrong) {
			t.Errorf("%q: %v, want %q", c.args, err, c.wrong)
		}
	}
}
