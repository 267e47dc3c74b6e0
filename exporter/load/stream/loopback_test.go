package stream

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
)

const testSession = 0x0123456789abcdef

// ends are two running endpoints with a common session.
type ends struct {
	client, server *Endpoint
	here, there    *Session
}

func newEnds(tb testing.TB) ends {
	tb.Helper()
	return joined(running(tb, Options{Local: netip.MustParseAddrPort("127.0.0.1:0")}),
		running(tb, Options{Local: netip.MustParseAddrPort("127.0.0.1:0")}))
}

func joined(client, server *Endpoint) ends {
	return ends{client: client, server: server, here: client.Join(testSession), there: server.Join(testSession)}
}

// running returns an endpoint that runs until the end of the test.
func running(tb testing.TB, o Options) *Endpoint {
	tb.Helper()
	e, err := Open(o)
	if err != nil {
		tb.Fatal(err)
	}
	runs(tb, e)
	return e
}

func runs(tb testing.TB, e *Endpoint) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- e.Run(ctx) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			tb.Error(err)
		}
	})
}

// transfer sends a plan from one session to the other.
func transfer(tb testing.TB, from, to *Session, p Plan) (*Sent, *Received) {
	tb.Helper()
	r, err := to.Expect(1, p)
	if err != nil {
		tb.Fatal(err)
	}
	sent, err := from.Send(tb.Context(), 1, to.endpoint.LocalAddr(), p, SendOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	return sent, r.Finish(tb.Context(), len(sent.Packets)-sent.Refused, time.Second)
}

func TestStreamArrivesAsPlanned(t *testing.T) {
	e := newEnds(t)
	p := Plan{Segments: []Segment{
		{PayloadBytes: 500, Interval: time.Millisecond, Burst: 1, Bursts: 50},
		{Pause: 5 * time.Millisecond, PayloadBytes: 1472, Burst: 30, Bursts: 1},
		{Pause: 5 * time.Millisecond, PayloadBytes: HeaderBytes, Interval: 10 * time.Microsecond, Burst: 2, Bursts: 500},
	}}
	for _, way := range []struct {
		name     string
		from, to *Session
	}{{"forward", e.here, e.there}, {"reverse", e.there, e.here}} {
		t.Run(way.name, func(t *testing.T) {
			sent, received := transfer(t, way.from, way.to, p)
			if len(sent.Packets) != p.Packets() || sent.Planned != p.Packets() || sent.Refused != 0 {
				t.Errorf("%d of %d packets sent, %d refused; want %d", len(sent.Packets), sent.Planned, sent.Refused, p.Packets())
			}
			if len(received.Packets) != p.Packets() || received.CorruptPackets != 0 {
				t.Fatalf("%d packets arrived, %d of them damaged; want %d", len(received.Packets), received.CorruptPackets, p.Packets())
			}
			late := 0
			for i, r := range received.Packets {
				if int(r.Seq) != i {
					t.Fatalf("packet %d arrived as number %d", r.Seq, i)
				}
				s := sent.Packets[r.Seq]
				// If a stalled host reads a kernel transmit timestamp too late, the packet has the user
				// timestamp, with that origin.
				if s.Stamp.Origin == sample.User {
					late++
				} else if s.Stamp.Origin != sample.Kernel {
					t.Fatalf("packet %d: transmit timestamp of origin %v", r.Seq, s.Stamp.Origin)
				}
				if r.Stamp.Origin != sample.Kernel {
					t.Fatalf("packet %d: receive timestamp of origin %v, want the kernel's", r.Seq, r.Stamp.Origin)
				}
				if d := r.Stamp.At.Sub(s.Stamp.At); d < 0 || d > time.Second {
					t.Fatalf("packet %d: delay %v", r.Seq, d)
				}
				if s.Stamp.At < s.Due {
					t.Fatalf("packet %d was sent %v early", r.Seq, s.Due.Sub(s.Stamp.At))
				}
			}
			if late > p.Packets()/100 {
				t.Errorf("%d of %d packets have no transmit timestamp of the kernel", late, p.Packets())
			}
		})
	}
}

func TestHelloProvesItsSource(t *testing.T) {
	e := newEnds(t)
	cookie, err := e.here.Hello(t.Context(), e.server.LocalAddr())
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := e.there.Prove(cookie); !ok || got != e.client.LocalAddr() {
		t.Errorf("proven: %v, %v; want %v", got, ok, e.client.LocalAddr())
	}
	cookie[20] ^= 1
	if got, ok := e.there.Prove(cookie); ok {
		t.Errorf("a changed cookie proves %v", got)
	}
}
