package unit_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/unit"
)

func TestNumbersHaveTheirUnits(t *testing.T) {
	for _, c := range []struct {
		unit  unit.Unit
		value float64
		want  string
	}{
		{unit.Seconds, 0, "0 s"},
		{unit.Seconds, 12e-9, "0.012 µs"},
		{unit.Seconds, 41.2e-6, "41.2 µs"},
		{unit.Seconds, 30.14e-3, "30.1 ms"},
		{unit.Seconds, -30.14e-3, "-30.1 ms"},
		{unit.Seconds, 0.9996, "1 s"}, // not 1e+03 ms
		{unit.Seconds, 599, "599 s"},
		{unit.Seconds, 900, "15 min"},
		{unit.Seconds, 9000, "2.5 h"},
		{unit.Seconds, 86400, "24 h"},
		{unit.Bytes, 999, "999 B"},
		{unit.Bytes, 1500, "1.5 kB"},
		{unit.Bytes, 65536, "65.54 kB"},
		{unit.Bytes, 999_999, "1 MB"},
		{unit.Bytes, 1.1014e6, "1.101 MB"},
		{unit.Bytes, math.MaxInt64, "9.223 EB"},
		{unit.BytesPerSecond, 312_500, "2.5 Mb/s"},
		{unit.BytesPerSecond, 1e9, "8 Gb/s"},
		{unit.BytesPerSecond, 1.25e11, "1 Tb/s"},
		{unit.Ratio, 0, "0.00 %"},
		{unit.Ratio, 0.004, "0.40 %"},
		{unit.Ratio, 0.0000123, "0.001 %"}, // not zero
		{unit.Ratio, 0.1234, "12.3 %"},
		{unit.Ratio, 0.5, "50 %"},
		{unit.Ratio, 0.9996, "99.96 %"},
		{unit.Ratio, 0.999996, "99.99 %"}, // not 100 %, which is all
		{unit.Ratio, 1, "100 %"},
		{unit.PacketBytes, 1500, "1500 B"},
		{unit.BufferBytes, 65536, "64 KiB"},
		{unit.BufferBytes, 66048, "64.5 KiB"},
		{unit.RFactor, 92.4, "92"},
		{unit.Index, 0.5, "0.50"},
		{unit.Index, -0.001, "0.00"}, // zero has no sign
		{unit.Count, math.Copysign(0, -1), "0"},
		{unit.Count, 123_456, "123456"},
		{unit.Count, 1.23456, "1.235"},
		{"packets", 3, "3 packets"},
	} {
		if got := c.unit.Format(c.value); got != c.want {
			t.Errorf("%g %s: got %q, want %q", c.value, c.unit, got, c.want)
		}
	}
	if got := unit.Duration(1500 * time.Microsecond); got != "1.5 ms" {
		t.Errorf("1500 µs: got %q", got)
	}
	if got := unit.Milliseconds(1.5); got != "1500.000 ms" {
		t.Errorf("1.5 s in milliseconds: got %q", got)
	}
}

// The unit of a row is that of its largest number, be it the value or the bound.
func TestValueAndBoundHaveOneUnit(t *testing.T) {
	for _, c := range []struct {
		unit         unit.Unit
		value, bound float64
		want         string
	}{
		{unit.Bytes, 110_700, 778.8, "110.70 kB ± 0.78 kB"},
		{unit.Seconds, 0.0301, 0.0002, "30.10 ms ± 0.20 ms"},
		{unit.Seconds, 3e-6, 1.2e-3, "0.0 ms ± 1.3 ms"},
		{unit.Seconds, -3e-6, 1.2e-3, "0.0 ms ± 1.3 ms"}, // zero has no sign
		{unit.Seconds, 1.5, 45e-6, "1.500000 s ± 0.000045 s"},
		{unit.RFactor, 92, 3, "92.0 ± 3.0"},
		{unit.Bytes, 1_098_000, 1562, "1.0980 MB ± 0.0016 MB"}, // a bound is rounded up
		{unit.Seconds, 0.35, 135.01e-6, "350.00 ms ± 0.14 ms"},
		{unit.Seconds, 0.35, 99.1e-3, "350 ms ± 100 ms"},
		{unit.Seconds, 0.0123456, 10e-6, "12.346 ms ± 0.011 ms"}, // with the rounding of the value
		{unit.Seconds, 0.35, 0, "350 ms ± 0 ms"},
	} {
		if got := c.unit.FormatBound(c.value, c.bound); got != c.want {
			t.Errorf("%g, %g %s: got %q, want %q", c.value, c.bound, c.unit, got, c.want)
		}
	}
}

// Any number of any unit has a finite text of moderate length.
func FuzzFormat(f *testing.F) {
	f.Add("seconds", 0.3)
	f.Add("", math.Inf(1))
	f.Add("ratio", math.NaN())
	f.Fuzz(func(t *testing.T, name string, v float64) {
		if got := unit.Unit(name).Format(v); got == "" || len(got) > 330+len(name) || strings.HasPrefix(got, "-0 ") {
			t.Errorf("%g %q: %q", v, name, got)
		}
	})
}

// A printed bound is never below the measured one: alone, in a column of milliseconds, and of counts.
func TestPrintedBoundsAreRoundedUp(t *testing.T) {
	for want, got := range map[string]string{
		"± 290 µs":                  unit.Seconds.FormatLimit(281e-6),
		"± 4.9 kb/s":                unit.BytesPerSecond.FormatLimit(601),
		"± 0 s":                     unit.Seconds.FormatLimit(0),
		"± 0.289 ms":                unit.MillisecondsLimit(288.2e-6), // with half a microsecond of the values
		"± 0.288 ms":                unit.MillisecondsLimit(287.5e-6),
		"4294967295 ± 2":            unit.Count.FormatBound(1<<32-1, 2),
		"1.00 s ± 0.15 s":           unit.Seconds.BoundOrDash(new(1.0), new(0.1401)),
		"1 s":                       unit.Seconds.BoundOrDash(new(1.0), nil),
		"-":                         unit.Seconds.BoundOrDash(nil, new(1.0)),
		"99 %":                      unit.Percent(0.999),
		"100 %":                     unit.Percent(1),
		"2.5000 Mb/s ± 0.0049 Mb/s": unit.BytesPerSecond.FormatBound(312_500, 601),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
