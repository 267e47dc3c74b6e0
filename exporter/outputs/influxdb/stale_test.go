package influxdb

import (
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// nat relays connections, and can forget those that exist: what they send is lost, without a word.
type nat struct {
	net.Listener
	to string

	mu    sync.Mutex
	known []*atomic.Bool // one for each connection; false: forgotten
}

func newNAT(t *testing.T, to string) *nat {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &nat{Listener: l, to: to}
	t.Cleanup(func() { _ = l.Close() })
	go n.run(t)
	return n
}

func (n *nat) run(t *testing.T) {
	for {
		near, err := n.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", n.to)
		if err != nil {
			_ = near.Close()
			continue
		}
		t.Cleanup(func() { _, _ = near.Close(), far.Close() })
		known := new(atomic.Bool)
		known.Store(true)
		n.mu.Lock()
		n.known = append(n.known, known)
		n.mu.Unlock()
		go pass(near, far, known)
		go pass(far, near, known)
	}
}

// pass copies while the connection is known; then it only reads.
func pass(to io.Writer, from io.Reader, known *atomic.Bool) {
	b := make([]byte, 1<<16)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		if known.Load() {
			_, _ = to.Write(b[:n])
		}
	}
}

func (n *nat) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, known := range n.known {
		known.Store(false)
	}
}

// TestForgottenConnectionIsReplaced: with HTTP/2, too, whose connections serve many requests at once and outlive one that got no
// reply.
func TestForgottenConnectionIsReplaced(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			server := httptest.NewUnstartedServer(s.Config.Handler)
			server.EnableHTTP2 = http2
			server.StartTLS()
			defer server.Close()
			n := newNAT(t, strings.TrimPrefix(server.URL, "https://"))
			o := options(s)
			o.URL, o.CAFile, o.Timeout = "https://"+n.Addr().String(), writePEM(t, server.Certificate().Raw), 300*time.Millisecond
			r := start(t, o, "")
			for i := range 3 {
				r.add(5*i, 5)
				r.arrive(s, 5*(i+1))
				n.forget()
			}
		})
	}
}
