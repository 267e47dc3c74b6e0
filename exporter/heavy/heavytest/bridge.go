package heavytest

import (
	"context"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"oneway.example/exporter/control"
	"oneway.example/exporter/heavy"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/stream"
)

// End is one end of a Bridge: an address, and what runs a function where it is.
type End struct {
	Address netip.Addr
	Do      func(func() error) error
}

// Bridge carries streams over a network with the real sockets and their stamps but without
// control: both ends are in this process. It implements heavy.Carrier.
type Bridge struct {
	ends      [2]*stream.Session // client, server
	addresses [2]netip.AddrPort
	n         uint16
	idle      time.Duration
}

// NewBridge opens both ends until the test is over. idle is after which silence a packet
// that has not come is lost, at the least.
func NewBridge(t *testing.T, client, server End, idle time.Duration) *Bridge {
	t.Helper()
	b := &Bridge{idle: idle}
	for i, end := range []End{client, server} {
		var e *stream.Endpoint
		err := end.Do(func() (err error) {
			e, err = stream.Open(stream.Options{Local: netip.AddrPortFrom(end.Address, 0), Log: slog.New(slog.DiscardHandler)})
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
		const session = 7
		b.ends[i], b.addresses[i] = e.Join(session), e.LocalAddr()
	}
	return b
}

// Carry is heavy.Carrier.
func (b *Bridge) Carry(ctx context.Context, d sample.Direction, p stream.Plan, idle time.Duration, _ func(heavy.Progress)) (*heavy.Carried, error) {
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
	out.Received = reception.Finish(ctx, out.Packets, max(b.idle, idle))
	ok := control.Clock{Reason: sample.OK.String()}
	out.Near, out.Far = heavy.Clocks{Before: ok, After: ok}, heavy.Clocks{Before: ok, After: ok}
	return out, nil
}

var _ heavy.Carrier = (*Bridge)(nil)
