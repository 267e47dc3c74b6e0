package tcptraffic

import (
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"oneway.example/exporter/net/tcpsocket"
)

// failing is a listening socket whose accept fails twice; then it is closed.
type failing struct {
	net.Listener
	calls int
}

func (f *failing) Accept() (net.Conn, error) {
	if f.calls++; f.calls < 3 {
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return nil, net.ErrClosed
}

// A load server without free file descriptors for a moment accepts the connections that wait, or names the cause.
func TestAcceptThatFailsIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, l, begun := &gathering{}, &failing{}, time.Now()
		g.accept(t.Context(), tcpsocket.Options{}, l)
		if waited := time.Since(begun); l.calls != 3 || waited != 2*acceptPause || g.failed == nil {
			t.Errorf("%d calls in %v, %v", l.calls, waited, g.failed)
		}
	})
}
