package agent

import (
	"context"
	"time"

	"oneway.example/exporter/agent/eventlog"
	"oneway.example/exporter/core/event"
	"oneway.example/exporter/core/instant"
)

// stepsInterval is the interval at which the count of the clock's steps is read.
const stepsInterval = time.Second

// steps are the steps of this host's clock that the present monitor has detected.
func (a *Agent) steps() uint64 { return a.clock.Quality(instant.Now()).Steps }

// watchSteps publishes steps of this host's clock as events, by the clock after the step. Another monitor counts from zero again.
func watchSteps(ctx context.Context, steps func() uint64, events *eventlog.Log) {
	ticker := time.NewTicker(stepsInterval)
	defer ticker.Stop()
	for before := uint64(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := steps()
		if now > before {
			events.OfAgent(event.ClockStepped, time.Now(), "The clock of this host was stepped.")
		}
		before = now
	}
}
