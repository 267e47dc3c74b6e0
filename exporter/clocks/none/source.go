package none

import "oneway.example/exporter/clock"

// Source has no settings.
type Source struct{}

// Name is the name of the package.
func (*Source) Name() string { return Name }

// New makes the monitor.
func (*Source) New(env clock.Env) (clock.Monitor, error) { return New(env.Sink), nil }
