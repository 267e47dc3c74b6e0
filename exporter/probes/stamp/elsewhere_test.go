package stamp

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/lightreason"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/reflector"
	"oneway.example/tests/await"
)

// repliesElsewhere is a peer whose replies come from another socket.
func repliesElsewhere(t *testing.T, from *net.UDPConn, reply func(q []byte) []byte) (peer string) {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for b := make([]byte, 1<<16); ; {
			n, to, err := conn.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			_, _ = from.WriteToUDPAddrPort(reply(b[:n]), to)
		}
	}()
	t.Cleanup(func() { conn.Close(); <-done })
	return conn.LocalAddr().String()
}

func socketAt(t *testing.T, ip string) *net.UDPConn {
	t.Helper()
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(ip)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// withSSID replies with the SSID of the request, withoutSSID as RFC 8762 and RFC 5357 do.
func withSSID(q []byte) []byte { return replyTo(q, binary.BigEndian.Uint32(q)) }

func withoutSSID(q []byte) []byte {
	a := withSSID(q)
	a[14], a[15] = 0, 0
	return a
}

// TestRepliesFromAnotherAddressAreNamed: from another address or port, of reflectors with and without SSID, to one path and
// to two.
func TestRepliesFromAnotherAddressAreNamed(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]func([]byte) []byte{"with SSID": withSSID, "without SSID": withoutSSID} {
		for _, ip := range []string{"127.0.0.1", "127.0.0.2"} {
			b := newTestbed(t, reflector.Options{})
			from := socketAt(t, ip)
			peer := repliesElsewhere(t, from, reply)
			o := quick()
			o.Interval, o.LossTimeout = 20*time.Millisecond, 200*time.Millisecond
			p, err := NewType().NewProber(b.env, probe.Target{Peer: peer}, o)
			if err != nil {
				t.Fatal(err)
			}
			r, err := p.Measure(t.Context(), 50, func(Report) {})
			want := "replies come from udp " + from.LocalAddr().String() + ", not from udp " + peer + "; make that the peer"
			if !errors.Is(err, probe.ErrNoReply) || !strings.Contains(err.Error(), want) || r.Discarded["wrong_peer"] == 0 || r.Failure != lightreason.Discarded {
				t.Errorf("%s, from %s: %v; discarded %v; want %q", name, ip, err, r.Discarded, want)
			}
		}
	}
}

// TestRepliesFromThePeerOfAnotherPathBlameItNot: the address of the replies is the peer of a second path, which is measured.
func TestRepliesFromThePeerOfAnotherPathBlameItNot(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, reflector.Options{})
	b.env.Sink = &metrictest.Sink{}
	second := socketAt(t, "127.0.0.2")
	go func() {
		for q := make([]byte, 1<<16); ; {
			n, to, err := second.ReadFromUDPAddrPort(q)
			if err != nil {
				return
			}
			_, _ = second.WriteToUDPAddrPort(withSSID(q[:n]), to)
		}
	}()
	kind, o := NewType(), quick()
	o.Interval, o.LossTimeout = 20*time.Millisecond, 200*time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	var made [2]*Prober
	for i, peer := range []string{repliesElsewhere(t, second, withSSID), second.LocalAddr().String()} {
		p, err := kind.NewProber(b.env, probe.Target{Path: string(rune('a' + i)), Probe: "stamp", Peer: peer}, o)
		if err != nil {
			t.Fatal(err)
		}
		made[i] = p
		go func() { ended <- p.Run(ctx) }()
	}
	await.That(t, "the first path names the address, and the second one is up", func() bool {
		return strings.Contains(made[0].Status().Reason, "replies come from udp "+second.LocalAddr().String()) && made[1].Status().Up
	})
	s := made[1].session.Load()
	s.mu.Lock()
	f := s.account.Faults()
	s.mu.Unlock()
	if n := f.Discarded; n != [len(n)]uint64{} {
		t.Errorf("the second path discards %v", n)
	}
	cancel()
	for range made {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestRepliesFromTwoPortsInTurnAreNoted: what comes from the other one is no packet of the session, and counts as lost in reverse.
func TestRepliesFromTwoPortsInTurnAreNoted(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, reflector.Options{})
	conn, from := socketAt(t, "127.0.0.1"), socketAt(t, "127.0.0.1")
	go func() {
		for i, q := 0, make([]byte, 1<<16); ; i++ {
			n, to, err := conn.ReadFromUDPAddrPort(q)
			if err != nil {
				return
			}
			_, _ = []*net.UDPConn{conn, from}[i%2].WriteToUDPAddrPort(withSSID(q[:n]), to)
		}
	}()
	o := quick()
	o.Interval, o.LossTimeout = 150*time.Millisecond, 200*time.Millisecond
	p, err := NewType().NewProber(b.env, probe.Target{Peer: conn.LocalAddr().String()}, o)
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Measure(t.Context(), 10, func(Report) {})
	want := "replies came from udp " + from.LocalAddr().String() + " too, not from udp " + conn.LocalAddr().String() + ": they count as lost in reverse"
	if err != nil || r.Discarded["wrong_peer"] == 0 || !slices.Contains(r.notes(), want) {
		t.Errorf("%v; discarded %v, notes %q; want %q", err, r.Discarded, r.notes(), want)
	}
}
