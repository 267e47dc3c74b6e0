// Package embedded runs an agent whose measurements go to Telegraf.
package embedded

import (
	"context"
	"log/slog"
	"slices"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/families"
	"oneway.example/exporter/output"
	"oneway.example/exporter/output/collect"
	"oneway.example/exporter/output/point"
	"oneway.example/exporter/output/point/series"
	"oneway.example/exporter/output/promsink"
	"oneway.example/exporter/probes/stamp"

	"oneway.example/telegraf-plugins/internal/feed"
)

// Options configure an Agent.
type Options struct {
	// Agent has the configuration; New sets the rest.
	Agent agent.Options
	// Collect selects what Telegraf gets.
	Collect collect.Options
	// Wanted selects the measurements; nil: all.
	Wanted func(measurement string) bool
	Log    *slog.Logger
}

// Agent is an agent with Telegraf as its output. Make one with New; Run runs it once.
type Agent struct {
	*agent.Agent
	feed *feed.Feed // set before the agent runs
}

// New reads and checks the configuration of the agent, as agent.New does.
func New(o Options) (*Agent, error) {
	sink := promsink.New(promsink.Options{})
	a := &Agent{}
	o.Agent.Types = families.Types()
	o.Agent.Light = stamp.Light
	o.Agent.Sink, o.Agent.Series, o.Agent.Log = sink, series.Of(o.Agent.Types.MetricGroups(), sink), o.Log
	o.Agent.Notify = func(string) {} // Telegraf is the service, not this process
	o.Agent.Output = func(env output.Env) output.Output { return &toTelegraf{a, env, o} }
	var err error
	if a.Agent, err = agent.New(o.Agent); err != nil {
		return nil, err
	}
	return a, nil
}

// Run measures until ctx ends, and passes all points to a feed.
func (a *Agent) Run(ctx context.Context, to *feed.Feed) error {
	a.feed = to
	return a.Agent.Run(ctx)
}

// toTelegraf is the output of the agent.
type toTelegraf struct {
	*Agent
	env     output.Env
	options Options
}

// Run collects until ctx ends.
func (t *toTelegraf) Run(ctx context.Context) error {
	options := t.options.Collect
	options.EmitWaits = true // while Telegraf does not read
	return collect.Run(ctx, t.env, options, func(points []point.Point) {
		if t.options.Wanted != nil {
			points = slices.DeleteFunc(slices.Clone(points), func(p point.Point) bool { return !t.options.Wanted(p.Measurement) })
		}
		t.feed.Add(ctx, points)
	})
}

// Status has only the destination: Telegraf reports on its own outputs.
func (*toTelegraf) Status() output.Status { return output.Status{Destination: "Telegraf"} }
