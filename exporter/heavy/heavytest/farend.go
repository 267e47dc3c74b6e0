package heavytest

import (
	"context"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"oneway.example/exporter/clock/static"
	"oneway.example/exporter/heavy"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/responder"
	"oneway.example/exporter/sched"
)

// Loopback is where a far end listens that needs no network.
func Loopback() netip.AddrPort { return netip.MustParseAddrPort("127.0.0.1:0") }

// Here runs f where it is called: the do of a FarEnd in no namespace of its own.
func Here(f func() error) error { return f() }

// FarEnd runs a real responder at an address until the test ends and says how to reach it,
// with a token of these limits (responder.ParseLimits). do runs what opens sockets there.
func FarEnd(t *testing.T, at netip.AddrPort, do func(func() error) error, limits ...string) heavy.Options {
	t.Helper()
	dir := t.TempDir()
	o := heavy.DefaultOptions()
	o.TokenFile = filepath.Join(dir, "token")
	WriteToken(t, filepath.Join(dir, "tokens"), o.TokenFile, limits...)
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
	o.Responder, o.Pin = r.Addrs()[0].String(), r.Pin()
	return o
}

// WriteToken makes a token of these limits, known to who reads the file tokens and held by
// who reads secret, which has a comment as a person's may.
func WriteToken(t *testing.T, tokens, secret string, limits ...string) {
	t.Helper()
	allowed, err := responder.ParseLimits(limits)
	if err != nil {
		t.Fatal(err)
	}
	token, text, err := responder.NewToken("test", allowed)
	if err != nil {
		t.Fatal(err)
	}
	if err := responder.AppendToken(tokens, token); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(secret, []byte("# ours\n"+text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}
