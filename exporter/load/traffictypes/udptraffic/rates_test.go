package udptraffic

import (
	"errors"
	"testing"
	"time"

	"oneway.example/exporter/load/stream"
)

func TestRateHoldsForEachSegmentAndForBursts(t *testing.T) {
	const rate = 2.5e6 // 20 Mb/s; the depth is 256 KiB
	even := func(bytesPerSecond float64, d time.Duration) stream.Segment {
		interval := time.Duration(1000 / bytesPerSecond * 1e9)
		return stream.Segment{PayloadBytes: 1000, Burst: 1, Bursts: int(d / interval), Interval: interval}
	}
	train := stream.Segment{PayloadBytes: 1444, Burst: 30, Bursts: 25, Interval: 50 * time.Millisecond}
	for name, c := range map[string]struct {
		segments []stream.Segment
		ok       bool
	}{
		"at the rate":                       {[]stream.Segment{even(rate, 5*time.Minute)}, true},
		"a part above":                      {[]stream.Segment{even(rate*1.01, time.Second)}, false},
		"far above, but one packet":         {[]stream.Segment{{PayloadBytes: 1000, Burst: 1, Bursts: 1}}, true},
		"trains with pauses":                {[]stream.Segment{train}, true},
		"trains without pauses":             {[]stream.Segment{{PayloadBytes: 1444, Burst: 30, Bursts: 25, Interval: 10 * time.Millisecond}}, false},
		"unpaced":                           {[]stream.Segment{{PayloadBytes: 1444, Burst: 1, Bursts: 1000}}, false},
		"a burst that is too large":         {[]stream.Segment{{PayloadBytes: 1444, Burst: 200, Bursts: 1}}, false},
		"bursts with pauses":                {[]stream.Segment{{PayloadBytes: 1444, Burst: 100, Bursts: 1}, {Pause: 100 * time.Millisecond, PayloadBytes: 1444, Burst: 100, Bursts: 1}}, true},
		"bursts with a short pause":         {[]stream.Segment{{PayloadBytes: 1444, Burst: 100, Bursts: 1}, {Pause: time.Millisecond, PayloadBytes: 1444, Burst: 100, Bursts: 1}}, false},
		"many short unpaced bits":           {repeat(stream.Segment{PayloadBytes: 1444, Burst: 10, Bursts: 1}, 40), false},
		"a pause does not exceed the depth": {[]stream.Segment{{Pause: time.Hour / 2, PayloadBytes: 1444, Burst: 200, Bursts: 1}}, false},
	} {
		p := stream.Plan{Segments: c.segments}
		if err := p.Check(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := checkRate(p, full(rate)); (err == nil) != c.ok || err != nil && !errors.Is(err, errRate) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRefusalForAnEarlierTransferNamesIt(t *testing.T) {
	p := stream.Plan{Segments: []stream.Segment{{PayloadBytes: 1000, Burst: 1, Bursts: 1}}}
	b := full(1.25e6)
	b.Level = -1.25e7
	_, err := checkRate(p, b)
	if want := "faster than the token allows: a transfer of this token that began before has its 10 Mb/s for another 10s"; !errors.Is(err, errRate) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func repeat(s stream.Segment, n int) (all []stream.Segment) {
	for range n {
		all = append(all, s)
	}
	return all
}
