package stream

import (
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestInvalidPlansAreRefused(t *testing.T) {
	good := Segment{PayloadBytes: 100, Interval: time.Millisecond, Burst: 1, Bursts: 1}
	with := func(change func(*Segment)) Plan {
		s := good
		change(&s)
		return Plan{Segments: []Segment{good, s}}
	}
	if err := (Plan{Segments: []Segment{good}, DSCP: 63}).Check(); err != nil {
		t.Errorf("a valid plan: %v", err)
	}
	for name, p := range map[string]Plan{
		"no segment":          {},
		"too many segments":   {Segments: make([]Segment, MaxSegments+1)},
		"a large dscp":        {Segments: []Segment{good}, DSCP: 64},
		"a small packet":      with(func(s *Segment) { s.PayloadBytes = HeaderBytes - 1 }),
		"a large packet":      with(func(s *Segment) { s.PayloadBytes = MaxPayloadBytes + 1 }),
		"no packet in bursts": with(func(s *Segment) { s.Burst = 0 }),
		"no bursts":           with(func(s *Segment) { s.Bursts = -1 }),
		"too many packets":    with(func(s *Segment) { s.Interval, s.Bursts = 0, MaxPackets }),
		"an overflow":         with(func(s *Segment) { s.Burst, s.Bursts = math.MaxInt, math.MaxInt }),
		"a negative interval": with(func(s *Segment) { s.Interval = -1 }),
		"a negative pause":    with(func(s *Segment) { s.Pause = -1 }),
		"a long pause":        with(func(s *Segment) { s.Pause = math.MaxInt64 }),
		"a long interval":     with(func(s *Segment) { s.Interval, s.Bursts = math.MaxInt64, 2 }),
		"too long in total":   with(func(s *Segment) { s.Pause = time.Hour - time.Millisecond }),
	} {
		if err := p.Check(); !errors.Is(err, ErrPlan) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The cursor visits every packet at its planned time.
func TestEveryPacketHasItsTime(t *testing.T) {
	const begin = 7 * time.Second
	p := Plan{Segments: []Segment{
		{Pause: 10 * time.Millisecond, PayloadBytes: 50, Interval: 3 * time.Millisecond, Burst: 2, Bursts: 2},
		{Pause: time.Millisecond, PayloadBytes: 60, Burst: 2, Bursts: 1}, // takes until 20.5 ms
		{Pause: 5 * time.Millisecond, PayloadBytes: 70, Interval: time.Millisecond, Burst: 1, Bursts: 2},
	}}
	var got []time.Duration
	var sizes []int
	for c := newCursor(p, begin); !c.done(); {
		due := c.due() - begin
		got, sizes = append(got, due), append(sizes, c.payloadBytes())
		now := begin + due
		if c.unpaced() {
			now = begin + 20500*time.Microsecond
		}
		c.advance(now)
	}
	ms := func(of ...float64) (d []time.Duration) {
		for _, f := range of {
			d = append(d, time.Duration(f*1e6))
		}
		return d
	}
	if want := ms(10, 10, 13, 13, 17, 17, 25.5, 26.5); !cmp.Equal(got, want) {
		t.Errorf("due at %v, want %v", got, want)
	}
	if want := []int{50, 50, 50, 50, 60, 60, 70, 70}; !cmp.Equal(sizes, want) {
		t.Errorf("sizes %v, want %v", sizes, want)
	}
}

// A plan may come from the network: after Check it is within all limits.
func FuzzPlan(f *testing.F) {
	b, err := json.Marshal(Plan{Segments: []Segment{{PayloadBytes: 100, Interval: time.Millisecond, Burst: 2, Bursts: 30}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	if b, err = json.Marshal(adjustedPlan(30)); err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var p Plan
		if json.Unmarshal(b, &p) != nil || p.Check() != nil {
			return
		}
		if n := p.Packets(); n < 1 || n > MaxPackets {
			t.Errorf("%d packets", n)
		}
		if d := p.Duration(); d < 0 || d > MaxDuration {
			t.Errorf("duration %v", d)
		}
		if n := p.Bytes(); n < HeaderBytes || n > int64(MaxPackets)*MaxPayloadBytes {
			t.Errorf("%d bytes", n)
		}
		if rate, _ := p.PeakRate(); rate < 0 || math.IsNaN(rate) || math.IsInf(rate, 0) {
			t.Errorf("%v bytes per second", rate)
		}
	})
}

func TestPeakRateIsThatOfTheLargestBurst(t *testing.T) {
	p := Plan{Segments: []Segment{{PayloadBytes: MaxPayloadBytes, Interval: time.Second, Burst: 40_000, Bursts: 1}}}
	if got, _ := p.PeakRate(); got != 40_000*float64(MaxPayloadBytes) {
		t.Errorf("%g bytes/s", got)
	}
}
