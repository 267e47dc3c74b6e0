package tcp_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/loadtest/loadtesttest"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/tcpsocket"
	"oneway.example/exporter/traffic/tcp"
	"oneway.example/tests/remoteend"
)

// A token that is revoked ends its transfer, also without a rate.
func TestRevokedTokenEndsItsTransfer(t *testing.T) {
	remoteend.NothingLeft(t)
	for _, d := range sample.Directions() {
		shared := loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{})
		_, err := once(t, shared, func(ctx context.Context, s *tcp.Session) error {
			time.AfterFunc(300*time.Millisecond, func() { _ = os.Truncate(filepath.Join(filepath.Dir(shared.TokenFile), "tokens"), 0) }) // else the transfer does not end
			begun := time.Now()
			res, err := s.Transfer(ctx, plan(d, 30*time.Second))
			if err != nil {
				return err
			}
			at := map[sample.Direction][]tcp.FlowEnd{sample.Forward: res.Receiver, sample.Reverse: res.Sender}[d][0]
			if at.Ended != tcp.EndedLimit || res.Cut == "" || res.Receiver[0].Payload == 0 || time.Since(begun) > 15*time.Second {
				t.Errorf("%s: %s after %v: %q, %d bytes", d, at.Ended, time.Since(begun), res.Cut, res.Receiver[0].Payload)
			}
			if _, err := s.Transfer(ctx, plan(d, 100*time.Millisecond)); err == nil || !strings.Contains(err.Error(), "revoked") {
				t.Errorf("%s: the next transfer: %v", d, err)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", d, err)
		}
	}
}

// Options at the limits of their ranges end a transfer with a reason, or not at all, and leave nothing.
func TestExtremeOptionsAreServed(t *testing.T) {
	remoteend.NothingLeft(t)
	for what, c := range map[string]struct {
		flow tcp.Flow
		want tcp.Ended
	}{
		"pacing of a byte a second": {tcp.Flow{MessageBytes: 128 << 10, Options: tcpsocket.Options{PacingRate: 1}}, tcp.EndedIdle},
		"messages of a byte":        {tcp.Flow{MessageBytes: 1, Options: tcpsocket.Options{NoDelay: true}}, tcp.EndedTime},
		"large messages":            {tcp.Flow{MessageBytes: tcp.MaxMessage}, tcp.EndedTime},
		"large buffers":             {tcp.Flow{MessageBytes: 1000, Options: tcpsocket.Options{SendBuffer: tcpsocket.MaxBuffer, ReceiveBuffer: tcpsocket.MaxBuffer}}, tcp.EndedTime},
		"small buffers":             {tcp.Flow{MessageBytes: 128 << 10, Options: tcpsocket.Options{SendBuffer: 1, ReceiveBuffer: 1}}, tcp.EndedTime},
		"small segments":            {tcp.Flow{MessageBytes: 128 << 10, Options: tcpsocket.Options{MSS: tcpsocket.MinMSS}}, tcp.EndedTime},
	} {
		for _, d := range sample.Directions() {
			p := plan(d, 300*time.Millisecond)
			p.Flows[0] = c.flow
			if c.want == tcp.EndedIdle {
				p.Duration, p.Idle = 30*time.Second, 500*time.Millisecond
			}
			res, _ := transfer(t, p)
			got := res.Sender[0].Ended
			if got == tcp.EndedReset && res.Receiver[0].Ended == tcp.EndedIdle { // the receiver was the first
				got = tcp.EndedIdle
			}
			if got != c.want || (c.want == tcp.EndedTime) != (res.Cut == "") || c.want == tcp.EndedTime && res.Receiver[0].Payload == 0 {
				t.Errorf("%s, %s: %s, %d bytes, cut %q", what, d, got, res.Receiver[0].Payload, res.Cut)
			}
		}
	}
}
