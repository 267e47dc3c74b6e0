package loadserver

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/net/wire/timefmt"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/link"
	"oneway.example/tests/remoteend"
)

// request is an authenticated test packet without TLVs.
func request(seq uint32, key []byte) []byte {
	p := stampfmt.SenderPacket{Seq: seq, T1: timefmt.NTP.Encode(instant.Now(), 0), SSID: 1, Error: timefmt.MakeErrorEstimate(time.Millisecond, true, timefmt.NTP)}
	return p.AppendAuthenticatedTo(nil, stampfmt.NewKey(key))
}

// replies sends a packet from an address and returns the length of the reply; 0: none within the time.
func replies(t *testing.T, local string, port uint16, b []byte, within time.Duration) int {
	t.Helper()
	c := dialUDP(t, local, port)
	defer c.Close()
	return exchange(t, c, b, within)
}

func dialUDP(t *testing.T, local string, port uint16) *net.UDPConn {
	t.Helper()
	c, err := net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(local+":0")), net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port)))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func exchange(t *testing.T, c *net.UDPConn, b []byte, within time.Duration) int {
	t.Helper()
	if _, err := c.Write(b); err != nil {
		return 0 // the port is closed
	}
	_ = c.SetReadDeadline(time.Now().Add(within))
	n, _ := c.Read(make([]byte, 2*probe.LightBytes))
	return n
}

// silence is the time after which a packet has no reply.
const silence = 200 * time.Millisecond

// reflecting opens a session with a reflector for 26 kB.
func (s *site) reflecting(l *leased) (*loadcontrol.Client, loadcontrol.Reflecting) {
	s.t.Helper()
	c, _ := s.lease(l, 60_000)
	r, err := c.Reflect(s.t.Context(), loadcontrol.Reflect{Bytes: 26_000})
	if err != nil {
		s.t.Fatal(err)
	}
	return c, r
}

func TestReflectorRepliesToItsClientOnlyAndNotWithMore(t *testing.T) {
	ports := free(t, 1)
	s, l := lease(t, Options{Ports: ports}, "a")
	_, r := s.reflecting(l)
	if r.Port != ports.First {
		t.Errorf("port %d, want one of %v", r.Port, ports)
	}
	b := request(0, r.Key)
	if n := replies(t, "127.0.0.1", r.Port, b, remoteend.Timeout); n != len(b) {
		t.Errorf("%d bytes, want the %d of the request", n, len(b))
	}
	long := append(request(1, r.Key), make([]byte, probe.LightBytes)...)
	for name, n := range map[string]int{
		"another address":   replies(t, "127.0.0.2", r.Port, request(1, r.Key), silence),
		"another key":       replies(t, "127.0.0.1", r.Port, request(1, append(r.Key[1:], 1)), silence),
		"no authentication": replies(t, "127.0.0.1", r.Port, stampfmt.SenderPacket{Seq: 1}.AppendTo(nil), silence),
		"too long a packet": replies(t, "127.0.0.1", r.Port, long, silence),
	} {
		if n > 0 {
			t.Errorf("%s: a reply of %d bytes", name, n)
		}
	}
}

func TestReflectorRepliesOverIPv6(t *testing.T) {
	s, l := lease(t, Options{Listen: []netip.AddrPort{netip.MustParseAddrPort("[::1]:0")}}, "a")
	if err := s.links.SetLinks([]link.Options{{Name: DefaultLink, QuotaBytes: 100_000}}); err != nil {
		t.Fatal(err)
	}
	c, r := s.reflecting(l)
	conn, err := net.DialUDP("udp", nil, &net.UDPAddr{IP: net.IPv6loopback, Port: int(r.Port)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if n := exchange(t, conn, request(0, r.Key), remoteend.Timeout); n != stampfmt.AuthenticatedBytes {
		t.Errorf("%d bytes", n)
	}
	c.Close()
	remoteend.Eventually(t, "the session's end", func() bool { return s.r.Status().Ended["closed"] == 1 })
	if u := s.links.Usage(DefaultLink); u.Used != 2*(stampfmt.AuthenticatedBytes+48) {
		t.Errorf("%+v, want payload and headers of IPv6", u)
	}
}

func TestReflectorEndsWithItsSession(t *testing.T) {
	for name, end := range map[string]func(*site, *loadcontrol.Client){
		"closed":   func(_ *site, c *loadcontrol.Client) { c.Close() },
		"protocol": func(_ *site, c *loadcontrol.Client) { _ = c.SendMessage("wrong", 1) },
		"stopped":  func(s *site, _ *loadcontrol.Client) { s.stop() },
	} {
		t.Run(name, func(t *testing.T) {
			s, l := lease(t, Options{Ports: free(t, 1)}, "a")
			c, r := s.reflecting(l)
			end(s, c)
			// The port is free again: the reflector has closed its socket.
			remoteend.Eventually(t, "the reflector's end", func() bool {
				u, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(r.Port)})
				if err == nil {
					u.Close()
				}
				return err == nil
			})
		})
	}
}

func TestReflectedPacketsAreTakenFromTheAnnouncedBytesAndCharged(t *testing.T) {
	s, l := lease(t, Options{}, "a per-day=100kB")
	if err := s.links.SetLinks([]link.Options{{Name: DefaultLink, QuotaBytes: 100_000}}); err != nil {
		t.Fatal(err)
	}
	c, h := s.lease(l, 60_000)
	r, err := c.Reflect(t.Context(), loadcontrol.Reflect{Bytes: 26_000})
	if err != nil {
		t.Fatal(err)
	}
	if refusal := h.Take(8001); refusal == nil {
		t.Error("a transfer has taken bytes of the reflector")
	}
	if refusal := h.Take(8000); refusal != nil {
		t.Error(refusal)
	}
	conn := dialUDP(t, "127.0.0.1", r.Port)
	defer conn.Close()
	for seq := range uint32(10) {
		if exchange(t, conn, request(seq, r.Key), remoteend.Timeout) == 0 {
			t.Fatalf("no reply to packet %d", seq)
		}
	}
	c.Close()
	remoteend.Eventually(t, "the session's end", func() bool { return s.r.Status().Ended["closed"] == 1 })
	const each = stampfmt.AuthenticatedBytes
	if st := s.r.Status(); st.Received != 10*each || st.Sent != 10*each {
		t.Errorf("%d bytes received, %d sent; want those of 10 packets", st.Received, st.Sent)
	}
	if left := s.r.usage.Usage("a", 100_000).Left; left != 100_000-20*each {
		t.Errorf("%d bytes are left of the token's day", left)
	}
	if u := s.links.Usage(DefaultLink); u.Used != 20*(each+28) || u.Reserved != 0 {
		t.Errorf("%+v, want payload and headers", u)
	}
}

func TestReflectorRepliesToNoMoreThanWasAsked(t *testing.T) {
	s, l := lease(t, Options{}, "a")
	c, _ := s.lease(l, 60_000)
	r, err := c.Reflect(t.Context(), loadcontrol.Reflect{Bytes: 3*stampfmt.AuthenticatedBytes + 50})
	if err != nil {
		t.Fatal(err)
	}
	conn := dialUDP(t, "127.0.0.1", r.Port)
	defer conn.Close()
	for seq := range uint32(5) {
		within := remoteend.Timeout
		if seq >= 3 {
			within = silence
		}
		if n := exchange(t, conn, request(seq, r.Key), within); (n > 0) != (seq < 3) {
			t.Errorf("packet %d: reply of %d bytes", seq, n)
		}
	}
}

// What prevents a reflector is told to the client, and does not end the session.
func TestRefusedReflectorLeavesTheSession(t *testing.T) {
	taken, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.LocalAddr().(*net.UDPAddr).AddrPort().Port()
	s, l := lease(t, Options{Ports: option.Ports{First: port, Last: port}}, "a", "slow rate=16kbit")
	c, h := s.lease(l, 60_000)
	for bytes, want := range map[int64]loadcontrol.Reason{0: loadcontrol.BadRequest, 30_001: loadcontrol.BadRequest, 1 << 62: loadcontrol.BadRequest, 30_000: loadcontrol.TooMany} {
		_, err := c.Reflect(t.Context(), loadcontrol.Reflect{Bytes: bytes})
		if r := remoteend.Refusal(t, err); r.Reason != want {
			t.Errorf("%d bytes: %v, want %s", bytes, r, want)
		}
	}
	for range reflectRequests {
		_, err = c.Reflect(t.Context(), loadcontrol.Reflect{Bytes: 30_000})
	}
	if r := remoteend.Refusal(t, err); r.Reason != loadcontrol.BadRequest || !strings.Contains(r.Detail, "has asked 8 times") {
		t.Errorf("further requests: %v", r)
	}
	if refusal := h.Take(60_000); refusal != nil {
		t.Errorf("the refused reflector has kept bytes: %v", refusal)
	}
	if c.Err() != nil {
		t.Error(c.Err())
	}
}

func TestSecondReflectorAndOneForALowRateAreRefused(t *testing.T) {
	s, l := lease(t, Options{}, "a", "slow rate=16kbit")
	c, _ := s.reflecting(l)
	_, err := c.Reflect(t.Context(), loadcontrol.Reflect{Bytes: 1})
	if r := remoteend.Refusal(t, err); r.Reason != loadcontrol.BadRequest {
		t.Error(r)
	}
	c.Close()
	remoteend.Eventually(t, "the session's end", func() bool { return s.r.Status().Ended["closed"] == 1 })
	s.tokens["a"] = s.tokens["slow"]
	c, _ = s.lease(l, 60_000)
	_, err = c.Reflect(t.Context(), loadcontrol.Reflect{Bytes: 1})
	if r := remoteend.Refusal(t, err); r.Reason != loadcontrol.RateLimit {
		t.Error(r)
	}
}

// At the highest rate that a token gives, two packets of adjacent intervals may follow each other at once, and the sender queries its counts
// each second. What the reflector rejects, the client counts as lost on the path.
func TestReflectorAcceptsItsClientsRateWithQueries(t *testing.T) {
	s, l := lease(t, Options{}, "a", "slow rate=60kbit")
	s.tokens["a"] = s.tokens["slow"]
	_, r := s.reflecting(l)
	c := dialUDP(t, "127.0.0.1", r.Port)
	defer c.Close()
	begin := time.Now()
	for seq := range uint32(8) {
		time.Sleep(time.Until(begin.Add(time.Duration(seq/2) * time.Second))) // the sender's schedule, two packets and a query each second: the reflector limits rates of real time
		for range 2 - seq%2 {
			if n := exchange(t, c, request(seq, r.Key), remoteend.Timeout); n == 0 {
				t.Fatalf("packet %d after %v: no reply", seq, time.Since(begin).Round(time.Millisecond))
			}
		}
	}
}
