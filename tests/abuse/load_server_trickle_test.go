package abuse

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/tests/await"
)

// loopbacks are addresses of both families.
var loopbacks = []string{"127.0.0.1", "::1"}

// trickling writes byte by byte, at a fixed interval.
type trickling struct {
	net.Conn
	every time.Duration
}

// Write is io.Writer.
func (d trickling) Write(b []byte) (n int, err error) {
	for n = range b {
		if _, err = d.Conn.Write(b[n : n+1]); err != nil {
			return n, err
		}
		time.Sleep(d.every) // the attacker is slow; no assertion depends on this time
	}
	return len(b), nil
}

// A client that sends its request byte by byte, before or after authentication, is disconnected, however many
// connections do so; others are served meanwhile.
func TestTricklingClientsAreDisconnectedAndOthersServed(t *testing.T) {
	const each = 40
	frame := func(f *remoteEnd) net.Conn { return f.freeClient().conn } // authenticated, without an open session
	for _, at := range loopbacks {
		for name, trickle := range map[string]func(f *remoteEnd) func() error{
			"a TLS handshake": func(f *remoteEnd) func() error {
				c := f.unknownPeer()
				return func() error { return tls.Client(trickling{c, 100 * time.Millisecond}, insecure).Handshake() }
			},
			"a request": func(f *remoteEnd) func() error {
				c := tls.Client(f.unknownPeer(), insecure)
				return func() error {
					_, err := fmt.Fprintf(trickling{c, 100 * time.Millisecond}, "GET %s HTTP/1.1\r\nHost: h\r\nX: %01000d", loadcontrol.Path, 0)
					return errors.Join(err, gone(c))
				}
			},
			"a frame": func(f *remoteEnd) func() error {
				c := frame(f)
				return func() error {
					_, err := trickling{c, 200 * time.Millisecond}.Write(append([]byte{0, 0, 4, 0, 0, 0, 0, 0}, bytes.Repeat([]byte{' '}, 1000)...))
					return errors.Join(err, gone(c))
				}
			},
		} {
			t.Run(at+", "+name, func(t *testing.T) {
				t.Parallel()
				f := startLoadServerAt(t, at, loadcontrol.Limits{Sessions: 2 * each})
				var cut atomic.Int64
				for range each {
					go func(trickles func() error) {
						if trickles() != nil {
							cut.Add(1)
						}
					}(trickle(f))
				}
				if !await.Within(await.Timeout, func() bool { return cut.Load() > 0 || f.r.Status().Connections >= each/2 }) {
					t.Fatalf("%d connections, want those of the trickling clients", f.r.Status().Connections)
				}
				v := f.enter(1 << 20)
				if err := v.stream(1, 50); err != nil {
					t.Errorf("stream of another client: %v", err)
				}
				v.close()
				if !await.Within(await.Timeout, func() bool { return cut.Load() == each && f.r.Status().Connections == 0 }) {
					t.Errorf("disconnected %d of %d, %d connections are open", cut.Load(), each, f.r.Status().Connections)
				}
				f.enter(1)
			})
		}
	}
}

var insecure = &tls.Config{InsecureSkipVerify: true}

// unknownPeer connects without authentication.
func (f *remoteEnd) unknownPeer() net.Conn {
	f.t.Helper()
	c, err := net.Dial("tcp", f.addr().String())
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { c.Close() })
	return c
}

// gone is an error when the other side has ended the connection.
func gone(c net.Conn) error {
	_, err := io.Copy(io.Discard, c)
	return errors.Join(errors.New("ended"), err)
}

// Of all transfers requested at the same time, one of each direction runs and is charged, once.
func TestConcurrentTransferRequestsRunOnce(t *testing.T) {
	const asked, packets = 50, 200
	for _, at := range loopbacks {
		t.Run(at, func(t *testing.T) {
			f := startLoadServerAt(t, at, loadcontrol.Limits{BytesPerDay: 1 << 30})
			s := f.freeClient()
			s.open()
			s.send(s.proof())
			s.want("proved")
			plan := reverse(2, packets).Plan
			reception, err := s.stream.Expect(2, plan)
			if err != nil {
				t.Fatal(err)
			}
			for id := range uint16(asked) {
				s.send(order(id+1, sample.Direction(id%2), packets)) // of different numbers
			}
			got := map[string]int{}
			for got["started"]+got["transfer: bad_request"]+got["end"] < asked {
				got[word(s.receive())]++
			}
			if got["started"] != 2 || got["end"] > 0 {
				t.Errorf("replies %v, want 2 started", got)
			}
			s.send(traffic("sent", udptraffic.Sent{ID: 1, Packets: 0}))
			for got["finished"] < 2 && got["end"] == 0 {
				got[word(s.receive())]++
			}
			came := len(reception.Finish(t.Context(), packets, time.Second).Packets)
			s.conn.Close()
			f.waits(t)
			if used := int64(1<<30) - f.freeClient().left; came != packets || used != packets*500 {
				t.Errorf("received %d of %d packets, charged %d bytes, want %d", came, packets, used, packets*500)
			}
		})
	}
}

// reached is the packets that arrived at an address.
type reached struct {
	at netip.AddrPort
	*stream.Reception
}

// Streams go to the address proved last, even if another sends the same hello at the same time; the token is charged
// for the packets sent there.
func TestStreamIsSentToTheAddressProvedLast(t *testing.T) {
	const packets = 200
	for _, at := range loopbacks {
		t.Run(at, func(t *testing.T) {
			f := startLoadServerAt(t, at, loadcontrol.Limits{BytesPerDay: 1 << 30})
			s := f.freeClient()
			s.open()
			there, other := f.listen(s.session)
			cookies := make(chan []byte, 2)
			hello := func(x *stream.Session) {
				cookie, err := x.Hello(t.Context(), f.addr())
				if err != nil {
					t.Error(err)
				}
				cookies <- cookie
			}
			go hello(s.stream)
			go hello(other)
			one, two := <-cookies, <-cookies
			if bytes.Equal(one, two) {
				t.Fatal("two addresses have the same cookie")
			}
			last := ""
			for _, cookie := range [][]byte{one, two} {
				s.send(traffic("prove", udptraffic.Prove{Cookie: cookie}))
				m := s.receive()
				if word(m) != "proved" {
					t.Fatalf("got %s, want proved", word(m))
				}
				last = body[udptraffic.Proved](m).Address
			}
			var receptions []reached
			for e, x := range map[*stream.Endpoint]*stream.Session{s.endpoint: s.stream, there: other} {
				r, err := x.Expect(1, reverse(1, packets).Plan)
				if err != nil {
					t.Fatal(err)
				}
				receptions = append(receptions, reached{e.LocalAddr(), r})
			}
			s.send(order(1, sample.Reverse, packets))
			s.want("started")
			s.want("finished")
			came := 0
			for _, one := range receptions {
				sent := 0
				if one.at.String() == last {
					sent = packets
				}
				n := len(one.Finish(t.Context(), sent, time.Second).Packets)
				if n != sent {
					t.Errorf("%d packets arrived at %v, want %d: the address proved last is %v", n, one.at, sent, last)
				}
				came += n
			}
			s.conn.Close()
			f.waits(t)
			if used := int64(1<<30) - f.freeClient().left; came != packets || used != packets*500 {
				t.Errorf("received %d of %d packets, charged %d bytes, want %d", came, packets, used, packets*500)
			}
		})
	}
}

// Another connection that knows a session's number and has a cookie of it cannot use them, neither during the session
// nor after it.
func TestSessionNumberIsUselessToAnotherConnection(t *testing.T) {
	for _, at := range loopbacks {
		t.Run(at, func(t *testing.T) {
			f := startLoadServerAt(t, at, loadcontrol.Limits{Sessions: 16}) // earlier ones end shortly after their clients
			s := f.freeClient()
			s.open()
			s.send(s.proof())
			s.want("proved")
			s.send(order(1, sample.Reverse, 500))
			s.want("started")
			_, elsewhere := f.listen(s.session)
			cookie, err := elsewhere.Hello(t.Context(), f.addr())
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range []struct {
				m    loadcontrol.Message
				want string
			}{
				{opening(), "session: busy"},
				{traffic("prove", udptraffic.Prove{Cookie: cookie}), "session: bad_request"},
				{order(2, sample.Reverse, 5), "session: bad_request"},
				{traffic("cancel", udptraffic.Cancel{ID: 1}), "session: bad_request"},
			} {
				second := f.freeClient()
				second.send(o.m)
				second.send(mark())
				if got := second.reply(o.want); got != o.want {
					t.Errorf("%+v: got %q, want %q", o.m, got, o.want)
				}
				second.conn.Close()
			}
			m := s.receive()
			if word(m) != "finished" || body[udptraffic.Finished](m).Error != "" {
				t.Errorf("stream: %s, %+v", word(m), m)
			}
			s.conn.Close()
			f.waits(t)
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			if _, err := elsewhere.Hello(ctx, f.addr()); err == nil {
				t.Error("hellos of a closed session get a challenge")
			}
			if f.r.Status().Discarded[stream.UnknownSession.String()] == 0 {
				t.Error("hellos of a closed session are not counted")
			}
			next := f.freeClient()
			next.open()
			next.send(traffic("prove", udptraffic.Prove{Cookie: cookie}))
			next.want("session: unproved")
		})
	}
}
