package stamp

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"oneway.example/exporter/reflector"
)

// TestDropsBeforeTheFirstTickCount: the sessions of a new socket start at once.
func TestDropsBeforeTheFirstTickCount(t *testing.T) {
	b := newTestbed(t, reflector.Options{})
	h, err := newHub(hubKey{local: netip.MustParseAddrPort("127.0.0.1:0")}, openCard, b.env)
	if err != nil {
		t.Fatal(err)
	}
	defer h.close(func() {})
	h.drops.Update(7, time.Second)
	if n := h.drops.Take(9, time.Second, time.Second); n != 7 {
		t.Errorf("%d losses attributed to 7 drops of a new socket, want 7", n)
	}
}

// TestPacketsThatTheReflectorsSocketDroppedAreNoLossOfThePath floods a reflector with a small socket buffer: its
// kernel drops packets of the measurement.
func TestPacketsThatTheReflectorsSocketDroppedAreNoLossOfThePath(t *testing.T) {
	b := newTestbed(t, reflector.Options{ReceiveBufferBytes: 8 << 10, RatePackets: -1})
	conn, err := net.Dial("udp4", b.peer)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var flooding sync.WaitGroup
	flooding.Go(func() {
		defer conn.Close()
		rubbish := make([]byte, 1200)
		for sent := 0; ctx.Err() == nil && sent < 3_000_000; sent++ {
			_, _ = conn.Write(rubbish)
		}
	})
	o := quick()
	o.LossTimeout = 300 * time.Millisecond
	r := b.measure(t, o, 500)
	stop()
	flooding.Wait()
	f := r.Forward
	t.Logf("%d sent, %d received, %d lost, %d dropped by the reflector's socket", *f.Sent, *f.Received, *f.Lost, *f.HostDropped)
	if *f.HostDropped == 0 || *f.Lost != 0 || *f.Sent != *f.Received+*f.HostDropped+*f.Outstanding {
		t.Errorf("%d sent, %d received, %d lost, %d dropped by the reflector's socket, %d outstanding; want no loss of the path", *f.Sent, *f.Received, *f.Lost, *f.HostDropped, *f.Outstanding)
	}
}
