package abuse

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/exporter/net/wire/loadfmt"
	"oneway.example/tests/await"
)

// rawClient is a client whose test packets the test makes.
type rawClient struct {
	*testClient
	socket *net.UDPConn
}

// enterRaw is a visit that proves the address of the test's socket.
func (f *remoteEnd) enterRaw(bytes int64) rawClient {
	f.t.Helper()
	v, err := f.visit(bytes)
	if err != nil {
		f.t.Fatal(err)
	}
	socket, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(f.addr()))
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { socket.Close() })
	c := rawClient{v, socket}
	c.send(loadfmt.AppendHello(nil, v.Reply.Session, 0, nil))
	b := make([]byte, 2048)
	if err := socket.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		f.t.Fatal(err)
	}
	n, err := socket.Read(b)
	if err != nil {
		f.t.Fatal(err)
	}
	h, err := loadfmt.Parse(b[:n])
	if err != nil {
		f.t.Fatal(err)
	}
	if err := v.Prove(f.t.Context(), loadfmt.Cookie(b[:n], h)); err != nil {
		f.t.Fatal(err)
	}
	return c
}

func (c rawClient) send(b []byte) {
	c.f.t.Helper()
	if _, err := c.socket.Write(b); err != nil {
		c.f.t.Fatal(err)
	}
}

// settle waits until the load server has read all packets sent before: its socket is a queue, and it counts a hello of
// an unknown session.
func (c rawClient) settle() {
	c.f.t.Helper()
	before := c.f.r.Status().Discarded[stream.UnknownSession.String()]
	c.send(loadfmt.AppendHello(nil, c.Reply.Session^1, 0, nil))
	if !await.Within(20*time.Second, func() bool { return c.f.r.Status().Discarded[stream.UnknownSession.String()] > before }) {
		c.f.t.Fatal("the load server does not count a packet of an unknown session")
	}
}

// Packets from a client's address, of an attacker or of the client itself, neither fill the load server's memory nor
// use up the token's quota during a load test.
func TestInvalidPacketsAreNotPartOfATransfer(t *testing.T) {
	const burst, bursts, planned, bytes = 100, 200, 100, 500
	f := startLoadServer(t, loadcontrol.Limits{BytesPerDay: 1 << 30})
	c := f.enterRaw(1 << 20)
	forward := reverse(1, planned)
	forward.Direction, forward.Idle = sample.Forward, 20*time.Second
	if _, err := c.Start(t.Context(), forward); err != nil {
		t.Fatal(err)
	}
	before := heap()
	rng := seeded(t)
	for range bursts {
		for i := range burst {
			b := make([]byte, 1+rng.IntN(100))
			for at := range b {
				b[at] = byte(rng.Uint32())
			}
			switch i % 4 {
			case 0:
				b = b[:1]
			case 1: // with the magic number, so possibly a damaged test packet
				b = append([]byte("OWLD"), b...)
			}
			c.send(b)
		}
		c.settle()
	}
	if grown := int64(heap()) - int64(before); grown > 1<<20 {
		t.Errorf("the heap grew by %d bytes, above the limit", grown)
	}
	for seq := range uint32(planned) {
		b := make([]byte, bytes)
		loadfmt.Header{Type: loadfmt.Data, Session: c.Reply.Session, Transfer: 1, Seq: seq}.Fill(b)
		c.send(b)
	}
	if err := c.Sent(t.Context(), 1, planned); err != nil {
		t.Fatal(err)
	}
	finished, records, err := c.Wait(t.Context(), 1)
	if err != nil || finished.Error != "" {
		t.Fatalf("finished %+v, error %v", finished, err)
	}
	packets, err := stream.ParseReceived(records, stream.MaxPackets)
	if err != nil {
		t.Fatal(err)
	}
	intact := 0
	for _, p := range packets {
		if p.Damage == stream.Intact {
			intact++
		}
	}
	const maybeOurs = burst * bursts / 4
	got := f.r.Status()
	t.Logf("%d invalid datagrams: %d entries, %d without entry, %d ignored, %d bytes charged",
		burst*bursts, len(packets), finished.Received.Overflow, got.Discarded[stream.TooShort.String()]+got.Discarded[stream.Foreign.String()], got.Received)
	if intact != planned || len(packets) > planned+planned/64+1024 {
		t.Errorf("%d entries, %d intact; want %d intact, and at most 1024 and a few more", len(packets), intact, planned)
	}
	if n := uint64(len(packets)-planned) + finished.Received.Overflow; n != maybeOurs || finished.Received.CorruptPackets != maybeOurs {
		t.Errorf("%d damaged, %d of them with an entry or counted, want %d", finished.Received.CorruptPackets, n, maybeOurs)
	}
	if n := got.Discarded[stream.TooShort.String()] + got.Discarded[stream.Foreign.String()]; n != burst*bursts-maybeOurs {
		t.Errorf("ignored %d, want %d", n, burst*bursts-maybeOurs)
	}
	if got.Received != planned*bytes {
		t.Errorf("charged %d bytes, want %d", got.Received, planned*bytes)
	}
}

// streaming starts a stream to the client, and waits for its first packets.
func (c rawClient) streaming(packets int) {
	c.f.t.Helper()
	if _, err := c.Start(c.f.t.Context(), reverse(1, packets)); err != nil {
		c.f.t.Fatal(err)
	}
	for range 100 {
		c.next()
	}
}

// next waits for the next packet of a stream.
func (c rawClient) next() {
	c.f.t.Helper()
	if err := c.socket.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		c.f.t.Fatal(err)
	}
	if _, err := c.socket.Read(make([]byte, 2048)); err != nil {
		c.f.t.Fatal(err)
	}
}

// unknownPeerGreets sends hellos from another address than the client's for the given time.
func (c rawClient) unknownPeerGreets(hello []byte, lasts time.Duration) {
	c.f.t.Helper()
	socket, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(c.f.addr()))
	if err != nil {
		c.f.t.Fatal(err)
	}
	defer socket.Close()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for over := time.After(lasts); ; {
		select {
		case <-over:
			return
		case <-again.C:
		}
		if _, err := socket.Write(hello); err != nil {
			c.f.t.Fatal(err)
		}
	}
}

// A client that has lost its address and forges hellos from there has no cookie that was sent there since: its stream pauses after 30 s, and
// its session ends 10 s later. A client that returns the cookies keeps both.
func TestStreamEndsForHellosWithoutTheirCookies(t *testing.T) {
	const lasts = 45 * time.Second
	forger, honest := startLoadServer(t, loadcontrol.Limits{}).enterRaw(1<<30), startLoadServer(t, loadcontrol.Limits{}).enterRaw(1<<30)
	proved := instant.Now()
	slow := reverse(1, int(lasts/(20*time.Millisecond)))
	slow.Plan.Segments[0].Interval = 20 * time.Millisecond
	for _, c := range []rawClient{forger, honest} {
		if _, err := c.Start(t.Context(), slow); err != nil {
			t.Fatal(err)
		}
	}
	var running sync.WaitGroup
	defer running.Wait()
	over, stop := context.WithTimeout(t.Context(), 2*lasts)
	defer stop()
	greet := func(c rawClient, cookie func() []byte) {
		for ctxtime.Sleep(over, 500*time.Millisecond) { // a client sends two hellos a second, and no event asks for one (decision 9)
			_, _ = c.socket.Write(loadfmt.AppendHello(nil, c.Reply.Session, loadfmt.KeepAlive, cookie()))
		}
	}
	last := instant.Now() // of the forger's packets
	var newest atomic.Pointer[[]byte]
	running.Go(func() { greet(forger, func() []byte { return nil }) })
	running.Go(func() {
		greet(honest, func() []byte {
			if c := newest.Load(); c != nil {
				return *c
			}
			return nil
		})
	})
	receive := func(c rawClient, each func(b []byte, h loadfmt.Header)) {
		b := make([]byte, 2048)
		for over.Err() == nil {
			_ = c.socket.SetReadDeadline(time.Now().Add(time.Second))
			n, err := c.socket.Read(b)
			if h, bad := loadfmt.Parse(b[:n]); err == nil && bad == nil {
				each(b[:n], h)
			}
		}
	}
	running.Go(func() {
		receive(forger, func(_ []byte, h loadfmt.Header) {
			if h.Type == loadfmt.Data {
				last = instant.Now()
			}
		})
	})
	running.Go(func() {
		receive(honest, func(b []byte, h loadfmt.Header) {
			if h.Type == loadfmt.Challenge {
				c := bytes.Clone(loadfmt.Cookie(b, h))
				newest.Store(&c)
			}
		})
	})
	<-forger.Done()
	ended := instant.Now()
	finished, left, withheld := honest.sent()
	stop()
	running.Wait()
	t.Logf("the forger's last packet %v after its proof, its session's end after %v: %v; the honest client: %d packets, %d withheld", last.Sub(proved), ended.Sub(proved), forger.Err(), len(left), len(withheld))
	if after := last.Sub(proved); after < 25*time.Second || after > stream.CookieLasts+time.Second {
		t.Errorf("the last packet to the forger %v after its proof, want %v at most", after, stream.CookieLasts)
	}
	if after := ended.Sub(proved); after < 35*time.Second || after > lasts || !strings.Contains(forger.Err().Error(), "a queue hold them for longer") {
		t.Errorf("the forger's session ended after %v: %v; want 40 s and the cookie as the reason", after, forger.Err())
	}
	if finished.Error != "" || len(withheld) > 0 || len(left) != slow.Plan.Packets() {
		t.Errorf("the client that returns the cookies: error %q, %d packets, %d withheld; want %d", finished.Error, len(left), len(withheld), slow.Plan.Packets())
	}
}

// sent returns the end of the stream, and the packets of it that were sent and withheld.
func (c rawClient) sent() (finished *udptraffic.Finished, left, withheld []stream.SentPacket) {
	c.f.t.Helper()
	finished, records, err := c.Wait(c.f.t.Context(), 1)
	if err != nil {
		c.f.t.Fatal(err)
	}
	packets, err := stream.ParseSent(records, stream.MaxPackets)
	if err != nil {
		c.f.t.Fatal(err)
	}
	for _, p := range packets {
		if p.Stamp.Present() {
			left = append(left, p)
		} else {
			withheld = append(withheld, p)
		}
	}
	return finished, left, withheld
}

// A client's socket is closed while its connection stays: the ICMP errors for the packets stop the stream at once, and
// without hellos the session ends.
func TestStreamStopsForAClosedSocket(t *testing.T) {
	const planned = 20_000 // 20 s
	f := startLoadServer(t, loadcontrol.Limits{})
	c := f.enterRaw(1 << 30)
	c.streaming(planned)
	closed := time.Now()
	c.socket.Close()
	<-c.Done()
	took := time.Since(closed)
	if !await.Within(20*time.Second, func() bool { return f.r.Status().Sessions == 0 }) {
		t.Fatal("the session has not ended with its connection")
	}
	got := f.r.Status()
	t.Logf("sent %d bytes of %d, the session ended after %v", got.Sent, 500*planned, took)
	if got.Sent > 500*planned/4 || got.Ended["silent"] != 1 || took < 5*time.Second {
		t.Errorf("sent %d bytes of %d, sessions ended %v after %v; want few bytes before the errors, and the end as silent", got.Sent, 500*planned, got.Ended, took)
	}
}

// A stream is sent only while the client sends hellos, whatever its connection reports: its address may belong to
// another host by now. After the next hello the stream continues.
func TestStreamWaitsForTheNextHello(t *testing.T) {
	const planned, lasts = 9000, 3 * time.Second
	f := startLoadServer(t, loadcontrol.Limits{})
	c := f.enterRaw(1 << 30)
	c.streaming(planned)
	hello := loadfmt.AppendHello(nil, c.Reply.Session, loadfmt.KeepAlive, nil)
	for range 3 {
		c.send(hello)
	}
	silent := instant.Now()
	c.unknownPeerGreets(hello, lasts+2*time.Second) // no event reports the absence of packets
	again := instant.Now()
	for range 3 {
		c.send(hello)
	}
	finished, left, withheld := c.sent()
	early, blind, late := 0, 0, 0
	for _, p := range left {
		switch {
		case p.Stamp.At < silent.Add(lasts+time.Second):
			early++
		case p.Stamp.At < again:
			blind++
		default:
			late++
		}
	}
	t.Logf("sent %d packets, %d while the client sent no hello for more than %v, %d afterwards, withheld %d", len(left), blind, lasts, late, len(withheld))
	if finished.Error != "" || len(left)+len(withheld) != planned || len(withheld) < 500 || blind > 0 || early == 0 || late == 0 {
		t.Errorf("error %q: sent %d packets of %d, %d without hellos, %d afterwards, withheld %d", finished.Error, len(left), planned, blind, late, len(withheld))
	}
}
