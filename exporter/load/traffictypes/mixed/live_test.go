package mixed_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/loadtesttest"
	"oneway.example/exporter/load/traffictypes/mixed"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/exporter/probe"
	"oneway.example/tests/remoteend"
)

// kind is a load test that calls a function.
type kind struct {
	perform func(ctx context.Context, u *udptraffic.Session, t *tcptraffic.Session) error
}

func (kind) Kind() string                                 { return "test" }
func (kind) Bytes(int64) int64                            { return 1 << 30 }
func (kind) Duration() time.Duration                      { return 10 * time.Second }
func (kind) Traffic() loadsession.Traffic[*mixed.Session] { return mixed.Local{} }
func (kind) Publish(*loadtest.Values, *loadtest.Run)      {}
func (k kind) Perform(ctx context.Context, s *mixed.Session, _ *loadtest.Run) error {
	return k.perform(ctx, s.UDP, s.TCP)
}

func once(t *testing.T, o loadsession.Options, perform func(ctx context.Context, u *udptraffic.Session, t *tcptraffic.Session) error) (*loadtest.Outcome, error) {
	t.Helper()
	env := probe.Env{Log: slog.New(slog.DiscardHandler), Sink: metric.Discard{}, Clock: static.New(time.Millisecond, metric.Discard{})}
	return loadtesttest.RunKind(t.Context(), env, probe.Target{Path: "office", Probe: "test", Peer: "127.0.0.1"}, o, kind{perform}, nil)
}

func stream(u *udptraffic.Session, d sample.Direction) func(context.Context) error {
	return func(ctx context.Context) error {
		r, err := u.Transfer(ctx, d, u.Plan(u.PacedSegment(500, 50_000, 300*time.Millisecond)), nil)
		if err == nil && r.Counts.Arrived < 25 {
			err = errors.New("packets are missing")
		}
		return err
	}
}

func transfer(s *tcptraffic.Session, d sample.Direction) func(context.Context) error {
	return func(ctx context.Context) error {
		p := tcptraffic.Plan{Direction: d, Flows: []tcptraffic.Flow{{MessageBytes: 10_000}}, Duration: 10 * time.Second, Bytes: 1_000_000, Most: 1 << 28, Interval: 100 * time.Millisecond, Idle: 5 * time.Second}
		r, err := s.Transfer(ctx, p)
		if err == nil && (r.Cut != "" || r.Receiver[0].Payload != p.Bytes) {
			err = errors.New(r.Cut)
		}
		return err
	}
}

// Both types of traffic work in one session, one after the other and at once, and the run has the bytes of both.
func TestPartsOfASessionWorkAloneAndTogether(t *testing.T) {
	remoteend.NothingLeft(t)
	out, err := once(t, loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{}), func(ctx context.Context, u *udptraffic.Session, s *tcptraffic.Session) error {
		for _, d := range sample.Directions() {
			for _, do := range []func(context.Context) error{stream(u, d), transfer(s, d)} {
				if err := do(ctx); err != nil {
					return err
				}
			}
		}
		errs := make(chan error, 2)
		for _, do := range []func(context.Context) error{stream(u, sample.Reverse), transfer(s, sample.Reverse)} {
			go func() { errs <- do(ctx) }()
		}
		return errors.Join(<-errs, <-errs)
	})
	if err != nil {
		t.Fatal(err)
	}
	// 30 packets of 500 bytes each time, and 1 MB with its headers.
	if f, r := out.ForwardBytes, out.ReverseBytes; f < 1_015_000 || f > 1_300_000 || r < 2_030_000 || r > 2_600_000 {
		t.Errorf("%d and %d IP bytes", f, r)
	}
}

// The refusal of a part's transfer reaches the part, and the session goes on.
func TestRefusedTransferLeavesTheSession(t *testing.T) {
	_, err := once(t, loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{}, "rate=1Mbit"), func(ctx context.Context, u *udptraffic.Session, s *tcptraffic.Session) error {
		_, err := u.Transfer(ctx, sample.Forward, u.Plan(u.PacedSegment(1000, 10e6, time.Second)), nil)
		if refusal, ok := errors.AsType[*loadcontrol.Refusal](err); !ok || refusal.Reason != loadcontrol.RateLimit {
			t.Errorf("%v, want a refusal by the rate", err)
		}
		return stream(u, sample.Forward)(ctx)
	})
	if err != nil {
		t.Error(err)
	}
}

func TestReplyWithoutThePartsIsAnError(t *testing.T) {
	shared := loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{})
	client := dial(t, shared)
	defer func() { _ = client.Close() }() // it returns no error
	_, err := client.OpenParts(t.Context(), loadcontrol.Open{Traffic: udptraffic.Name, Bytes: 1000, Duration: time.Minute, Run: "x"}, udptraffic.Name, tcptraffic.Name)
	if err == nil || !strings.Contains(err.Error(), "reply to open") {
		t.Error(err)
	}
}

func dial(t *testing.T, o loadsession.Options) *loadcontrol.Client {
	t.Helper()
	text, err := os.ReadFile(o.TokenFile)
	if err != nil {
		t.Fatal(err)
	}
	token := strings.Fields(string(text))
	client, err := loadcontrol.Dial(t.Context(), loadcontrol.ClientOptions{Address: o.LoadServer, Pin: o.Pin, Token: token[len(token)-1]})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestUnknownPartsAndMessagesAreRefused(t *testing.T) {
	remoteend.NothingLeft(t)
	shared := loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{})
	ignore := func(*loadcontrol.TrafficMessage, []byte) error { return nil } // the load server may say alive before it refuses
	for _, c := range []struct{ parts, message, want string }{
		{`{"parts":[]}`, "", "0 parts"},
		{`{"parts":["udp","udp"]}`, "", "udp of a mixed session is unknown or a duplicate"},
		{`{"parts":["udp","mixed"]}`, "", "mixed of a mixed session is unknown"},
		{`{"parts":["tcp"]}`, "udp.start", "unexpected message udp.start"},
		{`{"parts":["tcp"]}`, "transfer", "unexpected message transfer"},
		{`{"parts":["tcp"]}`, "tcp.nonsense", "unexpected message nonsense"},
	} {
		var client *loadcontrol.Client
		var err error
		remoteend.Eventually(t, "the link is free", func() bool {
			client = dial(t, shared)
			_, err = client.Open(t.Context(), loadcontrol.Open{Traffic: mixed.Name, Bytes: 1000, Duration: time.Minute, Run: "x", Parameters: json.RawMessage(c.parts)}, ignore)
			refusal, refused := errors.AsType[*loadcontrol.Refusal](err)
			return !refused || refusal.Reason != loadcontrol.Busy
		})
		if c.message != "" && err == nil {
			if err = client.SendMessage(c.message, struct{}{}); err == nil {
				<-client.Done()
				err = client.Err()
			}
		}
		if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), `"`, ""), c.want) {
			t.Errorf("%s, %s: %v, want %s", c.parts, c.message, err, c.want)
		}
		_ = client.Close() // the load server has ended the session
	}
}
