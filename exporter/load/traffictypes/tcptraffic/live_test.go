package tcptraffic_test

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/loadtesttest"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/exporter/net/tcpsocket"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/link"
	"oneway.example/tests/remoteend"
)

// kind is a load test that calls a function.
type kind struct {
	most    int64
	perform func(ctx context.Context, s *tcptraffic.Session, r *loadtest.Run) error
}

func (kind) Kind() string                                      { return "test" }
func (k kind) Bytes(int64) int64                               { return k.most }
func (kind) Duration() time.Duration                           { return time.Second }
func (kind) Traffic() loadsession.Traffic[*tcptraffic.Session] { return tcptraffic.Local{} }
func (kind) Publish(*loadtest.Values, *loadtest.Run)           {}
func (kind) Fit(l loadcontrol.Limits, _ int) int64             { return l.LeftOfDay() }
func (k kind) Perform(ctx context.Context, s *tcptraffic.Session, r *loadtest.Run) error {
	return k.perform(ctx, s, r)
}

const most = 1 << 38

// once runs a function in a session with a load server.
func once(t *testing.T, o loadsession.Options, f func(ctx context.Context, s *tcptraffic.Session) error) (*loadtest.Outcome, error) {
	t.Helper()
	return onceWithin(t.Context(), o, f)
}

func onceWithin(ctx context.Context, o loadsession.Options, f func(ctx context.Context, s *tcptraffic.Session) error) (*loadtest.Outcome, error) {
	env := probe.Env{Log: slog.New(slog.DiscardHandler), Sink: metric.Discard{}, Clock: static.New(time.Millisecond, metric.Discard{}), Links: link.NewTable(nil)}
	target := probe.Target{Path: "office", Probe: "test", Peer: "127.0.0.1"}
	k := kind{most, func(ctx context.Context, s *tcptraffic.Session, _ *loadtest.Run) error { return f(ctx, s) }}
	return loadtesttest.RunKind(ctx, env, target, o, k, nil)
}

// plan is a transfer of one flow by time.
func plan(d sample.Direction, lasts time.Duration) tcptraffic.Plan {
	return tcptraffic.Plan{
		Direction: d, Flows: []tcptraffic.Flow{{MessageBytes: 128 << 10}}, Duration: lasts, Most: most,
		Interval: 100 * time.Millisecond, TraceFor: 200 * time.Millisecond, TraceInterval: 10 * time.Millisecond, Idle: 10 * time.Second,
	}
}

// transfer performs one transfer with a load server of its own: the link of another may be busy for a moment.
func transfer(t *testing.T, p tcptraffic.Plan, limits ...string) (res *tcptraffic.Result, out *loadtest.Outcome) {
	t.Helper()
	out, err := once(t, loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{}, limits...), func(ctx context.Context, s *tcptraffic.Session) (err error) {
		res, err = s.Transfer(ctx, p)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return res, out
}

// Others that want the link return at the planned end, not after the longest time that a transfer can take.
func TestLinkOfATransferIsExpectedFreeAtItsPlannedEnd(t *testing.T) {
	remoteend.NothingLeft(t)
	shared := loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{})
	_, err := once(t, shared, func(ctx context.Context, s *tcptraffic.Session) error {
		var other sync.WaitGroup
		defer other.Wait()
		other.Go(func() {
			time.Sleep(500 * time.Millisecond) // the transfer has begun; if not, the link is expected free as soon
			atOnce := shared
			atOnce.MaxWait = 0
			_, err := once(t, atOnce, func(context.Context, *tcptraffic.Session) error { return nil })
			if err == nil || !strings.Contains(err.Error(), "busy: another test uses the link, since ") || !strings.HasSuffix(err.Error(), "try again in 5s") {
				t.Errorf("%v, want a refusal for the least time, 5 s", err)
			}
		})
		_, err := s.Transfer(ctx, plan(sample.Reverse, 2*time.Second))
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestTransferByTimeMovesPayloadForItsTime(t *testing.T) {
	remoteend.NothingLeft(t)
	for _, d := range sample.Directions() {
		res, out := transfer(t, plan(d, 700*time.Millisecond))
		sent, received := res.Sender[0], res.Receiver[0]
		t.Logf("%s: wrote %d, read %d, first %v, last %v, %d samples", d, sent.Payload, received.Payload, received.First, received.Last, received.Count)
		if res.Cut != "" || sent.Ended != tcptraffic.EndedTime || received.Payload == 0 || received.Payload > sent.Payload || res.Connect[0] <= 0 {
			t.Errorf("%s: cut %q, sender %s, %d of %d bytes", d, res.Cut, sent.Ended, received.Payload, sent.Payload)
		}
		if received.Last-received.First < 300*time.Millisecond || received.Last-received.First > 5*time.Second {
			t.Errorf("%s: payload from %v to %v", d, received.First, received.Last)
		}
		for _, end := range [][]tcptraffic.Sample{sent.Samples, received.Samples} {
			if len(end) < 3 || len(end) > 28 || end[len(end)-1].Payload == 0 {
				t.Errorf("%s: %d samples", d, len(end))
			}
		}
		moved := map[sample.Direction]int64{sample.Forward: out.ForwardBytes, sample.Reverse: out.ReverseBytes}
		if moved[d] < received.Payload || moved[1-d] == 0 || moved[1-d] > moved[d]/4 {
			t.Errorf("%s: %d bytes received, IP bytes %v", d, received.Payload, moved)
		}
		if sent.Final.RTT <= 0 || sent.CongestionControl == "" || sent.Buffer.Effective == 0 || sent.Buffer.Asked != 0 {
			t.Errorf("%s: %+v", d, sent)
		}
	}
}

func TestTransferByBytesMovesExactlyThem(t *testing.T) {
	remoteend.NothingLeft(t)
	for _, d := range sample.Directions() {
		for _, discard := range []bool{false, true} {
			p := plan(d, 20*time.Second)
			p.Bytes, p.Discard = 5_000_001, discard
			p.Flows = []tcptraffic.Flow{
				{Options: tcpsocket.Options{SendBuffer: 64 << 10, ReceiveBuffer: 32 << 10, CongestionControl: "reno"}, MessageBytes: 1000},
				{Options: tcpsocket.Options{ReceiveBuffer: 32 << 10, NoDelay: true, MSS: 1000}, MessageBytes: 64 << 10},
				{MessageBytes: 64 << 10},
			}
			res, _ := transfer(t, p)
			var sent, received int64
			for i := range res.Sender {
				sent, received = sent+res.Sender[i].Payload, received+res.Receiver[i].Payload
				if res.Sender[i].Ended != tcptraffic.EndedBytes || res.Receiver[i].Ended != tcptraffic.EndedClosed {
					t.Errorf("%s, flow %d: %s, %s", d, i, res.Sender[i].Ended, res.Receiver[i].Ended)
				}
			}
			if res.Cut != "" || sent != p.Bytes || received != p.Bytes {
				t.Errorf("%s: cut %q, sent %d, received %d", d, res.Cut, sent, received)
			}
			if got := res.Sender[0]; got.Buffer.Effective != 128<<10 || got.Buffer.Asked != 64<<10 || got.CongestionControl != "reno" {
				t.Errorf("%s: sender %+v, %s", d, got.Buffer, got.CongestionControl)
			}
			if got := res.Receiver[0].Buffer; got.Effective != 64<<10 || got.Asked != 32<<10 {
				t.Errorf("%s: receiver %+v", d, got)
			}
			if mss := res.Sender[1].Final.MSS; mss != 1000-12 {
				t.Errorf("%s: MSS %d", d, mss)
			}
		}
	}
}

// The time of a short flow begins before its handshake, and a flow that ends early has none.
func TestCompletionIsKnownOfFlowsThatEnded(t *testing.T) {
	for _, d := range sample.Directions() {
		p := plan(d, 20*time.Second)
		p.Bytes, p.Short = 2_000_000, true
		p.Flows[0].PacingRate = 10_000_000 // 200 ms
		begin := time.Now()
		res, _ := transfer(t, p)
		if took := res.Completion[0]; took < res.Connect[0]+100*time.Millisecond || took < res.Receiver[0].Last || took > time.Since(begin) {
			t.Errorf("%s: %v; handshake %v, received until %v", d, took, res.Connect[0], res.Receiver[0].Last)
		}
		p.Duration, p.Short = 50*time.Millisecond, false
		if res, _ := transfer(t, p); res.Completion[0] != 0 || res.Cut == "" {
			t.Errorf("%s: %v; %q", d, res.Completion[0], res.Cut)
		}
	}
}

// Messages leave at their times, and all have arrived at the end.
func TestMessagesAreWrittenAtTheirTimes(t *testing.T) {
	for _, d := range sample.Directions() {
		p := plan(d, 500*time.Millisecond)
		p.Flows[0].MessageBytes, p.Flows[0].MessageInterval, p.Flows[0].NoDelay = 1000, 5*time.Millisecond, true
		res, _ := transfer(t, p)
		sent, received := res.Sender[0], res.Receiver[0]
		if res.Cut != "" || sent.Ended != tcptraffic.EndedBytes || sent.Payload != 100_000 || received.Payload != 100_000 {
			t.Errorf("%s: %q, sent %d, received %d", d, res.Cut, sent.Payload, received.Payload)
		}
		if sent.Last < 495*time.Millisecond || sent.Final.SegmentsOut > 110 { // a busy host makes up for late messages, in fewer segments
			t.Errorf("%s: sent until %v, in %d segments", d, sent.Last, sent.Final.SegmentsOut)
		}
	}
}

// A socket that holds back a write holds back the messages after it: they are not sent in a burst.
func TestBlockedSocketHoldsBackTheSchedule(t *testing.T) {
	p := plan(sample.Forward, time.Second)
	p.Flows[0].MessageBytes, p.Flows[0].MessageInterval = 20_000, 5*time.Millisecond // 4 MB/s
	p.Flows[0].SendBuffer, p.Flows[0].PacingRate = 20_000, 1_000_000
	res, _ := transfer(t, p)
	if sent := res.Sender[0]; res.Cut != "" || sent.Payload < 500_000 || sent.Payload > 1_500_000 || res.Receiver[0].Payload != sent.Payload {
		t.Errorf("%q: sent %d, received %d; about 1 MB can be sent", res.Cut, sent.Payload, res.Receiver[0].Payload)
	}
}

func TestTransfersOverIPv6(t *testing.T) {
	shared := loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{Address: netip.IPv6Loopback(), Do: func(f func() error) error { return f() }})
	out, err := once(t, shared, func(ctx context.Context, s *tcptraffic.Session) error {
		for _, d := range sample.Directions() {
			p := plan(d, 20*time.Second)
			p.Bytes, p.Flows[0].DSCP = 1_000_000, 46
			if res, err := s.Transfer(ctx, p); err != nil || res.Cut != "" || res.Receiver[0].Payload != p.Bytes {
				return errors.Join(err, errors.New(d.String()))
			}
		}
		return nil
	})
	if err != nil || out.ForwardBytes < 1_000_000 || out.ReverseBytes < 1_000_000 {
		t.Errorf("%v; %d and %d IP bytes", err, out.ForwardBytes, out.ReverseBytes)
	}
}

func TestBothDirectionsOverlap(t *testing.T) {
	remoteend.NothingLeft(t)
	shared := loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{})
	_, err := once(t, shared, func(ctx context.Context, s *tcptraffic.Session) error {
		errs := make(chan error, 2)
		for _, d := range sample.Directions() {
			go func() {
				res, err := s.Transfer(ctx, plan(d, 500*time.Millisecond))
				if err == nil && (res.Cut != "" || res.Receiver[0].Payload == 0) {
					err = errors.New(d.String() + ": " + res.Cut)
				}
				errs <- err
			}()
		}
		return errors.Join(<-errs, <-errs)
	})
	if err != nil {
		t.Error(err)
	}
}

func TestMissingCongestionControlIsReportedWithTheList(t *testing.T) {
	for _, d := range sample.Directions() {
		p := plan(d, time.Second)
		p.Flows[0].CongestionControl = "nonesuch"
		out, err := once(t, loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{}), func(ctx context.Context, s *tcptraffic.Session) error {
			_, err := s.Transfer(ctx, p)
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "nonesuch: the kernel has") || !strings.Contains(err.Error(), "reno") {
			t.Errorf("%s: %v", d, err)
		}
		if want := map[sample.Direction]string{sample.Forward: runreason.Configuration, sample.Reverse: string(loadcontrol.BadRequest)}[d]; out.Reason != want {
			t.Errorf("%s: reason %s, want %s", d, out.Reason, want)
		}
	}
}

// The limit of a transfer holds for the IP bytes of both directions, whichever end sends.
func TestLimitOfIPBytesEndsATransfer(t *testing.T) {
	remoteend.NothingLeft(t)
	for _, d := range sample.Directions() {
		p := plan(d, 20*time.Second)
		p.Most = 3 << 20
		res, out := transfer(t, p)
		if res.Sender[0].Ended != tcptraffic.EndedLimit || !strings.Contains(res.Cut, "limit") || out.ForwardBytes+out.ReverseBytes > p.Most || out.ForwardBytes+out.ReverseBytes < p.Most/3 {
			t.Errorf("%s: %q, %d and %d IP bytes", d, res.Cut, out.ForwardBytes, out.ReverseBytes)
		}
	}
}

func TestTokensRateHoldsInBothDirections(t *testing.T) {
	const rate, lasts = 20e6 / 8, time.Second
	for _, d := range sample.Directions() {
		p := plan(d, lasts)
		p.Flows[0].MSS = 1460 // that of most paths; the initial window of loopback's would be a quarter of the rate
		p.Flows = append(p.Flows, p.Flows...)
		res, _ := transfer(t, p, "rate=20Mbit")
		payload := res.Receiver[0].Payload + res.Receiver[1].Payload
		took := max(res.Receiver[0].Last, res.Receiver[1].Last)
		t.Logf("%s: %d bytes in %v", d, payload, took)
		if limit := int64(256<<10 + rate*took.Seconds()); payload > limit || payload < rate*int64(lasts)/int64(time.Second)/2 {
			t.Errorf("%s: %d bytes in %v, limit %d", d, payload, took, limit)
		}
	}
}

// A small rest of the token's day shortens the session.
func TestTokensDayLimitsTheSession(t *testing.T) {
	shared := loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{}, "per-day=2MB")
	p := plan(sample.Forward, 20*time.Second)
	out, err := once(t, shared, func(ctx context.Context, s *tcptraffic.Session) error {
		p.Most = s.Left()
		res, err := s.Transfer(ctx, p)
		if err == nil && res.Sender[0].Ended != tcptraffic.EndedLimit {
			err = errors.New(res.Cut)
		}
		return err
	})
	if err != nil || out.ForwardBytes+out.ReverseBytes > 2e6 || out.ForwardBytes < 1e5 {
		t.Errorf("%v, %d and %d IP bytes", err, out.ForwardBytes, out.ReverseBytes)
	}
}

func TestTransferBeyondTheTokensDurationIsRefused(t *testing.T) {
	shared := loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{}, "duration=1s")
	out, err := once(t, shared, func(ctx context.Context, s *tcptraffic.Session) error {
		if _, err := s.Transfer(ctx, plan(sample.Reverse, 2*time.Second)); err == nil {
			t.Error("two seconds are accepted")
		}
		_, err := s.Transfer(ctx, plan(sample.Reverse, 200*time.Millisecond)) // the session goes on
		return err
	})
	if err != nil || out.Result != loadtest.Completed {
		t.Errorf("%s, %v", out.Result, err)
	}
}

// A run that is stopped in the middle leaves nothing at either end, and reports what it sent.
func TestStoppedRunFreesBothEnds(t *testing.T) {
	remoteend.NothingLeft(t)
	for _, d := range sample.Directions() {
		shared := loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{})
		ctx, cancel := context.WithCancel(t.Context())
		begun := time.Now()
		out, err := onceWithin(ctx, shared, func(ctx context.Context, s *tcptraffic.Session) error {
			time.AfterFunc(300*time.Millisecond, cancel)
			res, err := s.Transfer(ctx, plan(d, 20*time.Second))
			if res == nil || res.Cut == "" || res.Sender[0].Payload == 0 || res.Receiver[0].Payload == 0 {
				t.Errorf("%s: no partial result: %+v, %v", d, res, err)
			}
			return err
		})
		if err == nil || out.Result != loadtest.Incomplete || time.Since(begun) > 10*time.Second || out.ForwardBytes == 0 || out.ReverseBytes == 0 {
			t.Errorf("%s: %s after %v: %v; %d and %d bytes", d, out.Result, time.Since(begun), err, out.ForwardBytes, out.ReverseBytes)
		}
		connect(t, shared) // the link is free soon
	}
}

// A canceled transfer does not end the session.
func TestCanceledTransferLeavesTheSessionUsable(t *testing.T) {
	shared := loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{})
	_, err := once(t, shared, func(ctx context.Context, s *tcptraffic.Session) error {
		for _, d := range sample.Directions() {
			short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
			if _, err := s.Transfer(short, plan(d, 20*time.Second)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", d, err)
			}
			cancel()
		}
		ctxtime.Sleep(ctx, 100*time.Millisecond) // the records of the canceled transfers arrive
		res, err := s.Transfer(ctx, plan(sample.Reverse, 100*time.Millisecond))
		if err == nil && res.Cut != "" {
			t.Error(res.Cut)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A load server that shuts down ends the run, with what this end knows.
func TestLoadServerThatShutsDownEndsTheRun(t *testing.T) {
	for _, d := range sample.Directions() {
		ctx, shutDown := context.WithCancel(t.Context())
		shared := loadtesttest.RemoteEnd(ctx, t, loadtesttest.End{})
		out, err := once(t, shared, func(ctx context.Context, s *tcptraffic.Session) error {
			time.AfterFunc(300*time.Millisecond, shutDown)
			res, err := s.Transfer(ctx, plan(d, 20*time.Second))
			if res == nil || res.Cut == "" {
				t.Errorf("%s: no partial result: %+v", d, res)
			}
			return err
		})
		if err == nil || out.Result != loadtest.Incomplete || out.Reason != runreason.Lost || !strings.Contains(err.Error(), "shut") {
			t.Errorf("%s: %s, %s, %v", d, out.Result, out.Reason, err)
		}
	}
}
