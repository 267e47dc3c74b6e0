package responder

import (
	"errors"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/control"
	"oneway.example/exporter/stream"
)

func TestLimitsAreReadAndWrittenTheSame(t *testing.T) {
	for text, want := range map[string]control.Limits{
		"":               {},
		"rate=20Mbit":    {BytesPerSecond: 2.5e6},
		"rate=1.5kbit":   {BytesPerSecond: 187.5},
		"rate=800bit":    {BytesPerSecond: 100},
		"duration=5m":    {Duration: 5 * time.Minute},
		"sessions=2":     {Sessions: 2},
		"per-day=10GB":   {BytesPerDay: 10_000_000_000},
		"per-day=1MiB":   {BytesPerDay: 1 << 20},
		"per-day=123456": {BytesPerDay: 123456},
		"rate=1Gbit duration=30s sessions=1 per-day=1TB": {BytesPerSecond: 125e6, Duration: 30 * time.Second, Sessions: 1, BytesPerDay: 1e12},
	} {
		got, err := ParseLimits(strings.Fields(text))
		if err != nil || got != want {
			t.Errorf("%q is %+v, %v; want %+v", text, got, err, want)
		}
		if again, err := ParseLimits(formatLimits(got)); err != nil || again != got {
			t.Errorf("%q was written as %q and read as %+v, %v", text, formatLimits(got), again, err)
		}
	}
}

func TestWrongLimitsSayWhatWouldBeRight(t *testing.T) {
	for text, want := range map[string]string{
		"rate=20":                 `rate is "20"; it must be bits a second`,
		"rate=0Mbit":              "above 0",
		"rate=-1Mbit":             "above 0",
		"rate=NaNMbit":            "above 0",
		"rate=9e9Gbit":            "above 0",
		"duration=5":              "between 1s and 1h0m0s",
		"duration=2h":             "between 1s and 1h0m0s",
		"sessions=0":              "between 1 and",
		"per-day=much":            "an amount of data",
		"per-day=0":               "an amount of data",
		"speed=3":                 `"speed=3" is no limit`,
		"sessions=1 sessions=2":   "sessions is given twice",
		"rate=1Mbit rate=garbage": "rate is given twice",
	} {
		if _, err := ParseLimits(strings.Fields(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
}

func TestRateHoldsForEachSegmentAndForBursts(t *testing.T) {
	const rate = 2.5e6 // 20 Mb/s: 256 KiB at once
	even := func(bytesPerSecond float64, d time.Duration) stream.Segment {
		interval := time.Duration(1000 / bytesPerSecond * 1e9)
		return stream.Segment{PayloadBytes: 1000, Burst: 1, Bursts: int(d / interval), Interval: interval}
	}
	train := stream.Segment{PayloadBytes: 1444, Burst: 30, Bursts: 25, Interval: 50 * time.Millisecond}
	for name, c := range map[string]struct {
		segments []stream.Segment
		ok       bool
	}{
		"at the limit":               {[]stream.Segment{even(rate, 5*time.Minute)}, true},
		"a part above":               {[]stream.Segment{even(rate*1.01, time.Second)}, false},
		"far above, but one packet":  {[]stream.Segment{{PayloadBytes: 1000, Burst: 1, Bursts: 1}}, true},
		"trains with pauses":         {[]stream.Segment{train}, true},
		"trains without pauses":      {[]stream.Segment{{PayloadBytes: 1444, Burst: 30, Bursts: 25, Interval: 10 * time.Millisecond}}, false},
		"unpaced":                    {[]stream.Segment{{PayloadBytes: 1444, Burst: 1, Bursts: 1000}}, false},
		"a burst that is too large":  {[]stream.Segment{{PayloadBytes: 1444, Burst: 200, Bursts: 1}}, false},
		"bursts with pauses":         {[]stream.Segment{{PayloadBytes: 1444, Burst: 100, Bursts: 1}, {Pause: 100 * time.Millisecond, PayloadBytes: 1444, Burst: 100, Bursts: 1}}, true},
		"bursts with a short pause":  {[]stream.Segment{{PayloadBytes: 1444, Burst: 100, Bursts: 1}, {Pause: time.Millisecond, PayloadBytes: 1444, Burst: 100, Bursts: 1}}, false},
		"many short unpaced bits":    {repeat(stream.Segment{PayloadBytes: 1444, Burst: 10, Bursts: 1}, 40), false},
		"a pause that saves nothing": {[]stream.Segment{{Pause: time.Hour / 2, PayloadBytes: 1444, Burst: 200, Bursts: 1}}, false},
	} {
		p := stream.Plan{Segments: c.segments}
		if err := p.Check(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := checkRate(p, rate, depthOf(rate)); (err == nil) != c.ok || err != nil && !errors.Is(err, errTooFast) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := new(rates).spend("a", p, 0, time.Now()); err != nil {
			t.Errorf("%s: without a limit: %v", name, err)
		}
	}
}

func TestManyShortTransfersAreNoFasterThanALongOne(t *testing.T) {
	const rate = 12_500 // 100 kb/s; 256 KiB at once
	burst := stream.Plan{Segments: []stream.Segment{{PayloadBytes: 1000, Burst: 200, Bursts: 1}}}
	var r rates
	now := time.Unix(1_700_000_000, 0)
	if _, err := r.spend("a", burst, rate, now); err != nil {
		t.Fatal(err)
	}
	again, err := r.spend("a", burst, rate, now)
	if !errors.Is(err, errTooFast) || again != 16*time.Second {
		t.Errorf("a second one at once: %v, again in %v", err, again)
	}
	if _, err := r.spend("b", burst, rate, now); err != nil {
		t.Errorf("another name: %v", err)
	}
	if _, err := r.spend("a", burst, rate, now.Add(again)); err != nil {
		t.Errorf("when it was told to come back: %v", err)
	}
	large := stream.Plan{Segments: []stream.Segment{{PayloadBytes: 1000, Burst: 300, Bursts: 1}}}
	if again, err := r.spend("c", large, rate, now); err == nil || again != 0 {
		t.Errorf("what never fits: %v, again in %v", err, again)
	}
	long := stream.Plan{Segments: []stream.Segment{{PayloadBytes: 1000, Burst: 1, Bursts: 250, Interval: 80 * time.Millisecond}}}
	if _, err := r.spend("d", long, rate, now); err != nil {
		t.Fatal(err)
	}
	if _, err := r.spend("d", burst, rate, now.Add(20*time.Second)); err != nil {
		t.Errorf("after a paced one at the limit: %v", err)
	}
}

func repeat(s stream.Segment, n int) (all []stream.Segment) {
	for range n {
		all = append(all, s)
	}
	return all
}
