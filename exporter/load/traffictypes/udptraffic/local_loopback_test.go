package udptraffic_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/clocks/none"
	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/loadtesttest"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/exporter/probe"
)

// remoteEnd runs a load server on loopback until ctx ends.
func remoteEnd(ctx context.Context, t *testing.T, limits ...string) loadsession.Options {
	t.Helper()
	o := loadtesttest.RemoteEnd(ctx, t, loadtesttest.End{}, limits...)
	o.DrainTimeout = 20 * time.Second // no packet is lost here, but a busy host may stall
	return o
}

var target = probe.Target{Path: "office", Probe: "saturation", Peer: "192.0.2.1"}

// once is loadtest.RunOnce; it retries if a busy host has delayed the hello packets by 5 s.
func once(ctx context.Context, e probe.Env, at probe.Target, o loadsession.Options, k loadsession.Kind[*udptraffic.Session], progress func(loadtest.Progress)) (out *loadtest.Outcome, err error) {
	for range 3 {
		out, err = loadtesttest.RunKind(ctx, e, at, o, k, progress)
		if out == nil || out.Reason != runreason.NoTraffic {
			break
		}
	}
	return out, err
}

// scriptKind calls a function of the test.
type scriptKind struct {
	perform func(ctx context.Context, s *udptraffic.Session, r *loadtest.Run) error
}

func (scriptKind) Kind() string                                      { return "saturation" }
func (scriptKind) Traffic() loadsession.Traffic[*udptraffic.Session] { return udptraffic.Local{} }
func (scriptKind) Bytes(int64) int64                                 { return 4_000_000 }
func (scriptKind) Duration() time.Duration                           { return time.Second }
func (scriptKind) Publish(*loadtest.Values, *loadtest.Run)           {}
func (k scriptKind) Perform(ctx context.Context, s *udptraffic.Session, r *loadtest.Run) error {
	return k.perform(ctx, s, r)
}

func env(m clock.Monitor) probe.Env {
	return probe.Env{Log: slog.New(slog.DiscardHandler), Sink: metric.Discard{}, Clock: m}
}

func staticClock() clock.Monitor { return static.New(time.Millisecond, metric.Discard{}) }

// thousand returns 1000 packets of 600 bytes in half a second.
func thousand(s *udptraffic.Session) stream.Plan {
	return s.Plan(s.PacedSegment(600, 1.2e6, 500*time.Millisecond))
}

func TestTransferOverLoopbackIsJoinedInBothDirections(t *testing.T) {
	opts := remoteEnd(t.Context(), t)
	o, err := once(t.Context(), env(staticClock()), target, opts, scriptKind{func(ctx context.Context, s *udptraffic.Session, _ *loadtest.Run) error {
		for _, d := range sample.Directions() {
			x, err := s.Transfer(ctx, d, thousand(s), nil)
			if err != nil {
				return err
			}
			if c := x.Counts; c.Planned != 1000 || c.Arrived != 1000 || c.Unsent != 0 || c.Duplicated != 0 {
				t.Errorf("%s: %+v", d, c)
			}
			if !x.SharedClock || x.Drift() != 0 {
				t.Errorf("%s: one kernel, but shared %v, drift %v", d, x.SharedClock, x.Drift())
			}
			for i := range x.Packets {
				// One clock and two kernel timestamps: the delay of loopback, with the timestamp error only.
				if d := x.Delay(i); !d.OK() || d.Value < -d.Bound || d.Value > time.Second {
					t.Fatalf("packet %d: %+v: %+v", i, d, x.Packets[i])
				}
			}
		}
		return nil
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if o.ForwardBytes != 600_000 || o.ReverseBytes != 600_000 || len(o.Transfers.([]*udptraffic.Series)) != 2 || o.Remote != opts.LoadServer {
		t.Errorf("%+v", o)
	}
}

// With feedback the sender is adjusted by reports in forward direction and by orders in reverse.
func TestTransferIsAdjustedInBothDirections(t *testing.T) {
	opts := remoteEnd(t.Context(), t)
	told := map[sample.Direction]int{}
	o, err := once(t.Context(), env(staticClock()), target, opts, scriptKind{func(ctx context.Context, s *udptraffic.Session, _ *loadtest.Run) error {
		for _, d := range sample.Directions() {
			p := s.Plan(s.PacedSegment(600, 600_000, time.Second))
			p.Feedback = stream.MinFeedback
			var last stream.Status
			x, err := s.AdjustRate(ctx, d, p, func(st stream.Status) time.Duration {
				if st.Serial <= last.Serial || st.Packets < last.Packets {
					t.Errorf("%s: %+v after %+v", d, st, last)
				}
				told[d], last = told[d]+1, st
				return 2 * time.Millisecond
			})
			if err != nil {
				return err
			}
			if c := x.Counts; c.Sent < 2 || c.Sent > 1000 || c.Arrived != c.Sent || c.NotTried != 0 || c.Planned != c.Sent {
				t.Errorf("%s: %+v", d, c)
			}
		}
		return nil
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Transfers.([]*udptraffic.Series)) != 2 || told[sample.Forward] == 0 || told[sample.Reverse] == 0 {
		t.Errorf("%d transfers, told %v", len(o.Transfers.([]*udptraffic.Series)), told)
	}
}

func TestNoDelayWithoutAClockSourceOnOneKernel(t *testing.T) {
	opts := remoteEnd(t.Context(), t)
	_, err := once(t.Context(), env(none.New(metric.Discard{})), target, opts, scriptKind{func(ctx context.Context, s *udptraffic.Session, _ *loadtest.Run) error {
		x, err := s.Transfer(ctx, sample.Forward, thousand(s), nil)
		if err == nil && x.Delay(0).Reason != sample.NoClock {
			t.Errorf("%+v", x.Delay(0))
		}
		return err
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
}

func TestEndOfTheLoadServerEndsTheRun(t *testing.T) {
	for _, d := range sample.Directions() {
		t.Run(d.String(), func(t *testing.T) {
			ctx, die := context.WithCancel(t.Context())
			defer die()
			opts := remoteEnd(ctx, t)
			var died time.Time
			o, err := once(t.Context(), env(staticClock()), target, opts, scriptKind{func(ctx context.Context, s *udptraffic.Session, _ *loadtest.Run) error {
				p := s.Plan(s.PacedSegment(600, 60_000, 30*time.Second))
				_, err := s.Transfer(ctx, d, p, func(at loadtest.Progress) {
					if at.Packets > 0 && died.IsZero() {
						died = time.Now()
						die()
					}
				})
				return err
			}}, nil)
			if err == nil || o.Result != loadtest.Incomplete || o.Reason != runreason.Lost {
				t.Fatalf("%s %s: %v", o.Result, o.Reason, err)
			}
			t.Logf("the run ended %v after its load server", time.Since(died)) // the plan takes 30 s; no tighter limit, for a busy host
			if o.ForwardBytes+o.ReverseBytes == 0 {
				t.Error("the bytes sent are 0")
			}
		})
	}
}

func TestErrorsHaveTheCauseTheAddressAndARemedy(t *testing.T) {
	opts := remoteEnd(t.Context(), t, "rate=1Mbit")
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free := nobody.Addr().String()
	nobody.Close()
	wrong := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(wrong, []byte("not-a-token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*loadsession.Options)
		result loadtest.Result
		reason string
		want   []string
	}{
		"no listener": {func(o *loadsession.Options) { o.LoadServer = free }, loadtest.Failed, runreason.Unreachable, []string{"load server " + free, "is a load server listening"}},
		"wrong token": {func(o *loadsession.Options) { o.TokenFile = wrong }, loadtest.Refused, "unauthorized", []string{"load server " + opts.LoadServer + ": refused: unauthorized"}},
		"no token":    {func(o *loadsession.Options) { o.TokenFile = empty }, "", "", []string{"token_file", "holds no token"}}, // an option, so there is no run
		"wrong pin":   {func(o *loadsession.Options) { o.Pin = "sha256:" + strings.Repeat("00", 32) }, loadtest.Failed, runreason.Unreachable, []string{"load server ", "pin"}},
		"too fast":    {func(*loadsession.Options) {}, loadtest.Refused, "rate_limit", []string{"refused: rate_limit"}},
	} {
		t.Run(name, func(t *testing.T) {
			opts := opts
			c.change(&opts)
			o, err := once(t.Context(), env(staticClock()), target, opts, scriptKind{func(ctx context.Context, s *udptraffic.Session, _ *loadtest.Run) error {
				_, err := s.Transfer(ctx, sample.Forward, thousand(s), nil)
				return err
			}}, nil)
			switch {
			case err == nil || (o == nil) != (c.result == ""):
				t.Fatalf("%+v, %v", o, err)
			case o != nil && (o.Result != c.result || o.Reason != c.reason):
				t.Fatalf("%s, %s: %v", o.Result, o.Reason, err)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not contain %q", err, part)
				}
			}
		})
	}
}

func TestSecondClientIsRefusedAsBusy(t *testing.T) {
	opts := remoteEnd(t.Context(), t)
	opts.MaxWait = 500 * time.Millisecond
	_, err := once(t.Context(), env(staticClock()), target, opts, scriptKind{func(ctx context.Context, _ *udptraffic.Session, _ *loadtest.Run) error {
		o, err := once(ctx, env(staticClock()), target, opts, scriptKind{func(context.Context, *udptraffic.Session, *loadtest.Run) error {
			return errors.New("both run")
		}}, nil)
		if o.Result != loadtest.Skipped || o.Reason != runreason.RemoteBusy || !strings.Contains(err.Error(), "refused: busy") {
			t.Errorf("%s, %s: %v", o.Result, o.Reason, err)
		}
		return nil
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
}

// The control connection uses a relay at an address without a UDP service.
func TestPathWithoutUDPIsReported(t *testing.T) {
	opts := remoteEnd(t.Context(), t)
	at := relay(t, "127.0.0.2:0", opts.LoadServer)
	opts.LoadServer = at
	host, _, _ := net.SplitHostPort(at)
	o, err := loadtesttest.RunKind(t.Context(), env(staticClock()), target, opts, scriptKind{nil}, nil)
	if o.Result != loadtest.Failed || o.Reason != runreason.NoTraffic {
		t.Fatalf("%s, %s: %v", o.Result, o.Reason, err)
	}
	if want := "no reply to UDP at " + host + ":"; !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "open there and on the path? A NAT forwards TCP ") {
		t.Errorf("%q does not begin with %q", err, want)
	}
}

// TestForwardedPortIsThatOfTheControlConnection: a NAT forwards TCP and UDP of another port to the load server.
func TestForwardedPortIsThatOfTheControlConnection(t *testing.T) {
	opts := remoteEnd(t.Context(), t)
	server := opts.LoadServer
	opts.LoadServer = relay(t, "127.0.0.2:0", server)
	relayUDP(t, opts.LoadServer, server)
	reached := ""
	o, err := loadtesttest.RunKind(t.Context(), env(staticClock()), target, opts, scriptKind{func(_ context.Context, s *udptraffic.Session, _ *loadtest.Run) error {
		reached = s.Remote().String()
		return nil
	}}, nil)
	if err != nil || reached != opts.LoadServer {
		t.Errorf("%s, %s: %v; UDP to %s, want %s", o.Result, o.Reason, err, reached, opts.LoadServer)
	}
}

// relayUDP forwards packets of one client to an address until the end of the test.
func relayUDP(t *testing.T, from, to string) {
	t.Helper()
	in, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(from)))
	if err != nil {
		t.Fatal(err)
	}
	out, err := net.Dial("udp", to)
	if err != nil {
		t.Fatal(err)
	}
	var client atomic.Pointer[net.UDPAddr]
	var copying sync.WaitGroup
	copying.Go(func() {
		b := make([]byte, 1<<16)
		for {
			n, peer, err := in.ReadFromUDP(b)
			if err != nil {
				return
			}
			client.Store(peer)
			_, _ = out.Write(b[:n])
		}
	})
	copying.Go(func() {
		b := make([]byte, 1<<16)
		for {
			n, err := out.Read(b)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				_, _ = in.WriteToUDP(b[:n], client.Load())
			}
		}
	})
	t.Cleanup(func() {
		in.Close()
		out.Close()
		copying.Wait()
	})
}

// relay forwards TCP connections to an address until the end of the test.
func relay(t *testing.T, from, to string) (at string) {
	t.Helper()
	l, err := net.Listen("tcp", from)
	if err != nil {
		t.Fatal(err)
	}
	var copying sync.WaitGroup
	copying.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
				copying.Go(func() {
					_, _ = io.Copy(pair[0], pair[1])
					pair[0].Close()
				})
			}
		}
	})
	t.Cleanup(func() {
		l.Close()
		copying.Wait()
	})
	return l.Addr().String()
}

// emptying is a Lessor that empties a token file before the run reads it.
type emptying struct{ file string }

func (e emptying) Lease(context.Context, time.Duration) (loadtest.Lease, error) {
	return e, os.Truncate(e.file, 0)
}
func (emptying) Reserve(int64) error { return nil }
func (emptying) BeginSending()       {}
func (emptying) Return(_, _ int64)   {}

// TestTokenFileThatIsEmptiedAfterTheStartFailsTheRun: options are checked when they are read, files are read by each run.
func TestTokenFileThatIsEmptiedAfterTheStartFailsTheRun(t *testing.T) {
	opts := remoteEnd(t.Context(), t, "rate=1Mbit")
	test, err := loadsession.NewTest(target, opts, scriptKind{func(context.Context, *udptraffic.Session, *loadtest.Run) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	o, err := loadtest.RunOnce(t.Context(), env(staticClock()), target, opts.Options, test, emptying{opts.TokenFile}, nil)
	if err == nil || o == nil || o.Result != loadtest.Failed || o.Reason != runreason.Configuration || !strings.Contains(err.Error(), "holds no token") {
		t.Errorf("%+v, %v; want failed, configuration", o, err)
	}
}
