package stream

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/net/sched"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/loadfmt"
	"oneway.example/tests/await"
)

const testLimit = 20 * time.Second // of waits of milliseconds; the host may be busy

// unknownPeer is a socket that sends arbitrary packets.
type unknownPeer struct {
	tb   testing.TB
	conn *net.UDPConn
	to   netip.AddrPort
}

func newUnknownPeer(tb testing.TB, to netip.AddrPort) unknownPeer {
	tb.Helper()
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(to.Addr(), 0)))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { c.Close() })
	return unknownPeer{tb, c, to}
}

func (s unknownPeer) send(b []byte) {
	s.tb.Helper()
	if _, err := s.conn.WriteToUDPAddrPort(b, s.to); err != nil {
		s.tb.Fatal(err)
	}
}

func (s unknownPeer) receive() []byte {
	s.tb.Helper()
	b := make([]byte, 2000)
	_ = s.conn.SetReadDeadline(time.Now().Add(testLimit))
	n, _, err := s.conn.ReadFromUDPAddrPort(b)
	if err != nil {
		s.tb.Fatal(err)
	}
	return b[:n]
}

func dataPacket(session uint64, transfer uint16, seq uint32, n int) []byte {
	b := make([]byte, n)
	loadfmt.Header{Type: loadfmt.Data, Session: session, Transfer: transfer, Seq: seq}.Fill(b)
	return b
}

func TestUnknownPeersAreCountedAndGetNoReply(t *testing.T) {
	server := running(t, Options{Local: netip.MustParseAddrPort("127.0.0.1:0")})
	session := server.Join(testSession)
	r, err := session.Expect(1, Plan{Segments: []Segment{{PayloadBytes: 100, Burst: 1, Bursts: 3}}})
	if err != nil {
		t.Fatal(err)
	}
	s := newUnknownPeer(t, server.LocalAddr())
	newer := loadfmt.AppendHello(nil, testSession+1, 0, nil)
	newer[4] = 2<<4 | byte(loadfmt.Hello)
	damaged := loadfmt.AppendHello(nil, 1, 0, nil)
	damaged[9] ^= 1
	short := loadfmt.Header{Type: loadfmt.Hello, Session: testSession, PayloadBytes: 32}.AppendTo(nil)
	odd := loadfmt.Header{Type: 9, Session: testSession, PayloadBytes: 32}.AppendTo(nil)
	for _, b := range [][]byte{
		nil, []byte("OWLD"), bytes.Repeat([]byte{'x'}, 100), newer, damaged, short, odd,
		loadfmt.AppendHello(nil, testSession+1, 0, nil), dataPacket(testSession+1, 1, 0, 100),
		dataPacket(testSession, 2, 0, 100), dataPacket(testSession, 1, 3, 100),
		loadfmt.AppendChallenge(nil, testSession+1, 0, []byte("cookie")), loadfmt.AppendChallenge(nil, testSession, 0, nil)[:33-1],
		loadfmt.AppendHello(nil, testSession, loadfmt.KeepAlive, nil),
	} {
		s.send(b)
	}
	s.send(loadfmt.AppendHello(nil, testSession, 0, nil)) // the one with a reply
	if h, err := loadfmt.Parse(s.receive()); err != nil || h.Type != loadfmt.Challenge || h.Session != testSession {
		t.Errorf("the first reply is %+v, %v", h, err)
	}
	await.That(t, "the reply is counted", func() bool { return server.Stats().Challenges > 0 })
	got := server.Stats()
	var want [Reasons]uint64
	want[TooShort], want[Foreign], want[DamagedHeader] = 2, 2, 1
	want[UnknownSession], want[UnknownTransfer], want[BeyondPlan] = 3, 1, 1
	want[BadHello], want[UnknownType] = 1, 1
	if got.Ignored != want || got.Hellos != 3 || got.Challenges != 1 {
		t.Errorf("%d hellos, %d challenges, ignored (-want +got):\n%s", got.Hellos, got.Challenges, cmp.Diff(want, got.Ignored))
	}
	if got := r.Finish(t.Context(), 0, time.Hour); len(got.Packets) != 0 {
		t.Errorf("%d packets of unknown peers were accepted", len(got.Packets))
	}
}

func TestChallengesOfASessionAreFew(t *testing.T) {
	server := running(t, Options{Local: netip.MustParseAddrPort("127.0.0.1:0")})
	server.Join(testSession)
	s := newUnknownPeer(t, server.LocalAddr())
	const hellos = 300
	begin := time.Now()
	for range hellos {
		s.send(loadfmt.AppendHello(nil, testSession, 0, nil))
	}
	await.That(t, "all hellos have been read", func() bool {
		s := server.Stats()
		return s.Challenges+s.Ignored[HelloTooOften] == hellos
	})
	got, most := server.Stats(), 5+uint64(time.Since(begin).Seconds()*20)+1
	if got.Challenges > most || got.Challenges+got.Ignored[HelloTooOften] != hellos {
		t.Errorf("%d of %d hellos had a reply in %v, %d ignored; want at most %d", got.Challenges, hellos, time.Since(begin), got.Ignored[HelloTooOften], most)
	}
	if len(s.receive()) > loadfmt.HelloBytes {
		t.Error("a challenge is longer than its hello")
	}
	flooded, challenges := server.Join(testSession+1), 0
	for at := begin; at.Before(begin.Add(10 * time.Second)); at = at.Add(time.Millisecond) {
		if flooded.limit.AllowN(at, 1) {
			challenges++
		}
	}
	if challenges < 200 || challenges > 5+10*20 {
		t.Errorf("%d challenges in 10 s of a hello each millisecond, want 20 a second and 5 at once", challenges)
	}
}

func TestCookieProvesNothingElse(t *testing.T) {
	for _, local := range []string{"127.0.0.1:0", "[::1]:0"} {
		e := joined(running(t, Options{Local: netip.MustParseAddrPort(local)}), running(t, Options{Local: netip.MustParseAddrPort(local)}))
		cookie, err := e.here.Hello(t.Context(), e.server.LocalAddr())
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := e.there.Prove(cookie); !ok || got != e.client.LocalAddr() {
			t.Errorf("proven: %v, %v; want %v", got, ok, e.client.LocalAddr())
		}
		for i := range cookie {
			c := bytes.Clone(cookie)
			c[i] ^= 0x10
			if got, ok := e.there.Prove(c); ok {
				t.Errorf("byte %d changed: the cookie proves %v", i, got)
			}
			if got, ok := e.there.Prove(cookie[:i]); ok {
				t.Errorf("%d bytes prove %v", i, got)
			}
		}
		if got, ok := e.server.Join(testSession + 1).Prove(cookie); ok {
			t.Errorf("another session's cookie proves %v", got)
		}
		if got, ok := e.client.Join(testSession).Prove(cookie); ok {
			t.Errorf("another endpoint's cookie proves %v", got)
		}
	}
}

func TestHelloThatIsRejectedNamesTheICMPMessage(t *testing.T) {
	client := running(t, Options{Local: netip.MustParseAddrPort("127.0.0.1:0")})
	closed := newUnknownPeer(t, client.LocalAddr())
	at := closed.conn.LocalAddr().(*net.UDPAddr).AddrPort()
	closed.conn.Close()
	_, err := client.Join(testSession).Hello(t.Context(), at)
	if e, ok := errors.AsType[tstamp.ICMPError](err); !ok || e.Meaning() != "port unreachable" || e.Peer != at || !errors.Is(err, ErrNoReply) {
		t.Errorf("%v, want the ICMP message and ErrNoReply", err)
	}
}

func TestHelloWithoutAReplyTimesOut(t *testing.T) {
	client := running(t, Options{Local: netip.MustParseAddrPort("127.0.0.1:0")})
	s := newUnknownPeer(t, client.LocalAddr()) // receives, and sends nothing
	begin := time.Now()
	_, err := client.Join(testSession).Hello(t.Context(), s.conn.LocalAddr().(*net.UDPAddr).AddrPort())
	if !errors.Is(err, ErrNoReply) || time.Since(begin) < helloTimeout {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
	for range 10 {
		if h, err := loadfmt.Parse(s.receive()); err != nil || h.Type != loadfmt.Hello {
			t.Errorf("%+v, %v", h, err)
		}
	}
}

func TestDamageIsReportedWithASample(t *testing.T) {
	server := running(t, Options{Local: netip.MustParseAddrPort("127.0.0.1:0")})
	session := server.Join(testSession)
	s := newUnknownPeer(t, server.LocalAddr())
	s.send(loadfmt.AppendHello(nil, testSession, 0, nil)) // sets the peer's address
	s.receive()
	r, err := session.Expect(1, Plan{NoChecksum: true, Segments: []Segment{{PayloadBytes: 600, Burst: 1, Bursts: 100}}})
	if err != nil {
		t.Fatal(err)
	}
	packet := func(seq uint32) []byte { return dataPacket(testSession, 1, seq, 600) }
	bits, header, foreign := packet(3), packet(4), packet(5)
	bits[400] ^= 4
	header[9], foreign[0] = ^header[9], 'X'
	overwritten := packet(2)
	copy(overwritten[300:], make([]byte, 300))
	for _, b := range [][]byte{packet(0), packet(1)[:500], overwritten, bits, header, foreign, packet(0), packet(0)[:20]} {
		s.send(b)
	}
	await.That(t, "all packets arrive", func() bool { return server.Stats().Accepted == 8 })
	got := r.Finish(t.Context(), 4, time.Hour) // four different packets with valid headers
	var damage []Damage
	for _, p := range got.Packets {
		damage = append(damage, p.Damage)
	}
	want := []Damage{Intact, Truncated, Overwritten, BitErrors, BadHeader, BadHeader, Intact, BadHeader}
	if !cmp.Equal(damage, want) || got.CorruptPackets != 6 || len(got.Corrupt) != 6 {
		t.Fatalf("%v, %d damaged; want %v", damage, got.CorruptPackets, want)
	}
	if c := got.Corrupt[1]; c.Damage != "overwritten" || c.Seq != 2 || c.WantBytes != 600 || c.First < 300 || c.First > 302 ||
		!bytes.Equal(c.Want, packet(2)[c.First:c.First+CorruptBytes]) || !bytes.Equal(c.Got, make([]byte, CorruptBytes)) {
		t.Errorf("%+v", c)
	}
	if c := got.Corrupt[2]; c.Damage != "bit_errors" || c.First != 400 || c.Differing != 1 || c.Got[0] != c.Want[0]^4 {
		t.Errorf("%+v", c)
	}
	if c := got.Corrupt[0]; c.Damage != "truncated" || c.PayloadBytes != 500 || c.First != 500 || len(c.Got) != 0 || len(c.Want) != 100 {
		t.Errorf("%+v", c)
	}
}

// An old cookie does not prove that its address still receives.
func TestCookieIsValidFor30Seconds(t *testing.T) {
	e := newEnds(t)
	now := sched.Now()
	cookie := e.there.appendCookie(nil, e.client.LocalAddr(), now)
	for after, want := range map[time.Duration]bool{0: true, CookieLasts: true, CookieLasts + 1: false, time.Hour: false} {
		if _, _, ok := e.there.proven(cookie, now+after); ok != want {
			t.Errorf("after %v: proves %v, want %v", after, ok, want)
		}
	}
}

// A hello renews the proof of its address with a cookie that was sent there since, and with nothing else.
func TestHelloRenewsTheProofWithALaterCookieOnly(t *testing.T) {
	e := newEnds(t)
	at, start := e.client.LocalAddr(), sched.Now()
	later := start - CookieLasts/2
	cookie := func(a netip.AddrPort, sent monotonic) []byte { return e.there.appendCookie(nil, a, sent) }
	if _, ok := e.there.LastProof(); ok {
		t.Error("a proof before Prove")
	}
	if _, ok := e.there.Prove(cookie(at, start-CookieLasts+10*time.Second)); !ok {
		t.Fatal("the cookie does not prove its address")
	}
	first := e.there.proof.Load()
	other := running(t, Options{Local: netip.MustParseAddrPort("127.0.0.1:0")})
	forged := cookie(at, later)
	forged[macBytes+1]++
	for _, c := range []struct {
		name   string
		from   *Endpoint
		cookie []byte
		renews bool
	}{
		{"no cookie", e.client, nil, false},
		{"a forged time", e.client, forged, false},
		{"the cookie of another address", e.client, cookie(other.LocalAddr(), later), false},
		{"another address with its own cookie", other, cookie(other.LocalAddr(), later), false},
		{"another address with the proved one's", other, cookie(at, later), false},
		{"an expired one", e.client, cookie(at, start-2*CookieLasts), false},
		{"a later one", e.client, cookie(at, later), true},
		{"an earlier one after it", e.client, cookie(at, later-time.Second), true},
	} {
		s := c.from.Join(testSession)
		s.offered.Store(&offer{c.cookie, start})
		before := e.server.Stats().Hellos
		if err := s.KeepAlive(e.server.LocalAddr()); err != nil {
			t.Fatal(err)
		}
		await.That(t, "the hello arrives", func() bool { return e.server.Stats().Hellos > before })
		want := first
		if c.renews {
			want = int64(later)
		}
		if got := e.there.proof.Load(); got != want {
			t.Errorf("%s: the proof is %v older than the first one, want renewed: %v", c.name, time.Duration(got-first), c.renews)
		}
	}
}

func TestOfferedCookieIsReturned(t *testing.T) {
	e := newEnds(t)
	cookie, err := e.here.Hello(t.Context(), e.server.LocalAddr())
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := e.there.Prove(cookie); !ok {
		t.Fatal("the cookie does not prove its address")
	}
	before := e.there.proof.Load()
	if _, ok := e.here.LastOffered(); ok {
		t.Error("the reply to a hello is an offer")
	}
	if err := e.there.Offer(e.client.LocalAddr()); err != nil {
		t.Fatal(err)
	}
	await.That(t, "the offer arrives", func() bool { _, ok := e.here.LastOffered(); return ok })
	if err := e.here.KeepAlive(e.server.LocalAddr()); err != nil {
		t.Fatal(err)
	}
	await.That(t, "the proof is renewed", func() bool { return e.there.proof.Load() > before })
	if _, ok := e.there.Prove(cookie); ok {
		t.Error("a cookie that is not later than the last one proves its address")
	}
	// An echo service at the proved address is no client.
	renewed, ignored := e.there.proof.Load(), e.server.Stats().Ignored[BadHello]
	echo := loadfmt.AppendChallenge(nil, testSession, loadfmt.Unrequested, e.there.appendCookie(nil, e.client.LocalAddr(), sched.Now()))
	if err := e.here.send(e.server.LocalAddr(), echo); err != nil {
		t.Fatal(err)
	}
	await.That(t, "the echo is ignored", func() bool { return e.server.Stats().Ignored[BadHello] > ignored })
	if _, ok := e.there.LastOffered(); ok || e.there.proof.Load() != renewed {
		t.Error("an echo of an offer is an offer, or a proof")
	}
}
