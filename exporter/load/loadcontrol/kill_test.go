package loadcontrol

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// A relay between a client and a load server, with real TLS and TCP, cuts the connection. The limit
// is wide for a busy host; conn_test.go checks in simulated time that the end takes no time.
func TestKilledConnectionEndsBothSidesOverRealSockets(t *testing.T) {
	const limit = 20 * time.Second
	ends := make(chan *Conn, 1)
	o := play(t, func(c *Conn) {
		ends <- c
		<-c.Done()
	})
	r := newRelay(t, o.Address)
	o.Address = r.address
	client, loadServer := dial(t, o), <-ends
	if client.Remote().String() != o.Address || loadServer.Local().String() == o.Address {
		t.Errorf("from %s to %s, want %s", client.Local(), client.Remote(), o.Address)
	}
	r.cut()
	for side, c := range map[string]interface {
		Done() <-chan struct{}
		Err() error
	}{"client": client, "load_server": loadServer} {
		select {
		case <-c.Done():
		case <-time.After(limit):
			t.Errorf("%s: not ended after %v", side, limit)
		}
		if err := c.Err(); !errors.Is(err, ErrLost) {
			t.Errorf("%s: %v, want %v", side, err, ErrLost)
		}
	}
}

// relay forwards one TCP connection until cut.
type relay struct {
	address string
	ready   chan struct{}
	ends    [2]net.Conn
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{address: l.Addr().String(), ready: make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		in, err := l.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", to)
		if err != nil {
			in.Close()
			return
		}
		r.ends = [2]net.Conn{in, out}
		close(r.ready)
		back := make(chan struct{})
		go func() {
			defer close(back)
			r.pass(in, out)
		}()
		r.pass(out, in)
		<-back
	}()
	t.Cleanup(func() {
		l.Close()
		select {
		case <-r.ready:
			r.cut()
		default:
		}
		<-done
	})
	return r
}

// pass copies until a read fails.
func (r *relay) pass(to io.WriteCloser, from io.Reader) {
	b := make([]byte, 4096)
	for {
		n, err := from.Read(b)
		if err != nil {
			to.Close()
			return
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

func (r *relay) cut() {
	for _, c := range r.ends {
		c.Close()
	}
}
