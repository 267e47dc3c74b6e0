// Package loadtesttest has helpers for tests of load tests: a simulated link, and a real load
// server.
package loadtesttest

import (
	"context"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadserver"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/traffictypes"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/link"
)

// End is one end of a network: its address, and Do, which runs a function in its network namespace.
type End struct {
	Address netip.Addr
	Do      func(func() error) error
	// Clock is the clock of the load server. Default: a bound of 1 ms.
	Clock clock.Monitor
}

// RemoteEnd runs a load server until ctx ends, which must be before the end of the test, and returns
// the options to reach it with a token of these limits (loadserver.ParseLimits). The zero End is on
// loopback.
func RemoteEnd(ctx context.Context, t testing.TB, at End, limits ...string) loadsession.Options {
	t.Helper()
	if !at.Address.IsValid() {
		at.Address, at.Do = netip.MustParseAddr("127.0.0.1"), func(f func() error) error { return f() }
	}
	if at.Clock == nil {
		at.Clock = static.New(time.Millisecond, metric.Discard{})
	}
	dir := t.TempDir()
	o := loadsession.DefaultOptions()
	o.TokenFile = filepath.Join(dir, "token")
	WriteToken(t, filepath.Join(dir, "tokens"), o.TokenFile, limits...)
	r, err := loadserver.New(loadserver.Options{
		Listen: []netip.AddrPort{netip.AddrPortFrom(at.Address, 0)}, TokensFile: filepath.Join(dir, "tokens"), StateDir: dir,
	}, loadserver.Env{
		Log: slog.New(slog.DiscardHandler), Sink: metric.Discard{}, Clock: at.Clock,
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

// Run runs a test of a type once, for path a-to-b and a probe with the name of the type. progress may be nil.
func Run[O any](t *testing.T, of loadsession.Type[O], shared loadsession.Options, own O, sink metric.Sink, progress func(loadtest.Progress)) (*loadtest.Outcome, error) {
	t.Helper()
	env := probe.Env{Log: slog.New(slog.DiscardHandler), Sink: sink, Clock: static.New(time.Millisecond, metric.Discard{})}
	target := probe.Target{Path: "a-to-b", Probe: of.TypeName, Peer: "127.0.0.1"}
	test, err := of.Make(target, shared, own)
	if err != nil {
		t.Fatal(err)
	}
	return loadtest.RunOnce(t.Context(), env, target, shared.Options, test, nil, progress)
}

// WriteToken makes a token with these limits. It appends the hash to the file tokens and writes the
// text to the file secret, with a comment.
func WriteToken(t testing.TB, tokens, secret string, limits ...string) {
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

// RunKind runs a kind once with these options.
func RunKind[S loadsession.Session](ctx context.Context, env probe.Env, target probe.Target, o loadsession.Options, k loadsession.Kind[S], progress func(loadtest.Progress)) (*loadtest.Outcome, error) {
	test, err := loadsession.NewTest(target, o, k)
	if err != nil {
		return nil, err
	}
	return loadtest.RunOnce(ctx, env, target, o.Options, test, nil, progress)
}

// Directed returns the notes of a run, with one for each direction in the place of one that both directions have.
func Directed(notes []string) []string {
	var all []string
	for _, note := range notes {
		if rest, both := strings.CutPrefix(note, "both directions: "); both {
			for _, d := range sample.Directions() {
				all = append(all, d.String()+": "+rest)
			}
			continue
		}
		all = append(all, note)
	}
	return all
}
