package option

import (
	"math"
	"testing"
)

func TestRatesAreBitsPerSecond(t *testing.T) {
	for text, want := range map[string]Rate{
		"5Mbit": 625_000, "2.5Mbit/s": 312_500, "64kbit": 8_000, "64 kb/s": 8_000, "1Gbps": 125_000_000, "800bit": 100, "1000Kbit": 125_000,
	} {
		var got Rate
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q is %v, %v; want %v", text, float64(got), err, float64(want))
		}
	}
	for _, text := range []string{"", "5", "Mbit", "5MB", "5 MB/s", "-5Mbit", "0Mbit", "5Tbit", "1e99Gbit", "5Mbyte", "5.5.5Mbit", "NaNbit", "9999999Gbit"} {
		var got Rate
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was read as a rate of %v", text, float64(got))
		}
	}
}

func FuzzRateRoundTrip(f *testing.F) {
	for _, text := range []string{"5Mbit", "2.5kb/s", "1Gbps", "0.001bit", "999.9999 Kbit"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var r, again Rate
		if r.UnmarshalText([]byte(text)) != nil || r < 1e-3 {
			return
		}
		if err := again.UnmarshalText([]byte(r.String())); err != nil {
			t.Fatalf("%q is %v, which is not a rate: %v", text, r, err)
		}
		if off := float64(again)/float64(r) - 1; math.Abs(off) > 1e-5 {
			t.Errorf("%q is %v, which is %v", text, float64(r), float64(again))
		}
	})
}

// FuzzTypes: accepted values are within their bounds, and the text of an address is parsed to the same address.
func FuzzTypes(f *testing.F) {
	for _, s := range []string{":862", "192.0.2.1:862", "[fe80::1%eth0]:862", "[::ffff:192.0.2.1]:1", "1500", "64KiB", "10MB", "9223372036854775808", "5%", "1e-3", "NaN", "-0", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var l, again Listen
		if l.UnmarshalText([]byte(s)) == nil {
			if err := again.UnmarshalText([]byte(l.String())); err != nil || again != l {
				t.Errorf("%q is %v, and that is %v, %v", s, l, again, err)
			}
		}
		var b Bytes
		if err := b.UnmarshalText([]byte(s)); err == nil && b < 0 {
			t.Errorf("%q is %d bytes", s, b)
		}
		var r Ratio
		if err := r.UnmarshalText([]byte(s)); err == nil && !(r >= 0 && r <= 1) || math.IsNaN(float64(r)) {
			t.Errorf("%q is the ratio %v", s, r)
		}
	})
}

func TestHelperTypesAcceptAndReject(t *testing.T) {
	for text, want := range map[string]Bytes{"0": 0, "1500": 1500, "64KiB": 65536, "10MB": 10_000_000} {
		var b Bytes
		if err := b.UnmarshalText([]byte(text)); err != nil || b != want {
			t.Errorf("%q is %d, %v; want %d", text, b, err, want)
		}
	}
	for _, text := range []string{"", "-1", "64 elephants", "1.5", "-1KiB"} {
		if err := new(Bytes).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was read as an amount of data", text)
		}
	}
	for text, want := range map[string]Ratio{"0": 0, "1": 1, "0.05": 0.05, "5%": 0.05, "100 %": 1} {
		var r Ratio
		if err := r.UnmarshalText([]byte(text)); err != nil || r != want {
			t.Errorf("%q is %v, %v; want %v", text, r, err, want)
		}
	}
	for _, text := range []string{"", "-0.1", "2", "101%", "NaN", "half"} {
		if err := new(Ratio).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was read as a ratio", text)
		}
	}
}
