package ppsfit

import (
	"encoding/binary"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
)

func regular(i int) Pulse {
	return Pulse{Raw: time.Duration(i)*1_000_020_000 + time.Duration(i*i%97), UTC: begin.Add(time.Duration(i) * time.Second)}
}

func BenchmarkAddAndUTC(b *testing.B) {
	var f Fit
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		p := regular(i)
		f.Add(p)
		f.UTC(p.Raw - time.Second/3)
	}
}

func TestNothingIsAllocated(t *testing.T) {
	var f Fit
	i := 0
	if n := testing.AllocsPerRun(1000, func() {
		i++
		if i%10 == 0 {
			i += i % 50
		}
		p := regular(i)
		f.Add(p)
		f.Add(Pulse{Raw: p.Raw + time.Millisecond, UTC: p.UTC})
		f.UTC(p.Raw)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzFit feeds any pulses: no panic, and results are ordered and bounded.
func FuzzFit(f *testing.F) {
	var seed []byte
	for range 40 {
		seed = binary.LittleEndian.AppendUint64(seed, uint64(1_000_010_000)<<2|1)
	}
	f.Add(seed)
	f.Add([]byte("any pulses at all, of any length"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var fit Fit
		p := Pulse{Raw: 1000 * time.Second, UTC: begin}
		for len(data) >= 8 {
			word := int64(binary.LittleEndian.Uint64(data))
			data = data[8:]
			step := time.Duration(word >> 2)
			switch word & 3 {
			case 0: // any value
				p = Pulse{Raw: step, UTC: instant.Time(word / 1e9 * 1e9)}
			case 1, 2: // a possible pulse
				step %= 20 * time.Second
				p.Raw += step
				p.UTC = p.UTC.Add(step.Round(time.Second))
			default: // another second
				p.Raw += time.Second
				p.UTC += instant.Time(step.Round(time.Second))
			}
			fit.Add(p)
			check(t, &fit, p.Raw)
		}
	})
}

// check checks the invariants of a fit.
func check(t *testing.T, fit *Fit, raw time.Duration) {
	t.Helper()
	var last instant.Time
	for step := -2 * time.Second; step <= 2*time.Second; step += 250 * time.Millisecond {
		moment := max(0, min(raw, 1<<62)) + step
		at, bound, ok := fit.UTC(moment)
		if !ok {
			if at != 0 || bound != 0 {
				t.Fatalf("unknown, but %v, %v", at, bound)
			}
			continue
		}
		if bound <= 0 || at <= 0 || at < last {
			t.Fatalf("at %v: %v after %v, bound %v", moment, int64(at), int64(last), bound)
		}
		last = at
	}
}
