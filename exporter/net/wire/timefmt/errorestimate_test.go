package timefmt

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"oneway.example/tests/testseed"
)

// checkEstimate checks the encoding of one bound.
func checkEstimate(t *testing.T, bound time.Duration) {
	t.Helper()
	for _, synchronized := range []bool{false, true} {
		for _, f := range []Format{NTP, PTP} {
			e := MakeErrorEstimate(bound, synchronized, f)
			if e.Synchronized() != synchronized || e.Format() != f || !e.Valid() {
				t.Errorf("bound %v: %#04x has S %v, Z %d, valid %v", bound, uint16(e), e.Synchronized(), e.Format(), e.Valid())
			}
			got := e.Bound()
			if bound < 0 {
				if got != math.MaxInt64 {
					t.Errorf("bound %v became %v, want the largest error", bound, got)
				}
				continue
			}
			// Bound itself rounds up to a nanosecond, after the field to 0.23 ns.
			most := float64(bound)*1.01 + 1.24
			if got < bound || float64(got) > most {
				t.Errorf("bound %v became %v (%#04x)", bound, got, uint16(e))
			}
		}
	}
}

func TestBoundIsRoundedUpByLessThanOnePercent(t *testing.T) {
	for _, d := range []time.Duration{
		0, 1, 2, 59, 60, 100, 255, 256, time.Microsecond, time.Millisecond, time.Second, time.Minute, time.Hour,
		8760 * time.Hour, 1<<60 - 1, 1 << 60, 1<<60 + 1, 1 << 61, 1 << 62, math.MaxInt64 - 1, math.MaxInt64,
		-1, -time.Hour, math.MinInt64,
	} {
		checkEstimate(t, d)
	}
	for shift := range 63 {
		for _, off := range []time.Duration{-1, 0, 1} {
			checkEstimate(t, max(0, 1<<shift+off))
		}
	}
	seed := testseed.Of(t)
	random := rand.New(rand.NewPCG(seed, 3))
	for range 200_000 {
		checkEstimate(t, time.Duration(random.Uint64()>>random.IntN(64)))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// The values are computed by hand from error = Multiplier x 2^(Scale-32) s.
func TestErrorEstimateEncoding(t *testing.T) {
	for _, c := range []struct {
		bound        time.Duration
		synchronized bool
		f            Format
		want         ErrorEstimate
	}{
		{0, true, NTP, 0x8001},
		// 1 s = 128 x 2^(25-32): the largest multiplier below 256.
		{time.Second, true, NTP, 0x8000 | 25<<8 | 128},
		{time.Second, false, PTP, 0x4000 | 25<<8 | 128},
		// 0.5 s + 1 ns does not fit 128 x 2^(24-32) and rounds up to 129.
		{time.Second/2 + 1, false, NTP, 24<<8 | 129},
		// 1 ms = 4,294,967.3 x 2^-32 s, / 2^15 = 131.07, rounded up 132.
		{time.Millisecond, true, PTP, 0xc000 | 15<<8 | 132},
		// 20 us = 85,899.3 x 2^-32 s, / 2^9 = 167.8, rounded up 168.
		{20 * time.Microsecond, true, NTP, 0x8000 | 9<<8 | 168},
		{-1, true, NTP, 0x8000 | 63<<8 | 255},
		{math.MaxInt64, false, NTP, 0x3fff},
		{math.MaxInt64, false, PTP, 0x7fff},
	} {
		if got := MakeErrorEstimate(c.bound, c.synchronized, c.f); got != c.want {
			t.Errorf("bound %v: %#04x, want %#04x", c.bound, uint16(got), uint16(c.want))
		}
	}
}

func TestEveryErrorEstimateIsReadWithoutOverflow(t *testing.T) {
	for v := range 1 << 16 {
		e := ErrorEstimate(v)
		scale, multiplier := v>>8&63, v&255
		want := math.Ceil(float64(multiplier) * math.Pow(2, float64(scale)-32) * 1e9)
		got := e.Bound()
		switch {
		case got < 0, (got == 0) == e.Valid(), e.Valid() != (multiplier != 0),
			e.Synchronized() != (v >= 1<<15), e.Format() != Format(v>>14&1),
			want < math.MaxInt64 && float64(got) != want, want >= math.MaxInt64 && got != math.MaxInt64:
			t.Fatalf("%#04x: bound %d, want %g", v, got, want)
		}
		// Encoded again, the bound does not shrink, and is no coarser.
		if again := MakeErrorEstimate(got, true, NTP).Bound(); again < got {
			t.Fatalf("%#04x: %v became %v", v, got, again)
		}
	}
}

func FuzzMakeErrorEstimate(f *testing.F) {
	f.Add(int64(math.MinInt64))
	f.Add(int64(math.MaxInt64))
	f.Add(int64(0))
	f.Fuzz(func(t *testing.T, bound int64) { checkEstimate(t, time.Duration(bound)) })
}

func TestFormatsDoNotAllocate(t *testing.T) {
	sink := uint64(0)
	n := testing.AllocsPerRun(100, func() {
		e := MakeErrorEstimate(time.Duration(sink), true, NTP)
		raw := e.Format().Encode(1_700_000_000_000_000_000, tai)
		sink += uint64(NTP.Decode(raw, tai, 1)) + uint64(e.Bound())
	})
	if n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func BenchmarkErrorEstimate(b *testing.B) {
	b.ReportAllocs()
	d := time.Duration(0)
	for b.Loop() {
		d += MakeErrorEstimate(20*time.Microsecond+d, true, NTP).Bound() & 1
	}
}
