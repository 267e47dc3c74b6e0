package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/net/sched"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/stamp"
	"oneway.example/tests/testbed"
)

// ourBound is the configured bound of oneway's clocks: both ends share one clock, so that any value above zero is
// correct.
const ourBound = 20 * time.Microsecond

func startClock(t *testing.T) clock.Monitor {
	t.Helper()
	m := static.New(ourBound, metric.Discard{})
	testbed.Background(t, m.Run)
	return m
}

func newEnv(t *testing.T) probe.Env {
	t.Helper()
	pacer, err := sched.NewPacer()
	if err != nil {
		t.Fatal(err)
	}
	testbed.Background(t, pacer.Run)
	return probe.Env{Log: slog.New(slog.DiscardHandler), Sink: metric.Discard{}, Clock: startClock(t), Pacer: pacer}
}

// measure is `oneway probe`.
func measure(t *testing.T, env probe.Env, peer string, o stamp.Options, count uint64) (stamp.Report, error) {
	t.Helper()
	p, err := stamp.NewType().NewProber(env, probe.Target{Path: "interop", Probe: "stamp", Peer: peer}, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	return p.Measure(ctx, count, func(stamp.Report) {})
}

func quick() stamp.Options {
	o := stamp.DefaultOptions()
	o.Interval, o.LossTimeout = 2*time.Millisecond, 2*time.Second
	return o
}

// secret is one shared secret in the file formats of both programs.
type secret struct{ ours, theirs string }

func writeSecret(t *testing.T) secret {
	t.Helper()
	const digits = "00112233445566778899aabbccddeeff0f1e2d3c4b5a69788796a5b4c3d2e1f0"
	dir := t.TempDir()
	s := secret{ours: filepath.Join(dir, "ours"), theirs: filepath.Join(dir, "theirs")}
	for path, text := range map[string]string{s.ours: "hex:" + digits + "\n", s.theirs: digits} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * 1e9) }

func show(d *stamp.Distribution) string {
	if d == nil || d.P50 == nil {
		return "-"
	}
	return fmt.Sprint(duration(*d.P50).Round(100 * time.Nanosecond))
}
