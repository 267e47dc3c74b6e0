package clock

import (
	"log/slog"
	"strings"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
)

// Type is a kind of clock source: a source of this host's clock quality. The registry in package clocks lists the Types.
type Type interface {
	// Document describes the type and its options in deploy/oneway.yml and in the help of flags. In both texts {source} stands for
	// the option that selects a type.
	option.Documented
	// Name is the word used in the configuration and on the command line, such as "chrony".
	Name() string
	// New checks the options and makes the monitor. It opens nothing, since check-config calls it too. decode fills structs from the
	// raw options, strictly; a wrong value is reported as *option.Error.
	New(env Env, decode func(into ...any) error) (Monitor, error)
}

// Env is the environment of a Monitor.
type Env struct {
	Sink metric.Sink
	Log  *slog.Logger
}

// Names are the names of types.
func Names(types []Type) (all []string) {
	for _, t := range types {
		all = append(all, t.Name())
	}
	return all
}

// Choice describes the option that selects one of the types by its name; the first is the default.
func Choice(p *string, types []Type) option.Description {
	var docs []string
	standard := ""
	for i, t := range types {
		if i == 0 {
			standard = t.Name()
		}
		doc, _ := t.Document()
		docs = append(docs, t.Name()+": "+doc)
	}
	return option.Word(p, standard, Names(types), strings.Join(docs, " "))
}
