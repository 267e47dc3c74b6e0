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

// Describe returns the description of the bound.
func (s *Source) Describe() []option.Description {
	return []option.Description{
		option.Optional(&s.Bound, 0, maxBound, "With source static only: the clock's largest error.").Such("1ms").Required("source static needs it, such as 1ms"),
	}
}

// Name is the name of the package.
func (*Source) Name() string { return Name }

// New checks the bound and makes the monitor.
func (s *Source) New(env clock.Env) (clock.Monitor, error) {
	if err := option.Check(s); err != nil {
		return nil, err
	}
	return New(*s.Bound, env.Sink), nil
}
