package agent_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/watcher"
)

// dummyLevel is the metric of the dummy.
var dummyLevel = metric.Family(metric.Desc{Name: "oneway_dummy_level_bytes", Kind: metric.Gauge, Slim: true, Labels: []string{"dummy", "band"}, Help: "Level of a dummy, in bytes."})

// MetricGroups implements metric.Declarer.
func (dummyType) MetricGroups() []metric.Group {
	return []metric.Group{{Title: "Dummy", Prefix: "oneway_dummy", Descs: []*metric.Desc{dummyLevel}}}
}

// dummyLevels is the dummy's raw data.
var dummyLevels = &record.Schema{Name: "oneway_dummy", TimeOnly: true, Columns: []record.Column{{Name: "at_ns"}, {Name: "level"}}}

// dummyType makes watchers of nothing: all that a new type of watcher needs.
type dummyType struct{}

// Name has a word that no registered type has.
func (dummyType) Name() string { return "agent_test_dummy" }

// Document describes the type and its options.
func (dummyType) Document() (doc string, options []option.Described) {
	return "A number that grows to a limit.", []option.Described{&dummyOptions{}}
}

// StatusDetails implements watcher.Detailed.
func (dummyType) StatusDetails() any { return dummyDetails{} }

type dummyOptions struct {
	Most int64 `yaml:"most"`
}

// Describe describes the options.
func (o *dummyOptions) Describe() []option.Description {
	return []option.Description{option.Number(&o.Most, 1000, 1, 1e9, "Limit of the level.")}
}

func (dummyType) New(env watcher.Env, decode func(into ...any) error) (watcher.Watcher, error) {
	o := option.Defaults[dummyOptions]()
	if err := decode(&o); err != nil {
		return nil, err
	}
	return &dummy{env: env, most: o.Most}, option.Check(&o)
}

type dummy struct {
	most  int64
	env   watcher.Env
	level atomic.Int64
}

type dummyDetails struct {
	// Level is the level.
	Level int64 `json:"level_bytes"`
}

func (d *dummy) Run(ctx context.Context) error {
	series := d.env.Scope()
	for ctx.Err() == nil {
		if level := d.level.Add(1); level <= d.most {
			series.Set(dummyLevel, float64(level), "low")
			d.env.Recorder.Tables().Record(&record.Table{Schema: dummyLevels, Begin: instant.Now(), Rows: [][]int64{{0, level}}})
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Millisecond): // a period
		}
	}
	return nil
}

func (d *dummy) Status() watcher.Status {
	level := d.level.Load()
	s := watcher.Status{Title: "Dummy", Up: level < d.most, State: "counting", Details: dummyDetails{min(level, d.most)}}
	s.Lines = []watcher.Line{{Name: "Level", Value: fmt.Sprint(min(level, d.most))}, {Name: "Period", Value: time.Millisecond, Bound: 2 * time.Microsecond}, {Name: "Unknown"}}
	if !s.Up {
		s.State, s.Reason, s.Warnings = "full", "it counts no further", []string{"The dummy " + d.env.Name + " is full."}
	}
	return s
}
