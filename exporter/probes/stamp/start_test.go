package stamp

import (
	"log/slog"
	"testing"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/probe"
)

func TestSessionsThatBeginTogetherStartOneByOne(t *testing.T) {
	kind := NewType()
	const now = time.Hour
	for i := range time.Duration(1000) {
		if got := kind.startDelay(now); got != i*startGap {
			t.Fatalf("session %d waits %v, want %v", i, got, i*startGap)
		}
	}
	if got := kind.startDelay(now + time.Second); got != 0 {
		t.Errorf("a session that begins a second later waits %v, want 0", got)
	}
	if got := kind.startDelay(now + time.Second); got != startGap {
		t.Errorf("the next one waits %v, want %v", got, startGap)
	}
}

func TestPathsWithEqualOptionsShareThem(t *testing.T) {
	kind, env := NewType(), probe.Env{Log: slog.New(slog.DiscardHandler), Sink: metric.Discard{}}
	made := func(change func(*Options)) *Options {
		o := DefaultOptions()
		change(&o)
		p, err := kind.NewProber(env, probe.Target{Path: "p", Probe: "stamp", Peer: "127.0.0.1"}, o)
		if err != nil {
			t.Fatal(err)
		}
		return p.opts
	}
	same := func(*Options) {}
	first := made(same)
	if made(same) != first {
		t.Error("two paths with the default options have a copy each")
	}
	if o := made(func(o *Options) { o.Codecs[0] = "G.729" }); o == first || first.Codecs[0] == "G.729" {
		t.Error("a path with another codec shares the options")
	}
}
