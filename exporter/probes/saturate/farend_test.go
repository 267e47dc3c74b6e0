package saturate_test

import (
	"context"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"oneway.example/exporter/clock/static"
	"oneway.example/exporter/control"
	"oneway.example/exporter/heavy"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/responder"
	"oneway.example/exporter/sched"
)

var target = probe.Target{Path: "office", Probe: "saturate", Peer: "192.0.2.1"}

func envWith(sink metric.Sink) probe.Env {
	return probe.Env{Log: slog.New(slog.DiscardHandler), Sink: sink, Clock: static.New(time.Millisecond, metric.Discard{})}
}

// farEnd runs a responder at an address, and says how to reach it.
func farEnd(t *testing.T, at netip.AddrPort, do func(func() error) error) heavy.Options {
	t.Helper()
	dir := t.TempDir()
	token, text, err := responder.NewToken("test", control.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if err := responder.AppendToken(filepath.Join(dir, "tokens"), token); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	links, err := sched.NewLinks(sched.LinksOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := responder.New(responder.Options{
		Listen: []netip.AddrPort{at}, TokensFile: filepath.Join(dir, "tokens"), StateDir: dir,
	}, responder.Env{
		Log: slog.New(slog.DiscardHandler), Sink: metric.Discard{}, Clock: static.New(time.Millisecond, metric.Discard{}), Links: links,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- do(func() error { return r.Run(ctx) }) }()
	select {
	case <-r.Started():
	case err := <-ended:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	o := heavy.DefaultOptions()
	o.Responder, o.Pin, o.TokenFile = r.Addrs()[0].String(), r.Pin(), filepath.Join(dir, "token")
	return o
}
