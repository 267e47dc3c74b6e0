package abuse

import (
	"context"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"golang.org/x/net/ipv4"

	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/net/wire/timefmt"
	"oneway.example/exporter/reflector"
	"oneway.example/tests/await"
)

// site is a reflector under attack, with a peer that it knows from before.
type site struct {
	t        *testing.T
	r        *reflector.Reflector
	key      *stampfmt.Key // nil: unauthenticated
	attacker *attacker
	known    *peer
	heap     uint64
	before   reflector.Stats
	asked    uint64 // requests of the known peer during the flood
}

// mostHeapGrowth is the limit of heap growth by a flood: sessions and sources within their limits, and the test's own
// buffers.
const mostHeapGrowth = 8 << 20

func start(t *testing.T, o reflector.Options) *site {
	t.Helper()
	o.Listen = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}
	if o.RatePackets == 0 {
		o.RatePackets = -1 // the limit has its own tests
	}
	r, err := reflector.New(o, reflector.Env{Sink: metric.Discard{}, Clock: static.New(time.Millisecond, metric.Discard{})})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	<-r.Started()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	s := &site{t: t, r: r, attacker: newAttacker(t, r.Addrs()[0])}
	if len(o.Keys) > 0 {
		s.key = o.Keys[0].Clone()
	}
	s.known = newPeer(t, r.Addrs()[0])
	s.known.request(t, s.key)
	s.known.request(t, s.key) // repeats the reflector's Epoch: proven
	s.heap = heap()
	s.before = s.settled(2)
	return s
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// flood sends packets, and after each burst a request of the known peer, whose reply shows that the burst was
// processed: the socket is a queue.
func (s *site) flood(next func(i int) []byte, burst int) {
	s.t.Helper()
	for i := range packets {
		if err := s.attacker.send(next(i)); err != nil {
			s.t.Fatalf("packet %d: %v", i, err)
		}
		if i%burst == burst-1 {
			s.known.request(s.t, s.key)
			s.asked++
		}
	}
	s.known.request(s.t, s.key)
	s.asked++
	if grown := int64(heap()) - int64(s.heap); grown > mostHeapGrowth {
		s.t.Errorf("the heap grew by %d bytes, want at most %d", grown, mostHeapGrowth)
	}
}

// settled waits until the reflector has counted n packets: it counts a reply just after it is sent.
func (s *site) settled(n uint64) reflector.Stats {
	var now reflector.Stats
	await.Within(await.Timeout, func() bool { now = s.r.Stats(); return now.Packets() >= n })
	return now
}

// gained are the results of the flood's packets, without the known peer's.
func (s *site) gained() map[reflector.Result]uint64 {
	s.t.Helper()
	now := s.settled(s.before.Packets() + packets + s.asked)
	if lost := now.SocketDrops - s.before.SocketDrops; lost != 0 {
		s.t.Fatalf("the kernel dropped %d packets, want 0: the test's bursts exceed the socket's buffer", lost)
	}
	gained := map[reflector.Result]uint64{}
	for i := range now.Results {
		r := reflector.Result(i)
		if n := now.Results[r] - s.before.Results[r]; n > 0 {
			gained[r] = n
		}
	}
	if gained[reflector.Answered] -= s.asked; gained[reflector.Answered] == 0 {
		delete(gained, reflector.Answered)
	}
	return gained
}

func (s *site) expect(want map[reflector.Result]uint64) {
	s.t.Helper()
	got := s.gained()
	for i := range s.before.Results {
		r := reflector.Result(i)
		if got[r] != want[r] {
			s.t.Errorf("result %v: got %d, want %d", r, got[r], want[r])
		}
	}
}

// attacker sends from any loopback address, like a spoofer.
type attacker struct {
	packet *ipv4.PacketConn
	source ipv4.ControlMessage
	target net.Addr
}

func newAttacker(t *testing.T, target netip.AddrPort) *attacker {
	t.Helper()
	c, err := net.ListenPacket("udp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &attacker{packet: ipv4.NewPacketConn(c), target: net.UDPAddrFromAddrPort(target)}
}

func (a *attacker) from(ip netip.Addr) { a.source.Src = ip.AsSlice() }

func (a *attacker) send(b []byte) error {
	_, err := a.packet.WriteTo(b, &a.source, a.target)
	return err
}

// peer sends requests like the oneway sender and checks the replies.
type peer struct {
	conn   *net.UDPConn
	next   uint32
	epoch  uint32
	epochs int
	last   []byte
}

func newPeer(t *testing.T, to netip.AddrPort) *peer {
	t.Helper()
	c, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &peer{conn: c}
}

const knownRun = 4711

// request sends one request and fails the test without its reply.
func (p *peer) request(t *testing.T, key *stampfmt.Key) {
	t.Helper()
	b := build(p.next, knownRun, p.epoch, key)
	if _, err := p.conn.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := p.conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	reply := make([]byte, len(b)+1)
	n, err := p.conn.Read(reply)
	if err != nil {
		t.Fatalf("no reply to request %d of the known peer: %v", p.next, err)
	}
	reply = reply[:n]
	base := stampfmt.UnauthenticatedBytes
	if key != nil {
		base = stampfmt.AuthenticatedBytes
	}
	r := receiptOf(t, reply[base:])
	p.next++
	if n != len(b) || !r.Filled || r.Received != p.next || r.Lost != 0 || r.Corrupted != 0 {
		t.Fatalf("the known peer's reply %d of %d bytes has received %d lost %d corrupted %d",
			p.next, n, r.Received, r.Lost, r.Corrupted)
	}
	if r.Epoch != p.epoch {
		p.epoch = r.Epoch
		p.epochs++
	}
	p.last = reply
}

func receiptOf(t *testing.T, tlvs []byte) stampfmt.Receipt {
	t.Helper()
	for len(tlvs) > 0 {
		v, rest, err := stampfmt.NextTLV(tlvs)
		if err != nil {
			t.Fatal(err)
		}
		if v.Type == stampfmt.TypeReceipt {
			r, err := stampfmt.ParseReceipt(v.Value)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		tlvs = rest
	}
	t.Fatal("the reply has no Receipt")
	return stampfmt.Receipt{}
}

func newKey(secret string) *stampfmt.Key {
	return stampfmt.NewKey([]byte(secret + ": not a secret at all"))
}

// request is a request of the oneway sender before it has received a reply.
func request(seq, run uint32, key *stampfmt.Key) []byte { return build(seq, run, 0, key) }

func build(seq, run, epoch uint32, key *stampfmt.Key) []byte {
	p := stampfmt.SenderPacket{
		Seq: seq, T1: timefmt.NTP.Encode(instant.Now(), 0), SSID: 7,
		Error: timefmt.MakeErrorEstimate(time.Millisecond, true, timefmt.NTP),
	}
	b := make([]byte, 0, 256)
	if key != nil {
		b = p.AppendAuthenticatedTo(b, key)
	} else {
		b = p.AppendTo(b)
	}
	b = stampfmt.Receipt{Words: 4, Run: run, Epoch: epoch, Next: seq + 1}.AppendTo(b)
	if key == nil {
		stampfmt.SealCRC(b, false)
		return b
	}
	b = stampfmt.PutTLVHMAC(stampfmt.AppendTLVHMAC(b), stampfmt.AuthenticatedBytes, key)
	stampfmt.SealCRC(b, true)
	stampfmt.PutTLVHMAC(b, stampfmt.AuthenticatedBytes, key)
	stampfmt.PutHMAC(b, key)
	return b
}
