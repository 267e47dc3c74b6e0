package heavy_test

import (
	"math"
	"testing"

	"oneway.example/exporter/heavy"
)

func TestRatesAreBitsASecond(t *testing.T) {
	for text, want := range map[string]heavy.Rate{
		"5Mbit": 625_000, "2.5Mbit/s": 312_500, "64kbit": 8_000, "64 kb/s": 8_000, "1Gbps": 125_000_000, "800bit": 100, "1000Kbit": 125_000,
	} {
		var got heavy.Rate
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q is %v, %v; want %v", text, float64(got), err, float64(want))
		}
	}
	for _, text := range []string{"", "5", "Mbit", "5MB", "5 MB/s", "-5Mbit", "0Mbit", "5Tbit", "1e99Gbit", "5Mbyte", "5.5.5Mbit", "NaNbit", "9999999Gbit"} {
		var got heavy.Rate
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q passes for a rate of %v", text, float64(got))
		}
	}
}

func FuzzRateSurvivesItsOwnWords(f *testing.F) {
	for _, text := range []string{"5Mbit", "2.5kb/s", "1Gbps", "0.001bit", "999.9999 Kbit"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var r, again heavy.Rate
		if r.UnmarshalText([]byte(text)) != nil || r < 1e-3 {
			return
		}
		if err := again.UnmarshalText([]byte(r.String())); err != nil {
			t.Fatalf("%q is %v, which is no rate: %v", text, r, err)
		}
		if off := float64(again)/float64(r) - 1; math.Abs(off) > 1e-5 {
			t.Errorf("%q is %v, which is %v", text, float64(r), float64(again))
		}
	})
}

func TestRateWordsAreForPeople(t *testing.T) {
	for r, want := range map[heavy.Rate]string{312_500: "2.5 Mb/s", 100: "800 b/s", 1.25e9: "10 Gb/s", 155_805: "1.246 Mb/s"} {
		if got := r.Words(); got != want {
			t.Errorf("%v is %q, want %q", float64(r), got, want)
		}
	}
}
