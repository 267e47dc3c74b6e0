package static

import (
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/option"
)

// maxBound is the largest bound of a configuration.
const maxBound = time.Second

// Type is the type static.
type Type struct{}

// NewType makes the type for the registry.
func NewType() Type { return Type{} }

// Name is the name of the package.
func (Type) Name() string { return Name }

// Document describes the type.
func (Type) Document() (doc string, options []option.Described) {
	return "Use the option {bound}, for hosts or containers that share one clock.", []option.Described{new(option.Defaults[Settings]())}
}

// Settings are the options in the configuration.
type Settings struct {
	// Bound is from 0 to 1 s; it is required.
	Bound *time.Duration `yaml:"bound"`
}

// Describe describes each option.
func (s *Settings) Describe() []option.Description {
	return []option.Description{
		option.Optional(&s.Bound, 0, maxBound, "With {source} static only: the clock's largest error.").WithExample("1ms").Required("source static needs it, such as 1ms"),
	}
}

// New checks the bound and makes the monitor.
func (Type) New(env clock.Env, decode func(into ...any) error) (clock.Monitor, error) {
	o := option.Defaults[Settings]()
	if err := decode(&o); err != nil {
		return nil, err
	}
	if err := option.Check(&o); err != nil {
		return nil, err
	}
	return New(*o.Bound, env.Sink), nil
}
