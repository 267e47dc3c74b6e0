package control

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// TestKilledConnectionEndsBothSidesOverRealSockets has a relay between a client and a
// responder, with TLS and TCP as they are, and kills or freezes it. The limits are wide, for a
// busy host; that a second is enough is shown in simulated time (see conn_test.go).
func TestKilledConnectionEndsBothSidesOverRealSockets(t *testing.T) {
	const limit = 20 * time.Second
	for _, c := range []struct {
		name string
		do   func(*relay)
		want error
	}{
		{"closed", (*relay).cut, ErrLost},
		{"frozen", (*relay).freeze, ErrSilent},
	} {
		ends := make(chan *Conn, 1)
		o := play(t, func(c *Conn) {
			ends <- c
			<-c.Done()
		})
		r := newRelay(t, o.Address)
		o.Address = r.address
		client, responder := dial(t, o), <-ends
		if client.Remote().String() != o.Address || responder.Local().String() == o.Address {
			t.Errorf("from %s to %s, want %s", client.Local(), client.Remote(), o.Address)
		}
		begin := time.Now()
		c.do(r)
		for side, done := range map[string]<-chan struct{}{"client": client.Done(), "responder": responder.Done()} {
			select {
			case <-done:
				t.Logf("%s: %s: ended after %v", c.name, side, time.Since(begin))
			case <-time.After(limit):
				t.Errorf("%s: %s: not ended after %v", c.name, side, limit)
			}
		}
		for side, err := range map[string]error{"client": client.Err(), "responder": responder.Err()} {
			// A host too busy to run either side for a second makes both look silent.
			if !errors.Is(err, c.want) && !errors.Is(err, ErrSilent) {
				t.Errorf("%s: %s: %v, want %v", c.name, side, err, c.want)
			}
		}
	}
}

// relay passes one TCP connection on, until it is cut or frozen.
type relay struct {
	address string
	frozen  atomic.Bool
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

// pass copies until a read fails. What it reads when frozen is lost, and so is the end.
func (r *relay) pass(to io.WriteCloser, from io.Reader) {
	b := make([]byte, 4096)
	for {
		n, err := from.Read(b)
		if r.frozen.Load() {
			if err != nil {
				return
			}
			continue
		}
		if err != nil {
			to.Close()
			return
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

func (r *relay) freeze() { r.frozen.Store(true) }

func (r *relay) cut() {
	for _, c := range r.ends {
		c.Close()
	}
}
