// Package output defines the interfaces of outputs: what delivers the measurements of an agent to a store that does not
// scrape it. It imports no concrete one.
//
// An output is a Type: it decodes its own options and makes an Output. The agent runs Outputs; the registry in package
// outputs lists the Types.
package output

import (
	"context"
	"log/slog"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/output/point"
)

// Env is the environment that the agent passes to every output.
type Env struct {
	// Name is the output's name in the configuration, and the label output of its metrics.
	Name string
	Log  *slog.Logger
	// Sink receives the metrics of the output; its series go to a scope of Scopes, which the agent closes.
	Sink   metric.Sink
	Scopes *metric.Scopes
	// Groups are all metric families that the agent may export: the schema of the points (package point).
	Groups []metric.Group
	// Tables are the schemas of all raw samples that the agent may record.
	Tables []*record.Schema
	// Labels are the labels of paths, which change with the configuration; nil: there are none.
	Labels *point.PathLabels
	// Recorder has the raw samples of all probes.
	Recorder *record.Recorder
	// Series calls emit with the points of all series, as of one instant; nil: there are none.
	Series Series
	// StateDir is the directory of state that persists over restarts; empty: none is configured.
	StateDir string
}

// Series calls emit with each point of the current series, with the time at. The points are valid during the call.
type Series func(at instant.Time, emit func(*point.Point)) error

// Type is a kind of output.
type Type interface {
	// Document describes the type and its options in deploy/oneway.yml.
	option.Documented
	// Name is the word used in the configuration, such as "influxdb".
	Name() string
	// New checks the options and makes an output. It opens nothing and sends nothing, since check-config calls it too.
	// decode fills structs from the raw options, strictly; a wrong value is reported as *option.Error.
	New(env Env, decode func(into ...any) error) (Output, error)
}

// Output delivers points until its context ends.
type Output interface {
	// Run delivers until ctx ends. It then returns with nothing left running. An error means that it cannot continue; a store that
	// does not reply is no error.
	Run(ctx context.Context) error
	// Status is the state for the landing page.
	Status() Status
}

// Status is the state of an output.
type Status struct {
	// Destination is the configured address, without secrets.
	Destination string `json:"destination"`
	// Reason is why the last request failed; empty: it succeeded, or there was none.
	Reason string `json:"reason,omitempty"`
	// LastSuccess is when the store last accepted points; zero: never.
	LastSuccess time.Time `json:"last_success,omitzero"`
	// Waiting points are not yet delivered; WaitingBytes is the space that they use in the spool.
	Waiting      int64 `json:"waiting_points"`
	WaitingBytes int64 `json:"waiting_bytes"`
	// Written points were accepted, Rejected ones refused by the store, Dropped ones given up because the spool was full.
	Written  uint64 `json:"written_points"`
	Rejected uint64 `json:"rejected_points"`
	Dropped  uint64 `json:"dropped_points"`
}
