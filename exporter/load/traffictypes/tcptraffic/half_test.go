package tcptraffic

import (
	"testing"

	"oneway.example/exporter/net/tcpsocket"
)

// The sender and the sampling goroutine both report what TCP has retransmitted: each byte is taken from the limit once.
func TestRetransmittedBytesAreTakenFromTheLimitOnce(t *testing.T) {
	h, f := &half{plan: &Plan{}}, &flow{}
	h.most.Store(100)
	for _, step := range []struct {
		retransmitted, left int64
		permitted           bool
	}{{0, 100, true}, {60, 40, true}, {60, 40, true}, {100, 0, true}, {101, -1, false}} {
		ok := h.resent(t.Context(), f, &tcpsocket.Info{Retransmitted: step.retransmitted})
		if ok != step.permitted || h.most.Load() != step.left {
			t.Errorf("%d bytes retransmitted: permitted %v, %d left; want %v, %d", step.retransmitted, ok, h.most.Load(), step.permitted, step.left)
		}
	}
}
