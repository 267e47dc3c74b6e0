package train

import (
	"testing"

	"oneway.example/exporter/control"
	"oneway.example/exporter/heavy"
	"oneway.example/exporter/sample"
)

func TestWitnessesTellATooLargePacketFromADeadPath(t *testing.T) {
	for name, c := range map[string]struct {
		road *road
		want answer
	}{
		"passes":              {&road{rate: wibro, mtu: 1500}, passed},
		"too large":           {&road{rate: wibro, mtu: 1300}, tooLarge},
		"refused":             {&road{rate: wibro, port: 1300}, tooLarge},
		"dead":                {&road{rate: wibro, lose: func(int) bool { return true }}, unclear},
		"one of three passes": {&road{rate: wibro, lose: func(n int) bool { return n < 4 }}, passed},
	} {
		t.Run(name, func(t *testing.T) {
			c.road.stamps = sample.Kernel
			got, err := ask(t.Context(), c.road.session(), sample.Reverse, 1400, &patience{})
			if err != nil || got != c.want {
				t.Errorf("answer %d, error %v, want %d", got, err, c.want)
			}
		})
	}
}

func TestProbesOfTheMTUKeepTheTokensRate(t *testing.T) {
	const limit = 50_000
	r := &road{rate: wibro, stamps: sample.Kernel}
	s := heavy.NewSession(r, heavy.SessionOptions{Limits: control.Limits{BytesPerSecond: limit}})
	if mtu, err := pathMTU(t.Context(), s, sample.Forward, 9000, &patience{}); err != nil || mtu != 9000 {
		t.Fatalf("path MTU %d, %v, want 9000", mtu, err)
	}
	for _, p := range r.plans {
		if rate, unpaced := p.PeakRate(); rate > limit || unpaced {
			t.Errorf("probes of %d octets at %.0f octets/s, allowed are %d", p.Segments[0].PayloadBytes, rate, limit)
		}
	}
}
