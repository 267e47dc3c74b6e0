package loadserver

import (
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/load/loadcontrol"
)

func TestLimitsAreParsedAndFormatted(t *testing.T) {
	for text, want := range map[string]loadcontrol.Limits{
		"":                {},
		"rate=20Mbit":     {BytesPerSecond: 2.5e6},
		"rate=1.5kbit":    {BytesPerSecond: 187.5},
		"rate=800bit":     {BytesPerSecond: 100},
		"duration=5m":     {Duration: 5 * time.Minute},
		"sessions=2":      {Sessions: 2},
		"per-day=10GB":    {BytesPerDay: 10_000_000_000},
		"per-day=1MiB":    {BytesPerDay: 1 << 20},
		"per-day=123456B": {BytesPerDay: 123456},
		"rate=1Gbit duration=30s sessions=1 per-day=1TB": {BytesPerSecond: 125e6, Duration: 30 * time.Second, Sessions: 1, BytesPerDay: 1e12},
	} {
		got, err := ParseLimits(strings.Fields(text))
		if err != nil || got != want {
			t.Errorf("%q is %+v, %v; want %+v", text, got, err, want)
		}
		if again, err := ParseLimits(formatLimits(got)); err != nil || again != got {
			t.Errorf("%q was formatted as %q and parsed as %+v, %v", text, formatLimits(got), again, err)
		}
	}
}

func TestErrorsOfLimitsHaveTheExpectation(t *testing.T) {
	for text, want := range map[string]string{
		"rate=20":                 `rate is "20"; it has no unit; write 20bit, 20kbit or 20Mbit`,
		"rate=0Mbit":              "above 0",
		"rate=-1Mbit":             "above 0",
		"rate=NaNMbit":            "above 0",
		"rate=9e9Gbit":            "above 0",
		"duration=5":              "between 1s and 1h",
		"duration=2h":             "between 1s and 1h",
		"sessions=0":              "between 1 and",
		"per-day=much":            "an amount of data",
		"per-day=10":              `per-day is "10"; it has no unit; write 10B, 10kB or 10MB`,
		"per-day=0":               "an amount of data above 0",
		"per-day=0B":              "an amount of data above 0",
		"speed=3":                 `"speed=3" is no limit`,
		"sessions=1 sessions=2":   "sessions is given twice",
		"rate=1Mbit rate=garbage": "rate is given twice",
	} {
		if _, err := ParseLimits(strings.Fields(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
}
