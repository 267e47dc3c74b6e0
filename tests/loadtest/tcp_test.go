package loadtest

import (
	"context"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadserver"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/loadtesttest"
	"oneway.example/exporter/load/traffic"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/link"
	"oneway.example/tests/await"
)

// bulk is a load test of one TCP transfer in one direction.
type bulk struct {
	direction sample.Direction
	lasts     time.Duration
	most      int64
}

func (bulk) Kind() string                                      { return "bulk" }
func (b bulk) Bytes(int64) int64                               { return b.most }
func (b bulk) Duration() time.Duration                         { return b.lasts }
func (bulk) Publish(*loadtest.Values, *loadtest.Run)           {}
func (bulk) Traffic() loadsession.Traffic[*tcptraffic.Session] { return tcptraffic.Local{} }
func (b bulk) Perform(ctx context.Context, s *tcptraffic.Session, r *loadtest.Run) error {
	t, err := s.Transfer(ctx, tcptraffic.Plan{
		Direction: b.direction, Duration: b.lasts, Most: b.most, Interval: 100 * time.Millisecond, Idle: 5 * time.Second,
		Flows: []tcptraffic.Flow{{MessageBytes: 64 << 10}},
	})
	if err == nil {
		r.Body = [3]int64{t.Sender[0].Payload, t.Receiver[0].Payload, t.Sender[0].Final.Retransmitted}
	}
	return err
}

// A load server with a type of traffic of its own, which packages loadcontrol, loadserver and loadtest do not know, runs a test
// with a link, a quota, a session and an outcome.
func TestSecondTypeOfTrafficRuns(t *testing.T) {
	remote := link.NewTable(nil)
	r, o := respondWith(t, remote, []traffic.Type{tcptraffic.NewType()}, loadcontrol.Limits{})
	local := link.NewTable(nil)
	env := probe.Env{Log: slog.New(slog.DiscardHandler), Sink: metric.Discard{}, Clock: static.New(time.Millisecond, metric.Discard{}), Links: local}
	target := probe.Target{Path: "office", Probe: "bulk", Peer: "127.0.0.1"}
	for _, d := range sample.Directions() {
		test := bulk{d, time.Second, 64 << 20}
		out, err := loadtesttest.RunKind(t.Context(), env, target, o, test, nil)
		if err != nil {
			t.Fatalf("%s: %v", d, err)
		}
		res := out.Body.([3]int64)
		moved := map[sample.Direction]int64{sample.Forward: out.ForwardBytes, sample.Reverse: out.ReverseBytes}[d]
		t.Logf("%s: %d bytes sent, %d received, %d retransmitted, %d IP bytes", d, res[0], res[1], res[2], moved)
		// The limit is of IP bytes. TCP retransmits what is outstanding when it is reached.
		if res[0] == 0 || res[1] < res[0]/2 || moved < res[0] || moved > test.most+res[2] {
			t.Errorf("%s: %+v, %d counted, want at most %d", d, res, moved, test.most)
		}
		ended(t, r)
	}
	if s := r.Status(); s.Opened != 2 || s.Started != 2 || s.Received == 0 || s.Sent == 0 {
		t.Errorf("the load server: %+v", s)
	}
	if _, _, held := remote.Holder(loadserver.DefaultLink); held {
		t.Error("the remote link is still held")
	}
}

// ended waits for the end of the remote session after the client's.
func ended(t *testing.T, r *loadserver.LoadServer) {
	t.Helper()
	// the remote session ends asynchronously
	for end := time.Now().Add(20 * time.Second); r.Status().Sessions > 0; ctxtime.Sleep(t.Context(), 5*time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the remote session did not end with the client's")
		}
	}
}

// The rate is that of all sessions of a token together, in each direction.
func TestRateOfATokenHoldsForASecondTypeOfTraffic(t *testing.T) {
	const rate, atOnce, chunk, lasts = 2e6, 256 << 10, 64 << 10, 700 * time.Millisecond
	r, o := respondWith(t, link.NewTable(nil), []traffic.Type{tcptraffic.NewType()}, loadcontrol.Limits{BytesPerSecond: rate})
	env := probe.Env{Log: slog.New(slog.DiscardHandler), Sink: metric.Discard{}, Clock: static.New(time.Millisecond, metric.Discard{}), Links: link.NewTable(nil)}
	target := probe.Target{Path: "office", Probe: "bulk", Peer: "127.0.0.1"}
	for _, d := range sample.Directions() {
		begin := time.Now()
		for range 2 {
			if _, err := loadtesttest.RunKind(t.Context(), env, target, o, bulk{d, lasts, 64 << 20}, nil); err != nil {
				t.Fatalf("%s: %v", d, err)
			}
			ended(t, r)
		}
		took := time.Since(begin)
		moved := r.Status().Received
		if d == sample.Reverse {
			moved = r.Status().Sent
		}
		most := atOnce + 2*chunk + int64(rate*took.Seconds())
		t.Logf("%s: %d bytes in %v, limit %d", d, moved, took, most)
		if moved > most || moved < int64(rate*lasts.Seconds())/2 {
			t.Errorf("%s: %d bytes in %v; the token allows %d", d, moved, took, most)
		}
	}
}

// A load server without this type of traffic reports those it has.
func TestUnknownTrafficIsRefusedByNameWithThoseKnown(t *testing.T) {
	_, o := respondWith(t, link.NewTable(nil), []traffic.Type{udptraffic.NewType()}, loadcontrol.Limits{})
	env := probe.Env{Log: slog.New(slog.DiscardHandler), Sink: metric.Discard{}, Clock: static.New(time.Millisecond, metric.Discard{}), Links: link.NewTable(nil)}
	target := probe.Target{Path: "office", Probe: "bulk", Peer: "127.0.0.1"}
	out, err := loadtesttest.RunKind(t.Context(), env, target, o, bulk{sample.Forward, time.Second, 1 << 20}, nil)
	want := "load server " + o.LoadServer + `: refused: wrong_version: traffic "tcp" is unknown to this load server, oneway 1.2.3; it has udp`
	if err == nil || out.Error != want || out.Result != loadtest.Refused || out.Reason != string(loadcontrol.WrongVersion) {
		t.Errorf("%+v\n got %v\nwant %s", out, err, want)
	}
}

func respondWith(t *testing.T, links *link.Table, types []traffic.Type, limits loadcontrol.Limits) (*loadserver.LoadServer, loadsession.Options) {
	t.Helper()
	dir := t.TempDir()
	o := loadsession.DefaultOptions()
	o.TokenFile = filepath.Join(dir, "token")
	token, text, err := loadserver.NewToken("test", limits)
	if err == nil {
		err = loadserver.AppendToken(filepath.Join(dir, "tokens"), token)
	}
	if err == nil {
		err = os.WriteFile(o.TokenFile, []byte(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := loadserver.New(loadserver.Options{
		Listen: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}, TokensFile: filepath.Join(dir, "tokens"), StateDir: dir,
	}, loadserver.Env{
		Log: slog.New(slog.DiscardHandler), Sink: metric.Discard{}, Clock: static.New(time.Millisecond, metric.Discard{}),
		Links: links, Traffic: types, Version: "1.2.3",
	})
	if err != nil {
		t.Fatal(err)
	}
	await.Serving(t, r)
	o.LoadServer, o.Pin = r.Addrs()[0].String(), r.Pin()
	return r, o
}
