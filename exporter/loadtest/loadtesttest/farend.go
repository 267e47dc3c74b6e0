// Package loadtesttest has what tests of load tests need: a link in place of a remote end, and a real
// remote end.
package loadtesttest

import (
	"context"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"oneway.example/exporter/clock/static"
	"oneway.example/exporter/link"
	"oneway.example/exporter/loadserver"
	"oneway.example/exporter/loadtest"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/traffictypes"
)

// End is one end of a network: an address, and what runs a function where it is.
type End struct {
	Address netip.Addr
	Do      func(func() error) error
}

// RemoteEnd runs a real load server until ctx, which is the test's or ends before it, and says how
// to reach it, with a token of these limits (loadserver.ParseLimits). The zero End is on loopback.
func RemoteEnd(ctx context.Context, t *testing.T, at End, limits ...string) loadtest.Options {
	t.Helper()
	if !at.Address.IsValid() {
		at = End{Address: netip.MustParseAddr("127.0.0.1"), Do: func(f func() error) error { return f() }}
	}
	dir := t.TempDir()
	o := loadtest.DefaultOptions()
	o.TokenFile = filepath.Join(dir, "token")
	WriteToken(t, filepath.Join(dir, "tokens"), o.TokenFile, limits...)
	r, err := loadserver.New(loadserver.Options{
		Listen: []netip.AddrPort{netip.AddrPortFrom(at.Address, 0)}, TokensFile: filepath.Join(dir, "tokens"), StateDir: dir,
	}, loadserver.Env{
		Log: slog.New(slog.DiscardHandler), Sink: metric.Discard{}, Clock: static.New(time.Millisecond, metric.Discard{}),
		Links: link.NewTable(nil), Traffic: traffictypes.All(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- at.Do(func() error { return r.Run(ctx) }) }()
	select {
	case <-r.Started():
	case err := <-ended:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	o.LoadServer, o.Pin = r.Addrs()[0].String(), r.Pin()
	return o
}

// WriteToken makes a token of these limits, known to who reads the file tokens and held by
// who reads secret, which has a comment as a person's may.
func WriteToken(t *testing.T, tokens, secret string, limits ...string) {
	t.Helper()
	allowed, err := loadserver.ParseLimits(limits)
	if err != nil {
		t.Fatal(err)
	}
	token, text, err := loadserver.NewToken("test", allowed)
	if err != nil {
		t.Fatal(err)
	}
	if err := loadserver.AppendToken(tokens, token); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(secret, []byte("# ours\n"+text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}
