package stamp

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"oneway.example/exporter/probe"
	"oneway.example/exporter/reflector"
)

// names is a name server that knows every name to be 127.0.0.1, or none.
type names struct {
	conn   net.PacketConn
	known  atomic.Bool
	told   atomic.Int64 // answers with an address
	denied atomic.Int64
}

// serveNames has all names of this process looked up there until the test ends.
func serveNames(t *testing.T) *names {
	t.Helper()
	c, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n, ended, before := &names{conn: c}, make(chan struct{}), net.DefaultResolver
	go func() {
		defer close(ended)
		n.serve(t)
	}()
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp4", c.LocalAddr().String())
	}}
	t.Cleanup(func() {
		net.DefaultResolver = before
		c.Close()
		<-ended
	})
	return n
}

func (n *names) serve(t *testing.T) {
	for b := make([]byte, 1500); ; {
		size, from, err := n.conn.ReadFrom(b)
		if err != nil {
			return // closed
		}
		var m dnsmessage.Message
		if err := m.Unpack(b[:size]); err != nil || len(m.Questions) != 1 {
			t.Errorf("question %v, %v", m, err)
			return
		}
		q := m.Questions[0]
		answer := dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true}, Questions: m.Questions}
		switch {
		case !n.known.Load():
			answer.RCode = dnsmessage.RCodeNameError
		case q.Type == dnsmessage.TypeA:
			answer.Answers = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}, Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
			}}
		}
		packed, err := answer.Pack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = n.conn.WriteTo(packed, from)
		if q.Type == dnsmessage.TypeA {
			if len(answer.Answers) > 0 {
				n.told.Add(1)
			} else {
				n.denied.Add(1)
			}
		}
	}
}

func TestNameThatStopsResolvingIsOneLine(t *testing.T) {
	server, b := serveNames(t), newBed(t, reflector.Options{})
	var said bytes.Buffer // read when Run has ended
	b.env.Log = slog.New(slog.NewTextHandler(&said, nil))
	o := DefaultOptions()
	o.Interval, o.ResolveInterval = 100*time.Millisecond, time.Second
	_, port, _ := net.SplitHostPort(b.peer)
	p, err := New().NewProber(b.env, probe.Target{Path: "p", Probe: "stamp", Peer: net.JoinHostPort("peer.test", port)}, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	for range 2 {
		for _, known := range []bool{false, true} {
			server.known.Store(known)
			count := &server.denied
			if known {
				count = &server.told
			}
			enough := count.Load() + 3
			// The prober asks when it wants to, and tells nobody; so the server's count is looked at.
			for deadline := time.Now().Add(time.Minute); count.Load() < enough; time.Sleep(10 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("no three lookups that know the name (%v) in a minute", known)
				}
			}
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	failed := strings.Count(said.String(), `level=WARN msg="The path has a fault" path=p probe=stamp fault="the peer's name gives no address"`)
	over := strings.Count(said.String(), `level=INFO msg="The path's fault is over" path=p probe=stamp fault="the peer's name gives no address"`)
	if failed != 2 || over != 2 || strings.Count(said.String(), "\n") != 4 {
		t.Errorf("the name was gone twice, for three lookups or more; the log says\n%s", &said)
	}
}
