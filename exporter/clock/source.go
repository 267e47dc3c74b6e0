package clock

import (
	"log/slog"

	"oneway.example/exporter/core/metric"
)

// Source is a source of this host's clock quality with its settings: a pointer to a struct whose yaml tags are the keys of
// the configuration. Package clocks lists all sources.
type Source interface {
	// Name is the name in the configuration and on the command line, such as "chrony".
	Name() string
	// New checks the settings and makes the monitor. It opens nothing. An invalid value is an *option.Error.
	New(env Env) (Monitor, error)
}

// Env is the environment of a Monitor.
type Env struct {
	Sink metric.Sink
	Log  *slog.Logger
}
