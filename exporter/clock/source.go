package clock

import (
	"log/slog"

	"oneway.example/exporter/metric"
)

// Source is a way to know this host's clock, with its settings: a pointer to a struct whose yaml
// tags are the keys of a configuration. Package clocks lists all.
type Source interface {
	// Name is the word of the configuration and of the command line, such as "chrony".
	Name() string
	// New checks the settings and makes the monitor. It opens nothing. A wrong value is an
	// *option.Error.
	New(env Env) (Monitor, error)
}

// Env is what a Monitor is given.
type Env struct {
	Sink metric.Sink
	Log  *slog.Logger
}
