package stream

import (
	"net/netip"
	"testing"
	"unsafe"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/wire/loadfmt"
)

func TestPacketTakesFewBytesOfMemory(t *testing.T) {
	if s, r := unsafe.Sizeof(SentPacket{}), unsafe.Sizeof(ReceivedPacket{}); s > 48 || r > 48 {
		t.Errorf("%d bytes per packet sent, %d per packet received", s, r)
	}
}

func TestReceiveAllocatesNothingPerPacket(t *testing.T) {
	e, err := Open(Options{Local: netip.MustParseAddrPort("127.0.0.1:0")})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	r, err := e.Join(testSession).Expect(1, Plan{Segments: []Segment{{PayloadBytes: 300, Burst: 1, Bursts: 10_000}}})
	if err != nil {
		t.Fatal(err)
	}
	rx := newReceiver(e)
	from := netip.MustParseAddrPort("127.0.0.1:9")
	packet := dataPacket(testSession, 1, 5, 300)
	deliver := func(b []byte) {
		in := rx.batch.In[:1]
		in[0].Payload, in[0].Peer, in[0].Stamp = b, from, sample.Stamp{At: 1, Origin: sample.Kernel}
		rx.batch.In = in
		rx.take()
	}
	damaged := append([]byte(nil), packet...)
	damaged[9] ^= 1
	for name, b := range map[string][]byte{
		"a packet": packet, "an unknown session's": dataPacket(99, 1, 1, 300), "an unknown session's hello": loadfmt.AppendHello(nil, 99, 0, nil),
		"a damaged one": damaged, "a foreign one": make([]byte, 300), "an empty one": {},
	} {
		if n := testing.AllocsPerRun(1000, func() { deliver(b) }); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	if p := r.Progress(); p.Packets != 1 || p.Bytes != 300 {
		t.Errorf("%+v", p)
	}
}

func TestSendAllocatesNothingPerPacket(t *testing.T) {
	e := newEnds(t)
	for name, p := range map[string]Plan{
		"stamped":   {Segments: []Segment{{PayloadBytes: 1000, Burst: 1, Bursts: 100_000}}},
		"unstamped": {Unstamped: true, Segments: []Segment{{PayloadBytes: 1000, Burst: 1, Bursts: 100_000}}},
	} {
		x := newSending(e.here, 1, e.server.LocalAddr(), p, func() {})
		if !x.register() {
			t.Fatal("not registered")
		}
		x.cursor = newCursor(p, 1)
		spaces := x.spaces
		x.spaces = spaces[:min(8, len(spaces))]
		if n := testing.AllocsPerRun(100, func() {
			x.readClock()
			x.prepare(x.wallAt)
			if n, wait := x.offer(); n == 0 && !wait {
				t.Fatal("no packet was sent")
			}
			x.collect()
		}); n >= 1 {
			t.Errorf("%s: %v allocations per batch", name, n)
		}
		x.unregister()
	}
}
