package matrix

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"oneway.example/exporter/heavy"
	"oneway.example/exporter/heavy/heavytest"
	"oneway.example/exporter/sample"
	"oneway.example/tests/lab"
	"oneway.example/tests/precision"
)

func TestMain(m *testing.M) { os.Exit(lab.Main(m.Run)) }

// bridge carries streams over an emulated link, between these addresses of its hosts.
func bridge(t *testing.T, l *lab.Lab, idle time.Duration, address func(*lab.Host) netip.Addr) *heavytest.Bridge {
	t.Helper()
	end := func(h *lab.Host) heavytest.End { return heavytest.End{Address: address(h), Do: h.Do} }
	return heavytest.NewBridge(t, end(l.Client), end(l.Server), idle)
}

// TestCellsOfTheEmulatedLinkAreThoseOfItsRate is the probe over the thesis' link: what is
// offered below its rate comes through, and of what is above, as much as its rate.
func TestCellsOfTheEmulatedLinkAreThoseOfItsRate(t *testing.T) {
	profile, err := lab.LoadProfile("wibro")
	if err != nil {
		t.Fatal(err)
	}
	l := lab.Start(t, lab.Options{Profile: profile, Seed: 1})
	b := bridge(t, l, 500*time.Millisecond, func(h *lab.Host) netip.Addr { return h.Addr4 })
	o := DefaultOptions()
	o.PacketBytes, o.PacketRates = []int{128, 1500}, []int{100, 400} // of 1500 octets 400 a second are twice the rate: less than half are lost
	o.CellDuration, o.Seed = 1500*time.Millisecond, 3
	run := measure(t, b, o)
	for range 9 {
		if punctual(run) {
			break
		}
		t.Log("the sender was held up by a busy host; once more")
		run = measure(t, b, o)
	}
	rate := float64(profile.Forward.Rate) / 8
	for _, m := range run.Body.(*Result).Cells {
		t.Logf("%v: sent %s, received %s, loss %.3f, delay %.1f ms +- %.3f ms, mean |IPDV| %.3f ms, shortfall %.3f", m.Cell,
			heavy.Rate(*m.Median.Sent).Words(), heavy.Rate(*m.Median.Received).Words(), *m.Median.Loss,
			1e3**m.Median.Delay, 1e3**m.Median.Bound, 1e3**m.Median.IPDV, *m.Median.Shortfall)
		offered := float64(m.PacketBytes * m.PacketRate)
		near(t, m.String()+": received", *m.Median.Received, min(offered, rate), 0.1) // a host that stands still is in it
		if saturated := offered > rate; saturated != (*m.Median.Loss > 0.1) {
			t.Errorf("%v: loss %v", m.Cell, *m.Median.Loss)
		}
		// The queue of 110 kB takes 352 ms to drain; it fills in the first 400 ms.
		full := profile.Forward.Delay.Seconds()
		if offered > rate {
			full += 110_000 / rate
		}
		// Whether the host holds packets up is not the probe's doing, nor the link's.
		if got := *m.Median.Delay; got < 0.9*full {
			t.Errorf("%v: delay %v, want %v", m.Cell, got, full)
		} else if got > 1.1*full {
			precision.Missed(t, fmt.Errorf("%v: delay %v, want %v", m.Cell, got, full))
		}
	}
}

// measure runs the probe in forward direction.
func measure(t *testing.T, b *heavytest.Bridge, o Options) *heavy.Run {
	t.Helper()
	run := &heavy.Run{Directions: []sample.Direction{sample.Forward}}
	if err := kindOf(t, o).Perform(t.Context(), heavy.NewSession(b, heavy.SessionOptions{Shared: true}), run); err != nil {
		t.Fatal(err)
	}
	return run
}

// punctual tells whether the sender sent all in time.
func punctual(run *heavy.Run) bool {
	return !slices.ContainsFunc(run.Body.(*Result).Cells, func(m Measured) bool { return *m.Median.Shortfall > 0.002 })
}
