package tcptraffic

import (
	"strings"
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

// A transfer without arrivals is not complete, however its ends ended, and says what may be the cause. One that was canceled
// before, or whose payload was sent once, has no such cause.
func TestTransferOfWhichNothingArrivedIsNotComplete(t *testing.T) {
	const cause = "the path's MTU"
	for _, c := range []struct {
		sent, received Ended
		again, payload int64
		want           string
	}{
		{EndedTime, EndedReset, 4, 0, cause},
		{EndedTime, EndedIdle, 4, 0, cause},
		{EndedIdle, EndedReset, 4, 0, cause},
		{EndedReset, EndedIdle, 4, 0, cause},
		{EndedTime, EndedReset, 4, 1448, ""},
		{EndedTime, EndedReset, 0, 0, ""},
		{EndedReset, EndedClosed, 4, 0, "sender: reset, receiver: closed"},
		{EndedCanceled, EndedIdle, 4, 0, "sender: canceled, receiver: idle"},
		{EndedTime, "", 4, 0, "sender: time, receiver: unknown"}, // its record did not arrive
	} {
		r := &Result{Plan: Plan{Duration: 1}, Sender: []FlowEnd{{Ended: c.sent}}, Receiver: []FlowEnd{{Ended: c.received, Payload: c.payload}}}
		r.Sender[0].Final.Retransmitted, r.Sender[0].Final.MSS = c.again, 1448
		if got := cut(r); c.want == "" && got != "" || !strings.Contains(got, c.want) || c.want == cause && !strings.Contains(got, "1448 bytes") {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
