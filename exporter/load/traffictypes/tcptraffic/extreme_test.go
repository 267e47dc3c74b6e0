package tcptraffic_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/atomicfile"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/loadtesttest"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/exporter/net/tcpsocket"
	"oneway.example/tests/remoteend"
)

// A token that is revoked ends its transfer with a refusal, also without a rate.
func TestRevokedTokenEndsItsTransfer(t *testing.T) {
	remoteend.NothingLeft(t)
	for _, d := range sample.Directions() {
		shared := loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{})
		_, err := once(t, shared, func(ctx context.Context, s *tcptraffic.Session) error {
			time.AfterFunc(300*time.Millisecond, func() { _ = os.Truncate(filepath.Join(filepath.Dir(shared.TokenFile), "tokens"), 0) }) // else the transfer does not end
			begun := time.Now()
			res, err := s.Transfer(ctx, plan(d, 30*time.Second))
			refusal, refused := errors.AsType[*loadcontrol.Refusal](err)
			if !refused || refusal.Reason != loadcontrol.Unauthorized || time.Since(begun) > 15*time.Second || res == nil || res.Cut == "" {
				t.Errorf("%s: after %v: %v, %+v", d, time.Since(begun), err, res)
			}
			if _, err := s.Transfer(ctx, plan(d, 100*time.Millisecond)); err == nil || !strings.Contains(err.Error(), "revoked") {
				t.Errorf("%s: the next transfer: %v", d, err)
			}
			paused := loadtest.Watched(ctx, func() time.Duration { return 20 * time.Second })
			if _, err := s.Transfer(paused, plan(d, 100*time.Millisecond)); err == nil || err.Error() != "this host did not run for 20s" {
				t.Errorf("%s: a transfer of a host that stood still: %v", d, err)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", d, err)
		}
	}
}

// A rate that is lowered during a session is not taken for the path's.
func TestLoweredRateEndsTheTransferThatItHoldsBack(t *testing.T) {
	remoteend.NothingLeft(t)
	for _, d := range sample.Directions() {
		shared := loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{})
		tokens := filepath.Join(filepath.Dir(shared.TokenFile), "tokens")
		_, err := once(t, shared, func(ctx context.Context, s *tcptraffic.Session) error {
			time.AfterFunc(300*time.Millisecond, func() {
				line, err := os.ReadFile(tokens)
				if err == nil {
					err = atomicfile.Replace(tokens, append(bytes.TrimSpace(line), " rate=1Mbit\n"...), 0o600)
				}
				if err != nil {
					t.Error(err)
				}
			})
			res, err := s.Transfer(ctx, plan(d, 30*time.Second))
			refusal, refused := errors.AsType[*loadcontrol.Refusal](err)
			if !refused || refusal.Reason != loadcontrol.RateLimit || !strings.Contains(refusal.Detail, "lowered to 1 Mb/s") || res == nil || res.Cut == "" {
				t.Errorf("%s: %v, %+v", d, err, res)
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
		flow tcptraffic.Flow
		want tcptraffic.Ended
	}{
		"pacing of a byte a second": {tcptraffic.Flow{MessageBytes: 128 << 10, Options: tcpsocket.Options{PacingRate: 1}}, tcptraffic.EndedIdle},
		"messages of a byte":        {tcptraffic.Flow{MessageBytes: 1, Options: tcpsocket.Options{NoDelay: true}}, tcptraffic.EndedTime},
		"large messages":            {tcptraffic.Flow{MessageBytes: tcptraffic.MaxMessage}, tcptraffic.EndedTime},
		"large buffers":             {tcptraffic.Flow{MessageBytes: 1000, Options: tcpsocket.Options{SendBuffer: tcpsocket.MaxBuffer, ReceiveBuffer: tcpsocket.MaxBuffer}}, tcptraffic.EndedTime},
		"small buffers":             {tcptraffic.Flow{MessageBytes: 128 << 10, Options: tcpsocket.Options{SendBuffer: 1, ReceiveBuffer: 1}}, tcptraffic.EndedTime},
		"small segments":            {tcptraffic.Flow{MessageBytes: 128 << 10, Options: tcpsocket.Options{MSS: tcpsocket.MinMSS}}, tcptraffic.EndedTime},
	} {
		for _, d := range sample.Directions() {
			p := plan(d, 300*time.Millisecond)
			p.Flows[0] = c.flow
			if c.want == tcptraffic.EndedIdle {
				p.Duration, p.Idle = 30*time.Second, 500*time.Millisecond
			}
			res, _ := transfer(t, p)
			got := res.Sender[0].Ended
			if got == tcptraffic.EndedReset && res.Receiver[0].Ended == tcptraffic.EndedIdle { // the receiver was the first
				got = tcptraffic.EndedIdle
			}
			if got != c.want || (c.want == tcptraffic.EndedTime) != (res.Cut == "") || c.want == tcptraffic.EndedTime && res.Receiver[0].Payload == 0 {
				t.Errorf("%s, %s: %s, %d bytes, cut %q", what, d, got, res.Receiver[0].Payload, res.Cut)
			}
		}
	}
}
