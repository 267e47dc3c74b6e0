package influxdb

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/output"
	"oneway.example/exporter/output/spool"
	"oneway.example/tests/await"
)

// TestSpoolThatCannotBeOpenedIsTriedAgain: meanwhile the status names the keys, and the series of the output exist, without
// waiting points, so that an alert can tell.
func TestSpoolThatCannotBeOpenedIsTriedAgain(t *testing.T) {
	o := DefaultOptions()
	o.URL, o.Version, o.Database = "http://127.0.0.1:1", 1, "d"
	used := t.TempDir()
	other, err := spool.Open(spool.Options{Dir: used, MaxBytes: minSpoolBytes})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for dir, want := range map[string]string{secret(t, "a file") + "/spool": "not a directory", used: "in use by another process: " + used} {
		o.Spool.Directory = &dir
		sink := new(metrictest.Sink)
		out, err := newOutput(output.Env{Name: "test", Groups: metric.Groups(), Log: slog.New(slog.DiscardHandler), Sink: sink, Scopes: new(metric.Scopes)}, o)
		if err != nil {
			t.Fatal(err)
		}
		out.backoff.first = time.Millisecond
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- out.Run(ctx) }()
		await.That(t, "the status names the fault", func() bool {
			reason := out.Status().Reason
			return strings.Contains(reason, want) && strings.Contains(reason, "state_dir, or spool.directory")
		})
		if _, found := sink.Value(metric.OutputSpoolLimit, "test"); !found {
			t.Error("no limit of the spool")
		}
		if n, found := sink.Value(metric.OutputWaiting, "test"); found {
			t.Errorf("%v waiting points of a spool that is not open", n)
		}
		if dir == used {
			other.Close()
			await.That(t, "the spool is open", func() bool {
				_, found := sink.Value(metric.OutputWaiting, "test")
				return found
			})
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestRemovedStateDirectoryLosesNoPoint: the store does not accept meanwhile. The log has it once, and why the directory cannot be made
// again; so does the status.
func TestRemovedStateDirectoryLosesNoPoint(t *testing.T) {
	s := newStore(t)
	var accepts atomic.Bool
	s.on(func(w http.ResponseWriter, _ request) bool {
		if accepts.Load() {
			return false
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	state := filepath.Join(t.TempDir(), "state")
	r := start(t, options(s), state)
	r.add(0, 10)
	if err := os.RemoveAll(state); err != nil {
		t.Fatal(err)
	}
	await.That(t, "the log has it", func() bool { return strings.Contains(r.log.String(), "spool was removed") })
	r.add(10, 10)
	if err := errors.Join(os.RemoveAll(state), os.WriteFile(state, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	saved := func(want float64) func() bool {
		return func() bool { return r.value(metric.OutputSpoolSaved.Name, "test") == want }
	}
	await.That(t, "the spool cannot be written", saved(0))
	r.add(20, 10)
	if err := os.Remove(state); err != nil {
		t.Fatal(err)
	}
	await.That(t, "the spool is written again", saved(1))
	r.add(30, 10)
	accepts.Store(true)
	r.arrive(s, 40)
	if status := r.Status(); status.Dropped != 0 || status.Waiting != 0 {
		t.Errorf("%+v, want none dropped", status)
	}
	r.stop()
	for text, want := range map[string]int{"spool was removed": 2, "Spool cannot be written": 1, "Spool is written again": 1} {
		if n := strings.Count(r.log.String(), text); n != want {
			t.Errorf("%q is in the log %d times, want %d:\n%s", text, n, want, r.log.String())
		}
	}
}
