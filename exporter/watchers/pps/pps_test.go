package pps

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
)

func TestOptionsHaveDefaults(t *testing.T) {
	w, err := New(Options{kernel: &fake{}})
	if err != nil || w.options.Device != DefaultDevice || w.options.Name != "pps0" {
		t.Errorf("%+v, %v", w.options, err)
	}
	if w, err = New(Options{Device: "/dev/pps7", kernel: &fake{}}); err != nil || w.options.Name != "pps7" {
		t.Errorf("%+v, %v", w.options, err)
	}
	if _, err = New(Options{Device: "pps0"}); err == nil || !strings.Contains(err.Error(), "/dev/pps0") {
		t.Errorf("a relative path: %v", err)
	}
}

func TestSecondIsTheNearest(t *testing.T) {
	for at, want := range map[instant.Time]instant.Time{
		1_800_000_000_000_000_000: 1_800_000_000_000_000_000,
		1_800_000_000_499_999_999: 1_800_000_000_000_000_000,
		1_800_000_000_500_000_000: 1_800_000_001_000_000_000,
		1_799_999_999_999_999_999: 1_800_000_000_000_000_000,
	} {
		if got := second(at); got != want {
			t.Errorf("%d is of second %d, want %d", at, got, want)
		}
	}
}

func TestSlewIsMeasuredAndStepsAreNot(t *testing.T) {
	a := reading{wall: 1000e9, raw: 500 * time.Second}
	for _, c := range []struct {
		wall, raw time.Duration
		want      float64
	}{
		{time.Second + 50*time.Microsecond, time.Second, 50e-6},
		{time.Second - 80*time.Millisecond, time.Second, -0.08},
		{2 * time.Second, time.Second, 0},
		{-time.Second, time.Second, 0},
		{time.Second, 0, 0},
		{time.Second, -time.Second, 0},
		{time.Minute, time.Minute, 0},
	} {
		b := reading{wall: a.wall.Add(c.wall), raw: a.raw + c.raw}
		if got := slewBetween(a, b); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v in %v: slew %v, want %v", c.wall, c.raw, got, c.want)
		}
	}
}

// FuzzEdges feeds arbitrary edges of a kernel: no panic and no invalid value.
func FuzzEdges(f *testing.F) {
	var seed []byte
	for i := range 20 {
		seed = binary.LittleEndian.AppendUint32(seed, uint32(i))
		seed = binary.LittleEndian.AppendUint64(seed, uint64(1_000_000_000+i%3))
		seed = binary.LittleEndian.AppendUint64(seed, uint64(50_000))
	}
	f.Add(seed)
	f.Add([]byte("what is this that comes from the kernel"))
	f.Fuzz(func(t *testing.T, data []byte) {
		j := newJudge(metric.NewScope(metric.Discard{}, "p"))
		now := reading{wall: 1_800_000_000e9, raw: 500 * time.Second, uncertainty: 100}
		for ; len(data) >= 20; data = data[20:] {
			sequence := binary.LittleEndian.Uint32(data)
			elapsed := time.Duration(binary.LittleEndian.Uint64(data[4:]))
			age := time.Duration(binary.LittleEndian.Uint64(data[12:]))
			now.raw += elapsed
			now.wall = now.wall.Add(elapsed)
			if sequence%7 == 6 {
				now.wall = instant.Time(age)
				now.uncertainty = elapsed
			}
			before := j.state
			j.take(message{event: event{sequence, now.wall.Add(-age)}, now: now})
			s := j.state
			if s.Pulses < before.Pulses || s.Missed < before.Missed || s.Last.RawError < 0 || s.Last.Raw < 0 || s.Jitter < 0 {
				t.Fatalf("%+v", s)
			}
			if s.FitKnown && (s.FitBound <= 0 || s.FitOffset.Abs() > time.Second/2+time.Millisecond) {
				t.Fatalf("%+v", s)
			}
		}
	})
}

// BenchmarkPulse is the complete processing of one pulse, except that of the sink.
func BenchmarkPulse(b *testing.B) {
	j := newJudge(metric.NewScope(metric.Discard{}, "p"))
	now := reading{wall: 1_800_000_000e9, raw: 500 * time.Second, uncertainty: 100}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		now.wall += 1e9
		now.raw += time.Second
		j.edge(event{uint32(i), now.wall - 50_000}, now)
	}
}
