package saturate

import (
	"oneway.example/exporter/heavy"
	"oneway.example/exporter/probe"
)

// Type makes probers of this kind. The zero value is ready.
type Type struct{}

// New returns the type.
func New() Type { return Type{} }

// Name is "saturate".
func (Type) Name() string { return "saturate" }

// New checks the options of one path. Nothing is opened.
func (Type) New(env probe.Env, target probe.Target, decode func(any) error) (probe.Prober, error) {
	shared, own := heavy.DefaultOptions(), DefaultOptions()
	if err := heavy.Decode(decode, &shared, &own); err != nil {
		return nil, err
	}
	kind, err := NewKind(shared, own)
	if err != nil {
		return nil, err
	}
	return heavy.NewProber(env, target, shared, kind)
}

var _ probe.Type = Type{}
