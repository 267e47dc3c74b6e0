package loadtest

import (
	"errors"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/probe"
)

// Type makes probers of a kind of load test. R are the options of its way to perform a run, among them Options; O
// are its own.
type Type[R, O any] struct {
	// TypeName is the name of the type.
	TypeName string
	// Doc is what the test does, in sentences.
	Doc string
	// Shared and Defaults return the options of an empty configuration.
	Shared   func() R
	Defaults func() O
	// Run returns the options of runs in R.
	Run func(*R) *Options
	// Make checks the options and makes the test of one path. It opens nothing.
	Make func(target probe.Target, shared R, own O) (Test, error)
	// Full are the keys of O without effect in profile slim.
	Full []string
	// Unused are the keys of R without effect on this type.
	Unused []string
	// Required are the keys of R that a probe must have.
	Required []probe.Requirement
	// LightPackets reports whether the tests are Accompanied, and so have light test packets during their load.
	LightPackets bool
	// RemoteKey is the key of R that is the remote end on a command line; empty: the peer of the target is the remote end.
	RemoteKey string
	// SetDirections sets the directions in R, for a command line; nil: R has no such option.
	SetDirections func(r *R, names []string)
	// Help is the help text of the command `oneway test`, Terminal returns the defaults of its flags; nil: Defaults.
	Help     string
	Terminal func() O
	// Results is the zero value of Run.Body, for its JSON Schema.
	Results any
	// Families are the metric families that the test has of its own; empty: it publishes families in package metric only.
	Families []metric.Group
}

// Name returns TypeName.
func (t Type[R, O]) Name() string { return t.TypeName }

// Document returns Doc and the options of R and O, as far as these are described.
func (t Type[R, O]) Document() (doc string, options []option.Described) {
	shared, own := t.Shared(), t.Defaults()
	for _, o := range []any{&shared, &own} {
		if described, ok := o.(option.Described); ok {
			options = append(options, described)
		}
	}
	return t.Doc, options
}

// MetricGroups returns Families.
func (t Type[R, O]) MetricGroups() []metric.Group { return t.Families }

// FullKeys returns Full.
func (t Type[R, O]) FullKeys() []string { return t.Full }

// UnusedKeys returns Unused.
func (t Type[R, O]) UnusedKeys() []string { return t.Unused }

// LinkKey returns the key of Options.Link.
func (Type[R, O]) LinkKey() string { return LinkKey }

// HostKey returns RemoteKey.
func (t Type[R, O]) HostKey() string { return t.RemoteKey }

// Requirements returns Required.
func (t Type[R, O]) Requirements() []probe.Requirement { return t.Required }

// New checks the options of one path. It opens nothing.
func (t Type[R, O]) New(env probe.Env, target probe.Target, decode func(into ...any) error) (probe.Prober, error) {
	shared, own := t.Shared(), t.Defaults()
	if err := decode(&shared, &own); err != nil {
		return nil, err
	}
	run := t.Run(&shared)
	test, err := t.Make(target, shared, own)
	if err != nil {
		return nil, errors.Join(err, option.Check(run))
	}
	p, err := NewProber(env, target, *run, test)
	if err != nil {
		return nil, err
	}
	p.runner.settings, p.runner.configured = option.Settings(&shared, &own), configuredOf(own)
	return p, nil
}

var _ probe.LoadTest = Type[Options, struct{}]{}
