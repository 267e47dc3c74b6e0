package influxdb

import (
	"context"
	"log/slog"
	"strings"
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
