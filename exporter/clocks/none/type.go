package none

import (
	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/option"
)

// Type is the type none. It has no options.
type Type struct{}

// NewType makes the type for the registry.
func NewType() Type { return Type{} }

// Name is the name of the package.
func (Type) Name() string { return Name }

// Document describes the type.
func (Type) Document() (doc string, options []option.Described) {
	return "Report no one-way delay, but loss, round trips and variation.", nil
}

// New makes the monitor.
func (Type) New(env clock.Env, _ func(into ...any) error) (clock.Monitor, error) {
	return New(env.Sink), nil
}
