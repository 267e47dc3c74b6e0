package main

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/clock/chrony"
	"oneway.example/exporter/clock/none"
	"oneway.example/exporter/clock/static"
	"oneway.example/exporter/instant"
	"oneway.example/exporter/metric"
)

// clockFlags say how this host's clock is known to a command without a
// configuration file.
type clockFlags struct {
	source, address string
	bound           time.Duration
}

func (f *clockFlags) register(cmd *kingpin.CmdClause) {
	cmd.Flag("clock", "What is known of this host's clock: chrony (ask chronyd), static (see --clock-bound), none.").
		Default("chrony").EnumVar(&f.source, "chrony", "static", "none")
	cmd.Flag("clock-address", "chronyd's socket: unix:///path or udp://address:port; empty: the usual places.").StringVar(&f.address)
	cmd.Flag("clock-bound", "With --clock=static: the clock's error bound.").Default("1ms").DurationVar(&f.bound)
}

func (f *clockFlags) monitor(sink metric.Sink, log *slog.Logger) (clock.Monitor, error) {
	switch f.source {
	case "static":
		if f.bound <= 0 {
			return nil, usageError{fmt.Errorf("--clock-bound is %v; it must be above zero", f.bound)}
		}
		return static.New(f.bound, sink), nil
	case "none":
		return none.New(sink), nil
	}
	return chrony.New(chrony.Options{Address: f.address, Sink: sink, Log: log})
}

// awaitStep is how often await looks.
const awaitStep = 20 * time.Millisecond

// await gives chronyd a moment to answer, so that the first packets of a short
// run have a bound; without an answer the run goes on without one.
func (f *clockFlags) await(m clock.Monitor, most time.Duration) {
	if f.source != "chrony" {
		return
	}
	ticker := time.NewTicker(awaitStep)
	defer ticker.Stop()
	for deadline := time.Now().Add(most); time.Now().Before(deadline) && m.Quality(instant.Now()).State == clock.Silent; {
		<-ticker.C
	}
}
