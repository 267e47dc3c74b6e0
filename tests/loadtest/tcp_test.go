package loadtest

import (
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
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/traffic"
	"oneway.example/exporter/load/traffictypes"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/link"
	"oneway.example/tests/await"
	"oneway.example/tests/loadtcp"
)

// A type of traffic that packages loadcontrol, loadserver and loadtest do not know runs with a link, a quota,
// a session and an outcome.
func TestSecondTypeOfTrafficRuns(t *testing.T) {
	remote := link.NewTable(nil)
	r, o := respondWith(t, remote, append(traffictypes.All(), loadtcp.Type{}), loadcontrol.Limits{})
	local := link.NewTable(nil)
	env := probe.Env{Log: slog.New(slog.DiscardHandler), Sink: metric.Discard{}, Clock: static.New(time.Millisecond, metric.Discard{}), Links: local}
	target := probe.Target{Path: "office", Probe: "bulk", Peer: "127.0.0.1"}
	for _, d := range sample.Directions() {
		test := loadtcp.Bulk{Direction: d, For: time.Second, Most: 64 << 20}
		out, err := loadtest.RunOnce(t.Context(), env, target, o, test, nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", d, err)
		}
		res := out.Body.(loadtcp.Result)
		moved := map[sample.Direction]int64{sample.Forward: out.ForwardBytes, sample.Reverse: out.ReverseBytes}[d]
		t.Logf("%s: %d bytes at this end, %d at the remote end", d, res.Sent, res.Received)
		if res.Sent == 0 || res.Received < res.Sent/2 || moved != res.Sent || res.Sent > test.Most+64<<10 {
			t.Errorf("%s: %+v, %d counted, want at most %d", d, res, moved, test.Most)
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
	r, o := respondWith(t, link.NewTable(nil), []traffic.Type{loadtcp.Type{}}, loadcontrol.Limits{BytesPerSecond: rate})
	env := probe.Env{Log: slog.New(slog.DiscardHandler), Sink: metric.Discard{}, Clock: static.New(time.Millisecond, metric.Discard{}), Links: link.NewTable(nil)}
	target := probe.Target{Path: "office", Probe: "bulk", Peer: "127.0.0.1"}
	for _, d := range sample.Directions() {
		begin := time.Now()
		for range 2 {
			if _, err := loadtest.RunOnce(t.Context(), env, target, o, loadtcp.Bulk{Direction: d, For: lasts, Most: 64 << 20}, nil, nil); err != nil {
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
	_, o := respondWith(t, link.NewTable(nil), traffictypes.All(), loadcontrol.Limits{})
	env := probe.Env{Log: slog.New(slog.DiscardHandler), Sink: metric.Discard{}, Clock: static.New(time.Millisecond, metric.Discard{}), Links: link.NewTable(nil)}
	target := probe.Target{Path: "office", Probe: "bulk", Peer: "127.0.0.1"}
	out, err := loadtest.RunOnce(t.Context(), env, target, o, loadtcp.Bulk{For: time.Second, Most: 1 << 20}, nil, nil)
	want := "load server " + o.LoadServer + `: refused: wrong_version: traffic "bulk" is unknown to this load server, oneway 1.2.3; it has udp, tcp, mixed`
	if err == nil || out.Error != want || out.Result != loadtest.Refused || out.Reason != string(loadcontrol.WrongVersion) {
		t.Errorf("%+v\n got %v\nwant %s", out, err, want)
	}
}

func respondWith(t *testing.T, links *link.Table, types []traffic.Type, limits loadcontrol.Limits) (*loadserver.LoadServer, loadtest.Options) {
	t.Helper()
	dir := t.TempDir()
	o := loadtest.DefaultOptions()
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
