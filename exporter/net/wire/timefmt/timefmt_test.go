package timefmt

import (
	"math/rand/v2"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/tests/testseed"
)

const tai = 37 * time.Second

func at(t *testing.T, text string) instant.Time {
	t.Helper()
	u, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return instant.FromTime(u)
}

// The values are computed by hand from the definitions of the formats.
func TestTimestampEncoding(t *testing.T) {
	for _, c := range []struct {
		when string
		f    Format
		raw  uint64
	}{
		// RFC 868: 2,208,988,800 (0x83aa7e80) is 00:00 1 Jan 1970 GMT.
		{"1970-01-01T00:00:01Z", NTP, 0x83aa7e81_00000000},
		// RFC 868: 2,629,584,000 is 00:00 1 May 1983 GMT.
		{"1983-05-01T00:00:00Z", NTP, 2_629_584_000 << 32},
		{"2000-01-01T00:00:00.5Z", NTP, 0xbc17c200_80000000},
		{"2000-01-01T00:00:00.25Z", NTP, 0xbc17c200_40000000},
		// 1 ns is 4.29 units, 999,999,999 ns are 4,294,967,291.7.
		{"2000-01-01T00:00:00.000000001Z", NTP, 0xbc17c200_00000005},
		{"2000-01-01T00:00:00.999999999Z", NTP, 0xbc17c200_fffffffc},
		// Raw nanoseconds, as one known implementation writes, would be 0x1dcd6500.
		{"2023-11-14T22:13:20.5Z", NTP, 0xe8fe6f80_80000000},
		// 1,700,000,000 s after 1970; TAI is 37 s ahead.
		{"2023-11-14T22:13:20.123456789Z", PTP, 1_700_000_037<<32 | 123_456_789},
		{"1970-01-01T00:00:00.000000001Z", PTP, 37<<32 | 1},
	} {
		when := at(t, c.when)
		if got := c.f.Encode(when, tai); got != c.raw {
			t.Errorf("%s in format %d: %#016x, want %#016x", c.when, c.f, got, c.raw)
		}
		if got := c.f.Decode(c.raw, tai, when); got != when {
			t.Errorf("%#016x in format %d: %s, want %s", c.raw, c.f, got, c.when)
		}
	}
}

func TestEveryNanosecondIsPreserved(t *testing.T) {
	seed := testseed.Of(t)
	random := rand.New(rand.NewPCG(seed, 1))
	base := at(t, "2026-03-01T12:34:56Z")
	check := func(ns int64) {
		when := base.Add(time.Duration(ns))
		for _, f := range []Format{NTP, PTP} {
			if got := f.Decode(f.Encode(when, tai), tai, base); got != when {
				t.Fatalf("seed %d: %s became %s in format %d", seed, when, got, f)
			}
		}
	}
	for ns := range int64(100_000) {
		check(ns)
		check(1e9 - 1 - ns)
	}
	for range 500_000 {
		check(random.Int64N(1e9))
	}
}

// Some writers truncate a nanosecond's binary fraction, some round it to the nearest; both mean that nanosecond.
func TestFractionsDecodeToTheirNanosecondHoweverRounded(t *testing.T) {
	local := at(t, "2026-03-01T00:00:00Z")
	sec := NTP.Encode(local, 0)
	seed := testseed.Of(t)
	random := rand.New(rand.NewPCG(seed, 2))
	for i := range 200_000 {
		ns := random.Uint64N(1e9)
		if i < 10 {
			ns = 1e9 - 1 - uint64(i)
		}
		for how, low := range map[string]uint64{"down": ns << 32 / 1e9, "nearest": (ns<<32 + 5e8) / 1e9} {
			if got := NTP.Decode(sec|low, 0, local).Sub(local); got != time.Duration(ns) {
				t.Fatalf("seed %d: %d ns rounded %s became %d", seed, ns, how, got)
			}
		}
	}
	if got := NTP.Decode(sec|0xffffffff, 0, local).Sub(local); got != time.Second {
		t.Errorf("the last fraction of a second became %v", got)
	}
}

func TestReadersClockSelectsTheEra(t *testing.T) {
	rollover := map[Format]instant.Time{
		NTP: at(t, "2036-02-07T06:28:16Z"),
		PTP: at(t, "2106-02-07T06:28:16Z").Add(-tai),
	}
	for f, wrap := range rollover {
		for _, off := range []time.Duration{-time.Hour, -time.Second, -1, 0, 1, time.Second, time.Hour} {
			for _, apart := range []time.Duration{-30 * 8760 * time.Hour, -2 * time.Hour, 0, 2 * time.Hour, 30 * 8760 * time.Hour} {
				when := wrap.Add(off)
				raw := f.Encode(when, tai)
				want := when
				if f == PTP && off == 0 {
					want++ // its own encoding means no timestamp
				}
				if got := f.Decode(raw, tai, when.Add(apart)); got != want {
					t.Errorf("format %d, %v from the wrap, reader's clock off by %v: got %s, want %s", f, off, apart, got, want)
				}
			}
		}
	}
}

func TestOnlyTheZeroTimeEncodesAsZero(t *testing.T) {
	for _, f := range []Format{NTP, PTP} {
		if got := f.Encode(0, tai); got != 0 {
			t.Errorf("format %d: the zero Time became %#x", f, got)
		}
		if got := f.Decode(0, tai, instant.Now()); !got.IsZero() {
			t.Errorf("format %d: 0 became %s", f, got)
		}
	}
	if got := NTP.Encode(at(t, "2036-02-07T06:28:16Z"), tai); got == 0 {
		t.Error("the instant at which the NTP seconds wrap became 0")
	}
}

func TestInvalidNanosecondsAreNoTimestamp(t *testing.T) {
	local := at(t, "2026-03-01T00:00:00Z")
	sec := uint64(1_772_323_237) << 32
	if got := PTP.Decode(sec|999_999_999, tai, local); got.IsZero() {
		t.Error("the last nanosecond of a second became the zero Time")
	}
	if got := PTP.Decode(sec|1_000_000_000, tai, local); !got.IsZero() {
		t.Errorf("10^9 nanoseconds became %s", got)
	}
}

func TestPTPCountsLeapSecondsAndNTPDoesNot(t *testing.T) {
	when := at(t, "2026-03-01T00:00:00Z")
	if got := PTP.Decode(PTP.Encode(when, tai), 0, when).Sub(when); got != tai {
		t.Errorf("without TAI-UTC the time is %v ahead, want %v", got, tai)
	}
	if NTP.Encode(when, tai) != NTP.Encode(when, 0) {
		t.Error("NTP timestamps depend on TAI")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(uint64(0), int64(0), false)
	f.Add(uint64(0xffffffff_ffffffff), int64(1<<62), true)
	f.Add(uint64(0xe8fe6f80_80000000), int64(1_700_000_000e9), false)
	f.Fuzz(func(t *testing.T, raw uint64, local int64, ptp bool) {
		format := NTP
		if ptp {
			format = PTP
		}
		got := format.Decode(raw, tai, instant.Time(local))
		// Timestamps of a reader beyond the year 2116, or before 1823, exceed Time.
		if got.IsZero() || local > 1<<62 || local < -1<<62 {
			return
		}
		if apart := got.Sub(instant.Time(local)).Abs(); apart > time.Duration(era/2+38)*time.Second {
			t.Errorf("timestamp %#x decoded near %d is %v away", raw, local, apart)
		}
		if again := format.Decode(format.Encode(got, tai), tai, got); again != got {
			t.Errorf("timestamp %#x: %d became %d", raw, got, again)
		}
	})
}

func BenchmarkFormat(b *testing.B) {
	now := instant.Now()
	for name, f := range map[string]Format{"ntp": NTP, "ptp": PTP} {
		b.Run(name+"/encode", func(b *testing.B) {
			b.ReportAllocs()
			var sum uint64
			for b.Loop() {
				sum += f.Encode(now, tai)
				now++
			}
			_ = sum
		})
		b.Run(name+"/decode", func(b *testing.B) {
			b.ReportAllocs()
			raw := f.Encode(now, tai)
			for b.Loop() {
				now += f.Decode(raw, tai, now) & 1
			}
		})
	}
}
