package rules

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// cutLink is a TCP link that can be cut: then its connections end, and new ones are refused.
type cutLink struct {
	to, address string
	down        atomic.Bool
	mu          sync.Mutex
	open        map[net.Conn]bool
}

func (l *cutLink) listen(t *testing.T) {
	t.Helper()
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.address, l.open = at.Addr().String(), map[net.Conn]bool{}
	t.Cleanup(func() { _ = at.Close(); l.cut(true) })
	go func() {
		for {
			in, err := at.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				go l.pass(in)
			}
		}
	}()
}

func (l *cutLink) pass(in net.Conn) {
	defer in.Close()
	out, err := net.Dial("tcp", l.to)
	if err != nil {
		return
	}
	defer out.Close()
	l.mu.Lock()
	if l.open[in], l.open[out] = true, true; l.down.Load() {
		_, _ = in.Close(), out.Close()
	}
	l.mu.Unlock()
	go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
	_, _ = io.Copy(in, out)
	l.mu.Lock()
	delete(l.open, in)
	delete(l.open, out)
	l.mu.Unlock()
}

func (l *cutLink) cut(down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down.Store(down)
	for c := range l.open {
		if down {
			_ = c.Close()
		}
	}
}
