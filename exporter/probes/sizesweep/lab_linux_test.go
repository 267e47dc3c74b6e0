package sizesweep

import (
	"fmt"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/loadtesttest"
	"oneway.example/exporter/probe"
	"oneway.example/tests/lab"
	"oneway.example/tests/precision"
	"oneway.example/tests/standstill"
)

func TestMain(m *testing.M) { os.Exit(lab.Main(m.Run)) }

// TestCellsOfTheEmulatedLinkAreThoseOfItsRate runs the probe over the thesis' link: an offered load below its rate
// passes; of a higher one, the link's rate passes.
func TestCellsOfTheEmulatedLinkAreThoseOfItsRate(t *testing.T) {
	profile, err := lab.LoadProfile("wibro")
	if err != nil {
		t.Fatal(err)
	}
	l := lab.Start(t, lab.Options{Profile: profile, Seed: 1})
	shared := loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{Address: l.Server.Addr4, Do: l.Server.Do})
	shared.Directions, shared.DrainTimeout = []string{"forward"}, 500*time.Millisecond
	o := DefaultOptions()
	o.PacketBytes, o.PacketRates = []int{128, 1500}, []int{100, 400} // 400 packets a second of 1500 bytes are twice the rate: less than half are lost
	o.CellDuration, o.Seed = 1500*time.Millisecond, 3
	rate := float64(profile.Forward.Rate) / 8
	standstill.Decide(t, standstill.Begin(t), func(r precision.TB) { // the emulated link stands still with its host
		run := measure(t, l, shared, o)
		for range 9 {
			if punctual(run) {
				break
			}
			t.Log("a busy host delayed the sender; repeating")
			run = measure(t, l, shared, o)
		}
		for _, m := range run.Body.(*Result).Cells {
			isCellOf(r, profile.Forward, rate, m)
		}
	})
}

// isCellOf compares a cell with the rate, delay and queue of the link.
func isCellOf(t precision.TB, link lab.Link, rate float64, m MeasuredCell) {
	t.Helper()
	t.Logf("%v: sent %s, received %s, loss %.3f, delay %.1f ms +- %.3f ms, mean |IPDV| %.3f ms, underrun %.3f", m.Cell,
		unit.BytesPerSecond.Format(*m.Median.Sent), unit.BytesPerSecond.Format(*m.Median.Received), *m.Median.Loss,
		1e3**m.Median.Delay, 1e3**m.Median.Bound, 1e3**m.Median.IPDV, *m.Median.Underrun)
	offered := float64(m.PacketBytes * m.PacketRate)
	near(t, m.String()+": received", *m.Median.Received, min(offered, rate), 0.1) // it includes pauses of the host
	if saturated := offered > rate; saturated != (*m.Median.Loss > 0.1) {
		t.Errorf("%v: loss %v", m.Cell, *m.Median.Loss)
	}
	// The queue of 110 kB takes 352 ms to drain; it fills in the first 400 ms.
	full := link.Delay.Seconds()
	if offered > rate {
		full += 110_000 / rate
	}
	// Delays added by the host are caused neither by the probe nor by the link.
	if got := *m.Median.Delay; got < 0.9*full {
		t.Errorf("%v: delay %v, want %v", m.Cell, got, full)
	} else if got > 1.1*full {
		precision.Missed(t, fmt.Errorf("%v: delay %v, want %v", m.Cell, got, full))
	}
}

// measure runs the probe from the lab's client.
func measure(t *testing.T, l *lab.Lab, shared loadsession.Options, o Options) *loadtest.Outcome {
	t.Helper()
	env := probe.Env{Log: slog.New(slog.DiscardHandler), Sink: metric.Discard{}, Clock: static.New(time.Millisecond, metric.Discard{})}
	k, err := NewKind(shared, o)
	if err != nil {
		t.Fatal(err)
	}
	var run *loadtest.Outcome
	err = l.Client.Do(func() (err error) {
		run, err = loadtesttest.RunKind(t.Context(), env, probeTarget(), shared, k, nil)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// punctual reports whether the sender sent all packets in time.
func punctual(run *loadtest.Outcome) bool {
	return !slices.ContainsFunc(run.Body.(*Result).Cells, func(m MeasuredCell) bool { return *m.Median.Underrun > 0.002 })
}
