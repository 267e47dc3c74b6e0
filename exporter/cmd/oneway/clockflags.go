package main

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/clocks"
	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/document"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
)

// clockFlags select the source of the clock's quality for a command without a configuration file.
type clockFlags struct {
	source string
	// options has the structs of all types, with the values of the flags; a type without one has its defaults.
	options []option.Described
	given   []*givenOption
}

// givenOption is an option of one type, and whether its flag is given.
type givenOption struct {
	source, flag string
	given        bool
}

// staticClock selects the type static.
func staticClock(bound time.Duration) clockFlags {
	return clockFlags{source: static.Name, options: []option.Described{&static.Settings{Bound: &bound}}}
}

func (f *clockFlags) register(cmd *kingpin.CmdClause) {
	types := clocks.All()
	help := "Source of the error bound of this host's clock. " + clock.Choice(&f.source, types).Doc(clockFlag)
	cmd.Flag("clock", help).Default(types[0].Name()).EnumVar(&f.source, clock.Names(types)...)
	for _, t := range types {
		_, options := t.Document()
		for _, d := range option.All(options...) {
			if d.IsFileOnly() {
				continue
			}
			clause := registerOption(cmd, d, clockFlag, "")
			if d.IsRequired() {
				clause.Default(d.Shown()) // another type does not require it
			}
			one := &givenOption{source: t.Name(), flag: clockFlag(d.Key)}
			clause.IsSetByUser(&one.given)
			f.given = append(f.given, one)
		}
		f.options = append(f.options, options...)
	}
}

// clockFlag is the flag of an option of a clock source, and the one that selects the source.
func clockFlag(key string) string {
	if key == "source" {
		return "--clock"
	}
	return "--clock-" + flagName(key)
}

// chosen is the selected type, with the values of its options.
func (f *clockFlags) chosen() (clock.Type, []option.Described) {
	types := clocks.All()
	kind := types[max(0, slices.Index(clock.Names(types), f.source))]
	_, options := kind.Document()
	for _, o := range options {
		option.Fill(f.options, o)
	}
	return kind, options
}

func (f *clockFlags) monitor(sink metric.Sink, log *slog.Logger) (clock.Monitor, error) {
	for _, one := range f.given {
		if one.given && one.source != f.source {
			return nil, usageError{fmt.Errorf("%s is for --clock=%s, and --clock is %s", one.flag, one.source, f.source)}
		}
	}
	kind, _ := f.chosen()
	m, err := kind.New(clock.Env{Sink: sink, Log: log}, func(into ...any) error {
		option.Fill(f.options, into...)
		return nil
	})
	return m, asUsage(err, clockFlag)
}

// settings are the selected type, and the options that it requires.
func (f *clockFlags) settings() document.Settings {
	s := document.Settings{"clock": f.source}
	_, options := f.chosen()
	for _, o := range options {
		all := option.Settings(o)
		for _, d := range option.All(o) {
			if name := d.Key + option.UnitOf(d.Key, d.Type()); d.IsRequired() {
				s["clock_"+name] = all[name]
			}
		}
	}
	return s
}

// awaitStep is the polling interval of await.
const awaitStep = 20 * time.Millisecond

// await waits for the first reply of the clock daemon, so that the first packets of a short run have an error bound;
// after most the run starts without one.
func (*clockFlags) await(m clock.Monitor, most time.Duration) {
	ticker := time.NewTicker(awaitStep)
	defer ticker.Stop()
	for deadline := time.Now().Add(most); time.Now().Before(deadline) && m.Quality(instant.Now()).State == clock.Silent; {
		<-ticker.C
	}
}
