package stamp

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/net/wire/timefmt"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/reflector"
	"oneway.example/tests/await"
	"oneway.example/tests/testseed"
)

// peerFunc replies to one request with any number of packets.
type peerFunc func(request []byte) (replies [][]byte)

// fakePeer is a remote end for faults that no real reflector has.
func fakePeer(t *testing.T, f peerFunc) string {
	t.Helper()
	return fakePeerAt(t, netip.MustParseAddrPort("127.0.0.1:0"), f)
}

func fakePeerAt(t *testing.T, at netip.AddrPort, f peerFunc) string {
	t.Helper()
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 1<<16)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			for _, a := range f(b[:n]) {
				_, _ = conn.WriteToUDPAddrPort(a, from)
			}
		}
	}()
	t.Cleanup(func() { conn.Close(); <-done })
	return conn.LocalAddr().String()
}

// replyTo replies as RFC 8762 requires of a reflector that supports none of our TLVs.
func replyTo(q []byte, seq uint32) []byte {
	s, err := stampfmt.ParseSender(q)
	if err != nil {
		return nil
	}
	now := timefmt.NTP.Encode(instant.Now(), 0)
	a := stampfmt.ReflectorPacket{
		Seq: seq, T2: now, T3: now, Error: timefmt.MakeErrorEstimate(time.Microsecond, true, timefmt.NTP), SSID: s.SSID,
		SenderSeq: s.Seq, SenderT1: s.T1, SenderError: s.Error, SenderTTL: 255,
	}.AppendTo(nil)
	a = append(a, q[stampfmt.UnauthenticatedBytes:]...)
	for rest := a[stampfmt.UnauthenticatedBytes:]; len(rest) > 0; {
		v, after, err := stampfmt.NextTLV(rest)
		if err != nil {
			break
		}
		if v.Type != stampfmt.TypeExtraPadding {
			rest[0] |= stampfmt.FlagUnrecognized
		}
		rest = after
	}
	return a
}

func (b testbed) to(peer string) testbed { b.peer = peer; return b }

func TestStatelessForeignReflectorLeavesDirectionsUnknown(t *testing.T) {
	t.Parallel()
	n := 0
	peer := fakePeer(t, func(q []byte) [][]byte {
		n++
		if s, _ := stampfmt.ParseSender(q); s.Seq%10 == 3 {
			return nil
		}
		s, _ := stampfmt.ParseSender(q)
		return [][]byte{replyTo(q, s.Seq)}
	})
	r := newTestbed(t, reflector.Options{}).to(peer).measure(t, quick(), 50)
	if r.Reflector != "stateless" || r.RoundTrip.Received != 45 || r.RoundTrip.Lost != 5 {
		t.Fatal(asJSON(t, r))
	}
	if r.Forward.Lost != nil || r.Reverse.Lost != nil || *r.Forward.Received != 45 {
		t.Errorf("values that are unknown: %s", asJSON(t, r))
	}
	if r.Forward.Delay == nil || r.Reverse.Delay == nil {
		t.Errorf("no delays: %s", asJSON(t, r))
	}
}

func TestStatefulForeignReflectorTellsDirectionsApart(t *testing.T) {
	var sent uint32
	peer := fakePeer(t, func(q []byte) [][]byte {
		s, _ := stampfmt.ParseSender(q)
		if s.Seq%10 == 3 {
			return nil // lost forward
		}
		a := replyTo(q, sent)
		sent++
		if s.Seq%10 == 7 {
			return nil // lost in reverse
		}
		return [][]byte{a}
	})
	r := newTestbed(t, reflector.Options{}).to(peer).measure(t, quick(), 50)
	if r.Reflector != "stateful" || *r.Forward.Lost != 5 || *r.Reverse.Lost != 5 || *r.Forward.Received != 45 {
		t.Fatal(asJSON(t, r))
	}
}

func TestRepliesOfAWrongEchoAreNotTaken(t *testing.T) {
	t.Parallel()
	peer := fakePeer(t, func(q []byte) [][]byte {
		a := replyTo(q, 0)
		a[30] ^= 1 // T1
		return [][]byte{a}
	})
	p, err := NewType().NewProber(newTestbed(t, reflector.Options{}).env, probe.Target{Peer: peer}, quick())
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Measure(t.Context(), 20, func(Report) {})
	if !errors.Is(err, probe.ErrNoReply) || r.Discarded["bad_echo"] == 0 {
		t.Errorf("%v, %s", err, asJSON(t, r))
	}
}

func TestSilentPeerIsNamedWithWhatToDo(t *testing.T) {
	t.Parallel()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	closed := conn.LocalAddr().String()
	conn.Close()
	p, err := NewType().NewProber(newTestbed(t, reflector.Options{}).env, probe.Target{Peer: closed}, quick())
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Measure(t.Context(), 5, func(Report) {})
	if !errors.Is(err, probe.ErrNoReply) || !strings.Contains(r.Error, "refused") {
		t.Errorf("%v, %s", err, asJSON(t, r))
	}
}

// reflect runs a reflector until stop is called.
func (b testbed) reflect(t *testing.T, at netip.AddrPort) (addr netip.AddrPort, stop func()) {
	t.Helper()
	r, err := reflector.New(reflector.Options{Listen: []netip.AddrPort{at}}, reflector.Env{Log: b.env.Log, Sink: b.env.Sink, Clock: b.env.Clock})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	<-r.Started()
	return r.Addrs()[0], func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestRestartOfTheRemoteEndIsSeenAndTheBooksStayBalanced(t *testing.T) {
	b := newTestbed(t, reflector.Options{})
	at, stopFirst := b.reflect(t, netip.MustParseAddrPort("127.0.0.1:0"))
	p, err := NewType().NewProber(b.env, probe.Target{Peer: at.String()}, quick())
	if err != nil {
		t.Fatal(err)
	}
	stopSecond := func() {}
	ticks := 0
	o, err := p.Measure(t.Context(), 800, func(r Report) {
		if ticks++; ticks == 1 {
			stopFirst()
			_, stopSecond = b.reflect(t, at)
		}
	})
	defer func() { stopSecond() }()
	if err != nil {
		t.Fatal(err)
	}
	f, v := o.Forward, o.Reverse
	if *f.Sent != 800 || *f.Sent != *f.Received+*f.Lost+undecided(f)+*f.Outstanding || *v.Sent != *v.Received+*v.Lost+undecided(v)+*v.Outstanding {
		t.Errorf("%s\n%s", asJSON(t, f), asJSON(t, v))
	}
	if *f.Received < 700 || *f.Outstanding != 0 || *v.Outstanding != 0 {
		t.Errorf("%s\n%s", asJSON(t, f), asJSON(t, v))
	}
}

func TestFloodOfBadRepliesIsCountedAndCostsNothing(t *testing.T) {
	const each = 100_000
	b := newTestbed(t, reflector.Options{})
	p, err := NewType().NewProber(b.env, probe.Target{Path: "p", Probe: "stamp", Peer: b.peer}, quick())
	if err != nil {
		t.Fatal(err)
	}
	const want = 3*each + each/10
	var flooded atomic.Bool
	started := make(chan *hub, 1)
	// counted is how many bad packets the hub has read, and how many packets the kernel dropped at its socket.
	counted := func(h *hub) (n uint64) {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, one := range h.stray {
			n += one
		}
		return n + h.conn.Stats().Dropped
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		h := <-started
		flood(t, h.conn.LocalAddr(), each)
		// What the socket still holds when it is closed is not counted.
		flooded.Store(await.Within(await.Timeout, func() bool { return counted(h) >= want }))
	}()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	once := false
	var h *hub
	r, err := p.Measure(ctx, 0, func(Report) {
		if !once {
			once = true
			h = p.hubs.anyHub()
			started <- h
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	var after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&after)
	if !flooded.Load() {
		t.Fatalf("%d bad packets counted (%v by reason), %d sent", counted(h), h.stray, want)
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 16<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	// Packets dropped by the kernel may include replies of the known peer.
	if n := counted(h); n > want+r.RoundTrip.Lost+20 {
		t.Errorf("%d bad packets counted (%v by reason), %d sent", n, h.stray, want)
	}
	if r.RoundTrip.Received < 50 {
		t.Errorf("replies of the known peer lost: %s", asJSON(t, r))
	}
	for _, d := range []DirectionReport{r.Forward, r.Reverse} {
		if *d.Sent != *d.Received+*d.Lost+*d.HostDropped+undecided(d)+*d.Outstanding {
			t.Errorf("the counts do not add up: %s", asJSON(t, d))
		}
	}
}

// flood sends random, truncated, oversized and forged packets to a sender.
func flood(t *testing.T, at netip.AddrPort, each int) {
	conn, err := net.DialUDP("udp4", nil, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(at.Port())})
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	rng := rand.New(rand.NewPCG(testseed.Of(t), 2))
	forged := stampfmt.ReflectorPacket{Seq: 1, SSID: 1, SenderSeq: 1}.AppendTo(nil)
	big := bytes.Repeat([]byte{0xa5}, 9200)
	noise := make([]byte, 600)
	for i := range each {
		for j := 0; j < len(noise); j += 8 {
			noise[j] = byte(rng.Uint32())
		}
		_, _ = conn.Write(noise[:rng.IntN(len(noise))])
		_, _ = conn.Write(forged[:i%len(forged)])
		_, _ = conn.Write(forged)
		if i%10 == 0 {
			_, _ = conn.Write(big)
		}
	}
}

// bareReflector implements RFC 8762 alone: it returns no TLVs, and treats queries as test packets.
type bareReflector struct {
	stateful bool
	sent     uint32
	// lost returns whether a test packet is lost, forward or in reverse.
	lost func(seq uint32) (there, back bool)
}

func (b *bareReflector) reply(q []byte) [][]byte {
	s, err := stampfmt.ParseSender(q)
	if err != nil {
		return nil
	}
	there, back := false, false
	if !isStatsQuery(q) {
		there, back = b.lost(s.Seq)
	}
	if there {
		return nil
	}
	seq := s.Seq
	if b.stateful {
		seq = b.sent
	}
	b.sent++
	if back {
		return nil
	}
	return [][]byte{replyTo(q[:stampfmt.UnauthenticatedBytes], seq)}
}

func isStatsQuery(q []byte) bool {
	for rest := q[stampfmt.UnauthenticatedBytes:]; len(rest) > 0; {
		v, after, err := stampfmt.NextTLV(rest)
		if err != nil {
			return false
		}
		if r, err := stampfmt.ParseReceipt(v.Value); v.Type == stampfmt.TypeReceipt && err == nil {
			return r.StatsQuery
		}
		rest = after
	}
	return false
}

func TestReflectorWithoutTLVsRepliesToEveryPacket(t *testing.T) {
	none := func(uint32) (bool, bool) { return false, false }
	for _, stateful := range []bool{false, true} {
		remote := &bareReflector{stateful: stateful, lost: none}
		r := newTestbed(t, reflector.Options{}).to(fakePeer(t, remote.reply)).measure(t, quick(), 50)
		if r.RoundTrip.Received != 50 || r.RoundTrip.Lost != 0 || len(r.Discarded) > 0 {
			t.Errorf("stateful %v: %s", stateful, asJSON(t, r))
		}
	}
}

// TestLossesAtTheEndsOfARunAreToldApartToo: the first and the last packets are lost, so no reply to a test packet
// gives their count.
func TestLossesAtTheEndsOfARunAreToldApartToo(t *testing.T) {
	remote := &bareReflector{stateful: true, lost: func(seq uint32) (there, back bool) {
		return seq == 0 || seq == 49, seq == 1 || seq == 2 || seq == 47 || seq == 48
	}}
	r := newTestbed(t, reflector.Options{}).to(fakePeer(t, remote.reply)).measure(t, quick(), 50)
	f, v := r.Forward, r.Reverse
	if f.Lost == nil || *f.Lost != 2 || *f.Received != 48 || *v.Lost != 4 || *v.Sent != 48 || *v.Received != 44 {
		t.Errorf("forward %s\nreverse %s", asJSON(t, f), asJSON(t, v))
	}
}
