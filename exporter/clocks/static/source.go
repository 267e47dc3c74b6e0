package static

import (
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/option"
)

// maxBound is the largest bound of a configuration.
const maxBound = time.Second

// Source has the configured bound, from 0 to 1 s; it is required.
type Source struct {
	Bound *time.Duration `yaml:"bound"`
}

// Name is the name of the package.
func (*Source) Name() string { return Name }

// New checks the bound and makes the monitor.
func (s *Source) New(env clock.Env) (clock.Monitor, error) {
	if err := option.Missing(s.Bound == nil, "bound", "source static needs it, such as 1ms"); err != nil {
		return nil, err
	}
	if err := option.Between("bound", *s.Bound, 0, maxBound); err != nil {
		return nil, err
	}
	return New(*s.Bound, env.Sink), nil
}
