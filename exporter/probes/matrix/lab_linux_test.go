package matrix

import (
	"context"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"oneway.example/exporter/control"
	"oneway.example/exporter/heavy"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/stream"
	"oneway.example/tests/lab"
)

func TestMain(m *testing.M) { os.Exit(lab.Main(m.Run)) }

// bridge carries streams over an emulated link, with the real sockets and their stamps but
// without control: both ends are in this process. It implements heavy.Carrier.
type bridge struct {
	ends      [2]*stream.Session // client, server
	addresses [2]netip.AddrPort
	n         uint16
	idle      time.Duration // until what has not come is lost
}

// build opens both ends, each on an address of its host.
func (b *bridge) build(t *testing.T, l *lab.Lab, address func(*lab.Host) netip.Addr) {
	t.Helper()
	for i, h := range []*lab.Host{l.Client, l.Server} {
		at := netip.AddrPortFrom(address(h), 0)
		var e *stream.Endpoint
		err := h.Do(func() (err error) {
			e, err = stream.Open(stream.Options{Local: at, Log: slog.New(slog.DiscardHandler)})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- e.Run(context.Background()) }()
		t.Cleanup(func() {
			e.Close()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
		b.ends[i], b.addresses[i] = e.Join(7), e.LocalAddr()
	}
}

// Carry is heavy.Carrier.
func (b *bridge) Carry(ctx context.Context, d sample.Direction, p stream.Plan, _ time.Duration, _ func(heavy.Progress)) (*heavy.Carried, error) {
	b.n++
	from, to := 0, 1
	if d == sample.Reverse {
		from, to = 1, 0
	}
	reception, err := b.ends[to].Expect(b.n, p)
	if err != nil {
		return nil, err
	}
	out := &heavy.Carried{}
	out.Sent, err = b.ends[from].Send(ctx, b.n, b.addresses[to], p, nil)
	if err != nil {
		return nil, err
	}
	for _, one := range out.Sent.Packets {
		if one.Stamp.Present() {
			out.Packets++
		}
	}
	out.PayloadBytes = p.Bytes()
	out.Received = reception.Finish(ctx, out.Packets, b.idle)
	ok := control.Clock{Reason: "ok"}
	out.Near, out.Far = heavy.Clocks{Before: ok, After: ok}, heavy.Clocks{Before: ok, After: ok}
	return out, nil
}

// TestCellsOfTheEmulatedLinkAreThoseOfItsRate is the probe over the thesis' link: what is
// offered below its rate comes through, and of what is above, as much as its rate.
func TestCellsOfTheEmulatedLinkAreThoseOfItsRate(t *testing.T) {
	profile, err := lab.LoadProfile("wibro")
	if err != nil {
		t.Fatal(err)
	}
	l := lab.Start(t, lab.Options{Profile: profile, Seed: 1})
	b := &bridge{idle: 500 * time.Millisecond}
	b.build(t, l, func(h *lab.Host) netip.Addr { return h.Addr4 })
	o := DefaultOptions()
	o.PacketBytes, o.PacketRates = []int{128, 1500}, []int{100, 1000}
	o.CellDuration, o.Seed = 1500*time.Millisecond, 3
	run := measure(t, b, o)
	for range 2 {
		if punctual(run) {
			break
		}
		t.Log("the sender was held up by a busy host; once more")
		run = measure(t, b, o)
	}
	rate := float64(profile.Forward.Rate) / 8
	for _, m := range run.Body.(*Result).Cells {
		t.Logf("%v: sent %s, received %s, loss %.3f, delay %.1f ms +- %.3f ms, jitter %.3f ms, shortfall %.3f", m.Cell,
			heavy.Rate(*m.Median.Sent).Words(), heavy.Rate(*m.Median.Received).Words(), *m.Median.Loss,
			1e3**m.Median.Delay, 1e3**m.Median.Bound, 1e3**m.Median.Jitter, *m.Median.Shortfall)
		offered := float64(m.PacketBytes * m.PacketRate)
		near(t, m.String()+": received", *m.Median.Received, min(offered, rate), 0.1) // a host that stands still is in it
		if saturated := offered > rate; saturated != (*m.Median.Loss > 0.1) {
			t.Errorf("%v: loss %v", m.Cell, *m.Median.Loss)
		}
		// The queue of 110 kB takes 352 ms to drain; it fills in the first 100 ms.
		full := profile.Forward.Delay.Seconds()
		if offered > rate {
			full += 110_000 / rate
		}
		near(t, m.String()+": delay", *m.Median.Delay, full, 0.1)
	}
}

// measure runs the probe in forward direction.
func measure(t *testing.T, b *bridge, o Options) *heavy.Run {
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
