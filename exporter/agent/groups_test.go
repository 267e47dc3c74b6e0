package agent_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/clocks"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/output"
	"oneway.example/exporter/output/collect"
	"oneway.example/exporter/output/point"
	"oneway.example/exporter/output/point/series"
	"oneway.example/exporter/output/promsink"
	"oneway.example/exporter/watcher"
	"oneway.example/tests/await"
)

// gatherer is an output that looks for a point.
type gatherer struct {
	env   output.Env
	found atomic.Bool
}

func (g *gatherer) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (*gatherer) Status() output.Status { return output.Status{} }

// look converts the series once, as an output does at each interval.
func (g *gatherer) look() bool {
	_ = g.env.Series(instant.Now(), func(p *point.Point) {
		tags := []point.Tag{{Key: "band", Value: "low"}, {Key: "dummy", Value: "a"}}
		if p.Measurement == "oneway_dummy_band_dummy" && slices.Equal(p.Tags, tags) && p.Fields[0].Key == "dummy_level_bytes" {
			g.found.Store(true)
		}
	})
	return g.found.Load()
}

// TestFamiliesOfATypeAreInPointsAndInTheChecksOfLabels: the type declares them, and nothing else in the program names them.
func TestFamiliesOfATypeAreInPointsAndInTheChecksOfLabels(t *testing.T) {
	file := filepath.Join(t.TempDir(), "oneway.yml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte("clock: {source: none}\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sink := promsink.New(promsink.Options{})
	o := agent.Options{ConfigFile: file, Types: agent.Types{Clocks: clocks.All(), Watchers: []watcher.Type{dummyType{}}}, Sink: sink, Notify: func(string) {}}
	o.Series = series.Of(o.Types.MetricGroups(), sink)
	out := &gatherer{}
	o.Output = func(env output.Env) output.Output { out.env = env; return out }
	write("watchers: [{type: agent_test_dummy, name: a, most: 3}]")
	a, err := agent.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	await.That(t, "the point of the dummy is there", out.look)
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := collect.CheckTags(out.env, []point.Tag{{Key: "band", Value: "x"}}); err == nil {
		t.Error("a tag of all points may have the name of a label of the dummy")
	}
	if dummyLevel.In(metric.Slim) == nil {
		t.Error("the family is not in profile slim")
	}
	write("paths: [{name: a, peer: 192.0.2.1, labels: {band: low}}]\nmesh: []")
	if _, _, err := agent.Check(o); err == nil || !strings.Contains(err.Error(), "labels.band has the name of a label of metrics") {
		t.Errorf("a path has a label of the dummy: %v", err)
	}
}
