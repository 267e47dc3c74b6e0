package agent

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"oneway.example/exporter/clock/gpsd"
	"oneway.example/exporter/clock/pps"
	"oneway.example/exporter/config"
	"oneway.example/exporter/metric"
)

// watcher is what runs beside the clock monitor and tells of what it sees.
type watcher[S any] interface {
	Run(ctx context.Context) error
	State() S
}

// newReceiver makes the client of gpsd that a configuration wants. It opens nothing.
func newReceiver(c config.GPSD, sink metric.Sink, log *slog.Logger) (watcher[gpsd.State], error) {
	return gpsd.New(gpsd.Options{Address: c.Address, Device: c.Device, Name: c.Name, Sink: sink, Log: log})
}

// newPulse makes the watcher of the pulse that a configuration wants. It opens nothing.
func newPulse(c config.PPS, sink metric.Sink, log *slog.Logger) (watcher[pps.State], error) {
	return pps.New(pps.Options{Device: c.Device, Clear: c.Edge == config.EdgeClear, Name: c.Name, Sink: sink, Log: log})
}

// checkWatchers says which section the programs behind it refuse.
func checkWatchers(c *config.Config, log *slog.Logger) (problems config.Problems) {
	if g := c.Clock.GPSD; g != nil {
		if _, err := newReceiver(*g, metric.Discard{}, log); err != nil {
			problems = append(problems, c.Problem("clock.gpsd", "cannot be used: "+err.Error()))
		}
	}
	if p := c.Clock.PPS; p != nil {
		if _, err := newPulse(*p, metric.Discard{}, log); err != nil {
			problems = append(problems, c.Problem("clock.pps", "cannot be used: "+err.Error()))
		}
	}
	return problems
}

// watchKeeper runs the watcher that an optional section C of the configuration wants.
type watchKeeper[C comparable, S any] struct {
	what  string // for messages: "the receiver"
	log   *slog.Logger
	sink  metric.Sink
	retry retry
	make  func(C, metric.Sink, *slog.Logger) (watcher[S], error)

	mu      sync.Mutex
	config  *C // nil: none is wanted
	unit    *unit
	current watcher[S]
}

func newReceiverKeeper(sink metric.Sink, log *slog.Logger, r retry) *watchKeeper[config.GPSD, gpsd.State] {
	return &watchKeeper[config.GPSD, gpsd.State]{what: "the receiver", log: log.With("component", "gpsd"), sink: sink, retry: r, make: newReceiver}
}

func newPulseKeeper(sink metric.Sink, log *slog.Logger, r retry) *watchKeeper[config.PPS, pps.State] {
	return &watchKeeper[config.PPS, pps.State]{what: "the pulse", log: log.With("component", "pps"), sink: sink, retry: r, make: newPulse}
}

// apply puts a section in force, if it differs from the one that is.
func (k *watchKeeper[C, S]) apply(ctx context.Context, c *C) {
	k.mu.Lock()
	same := k.config == c || k.config != nil && c != nil && *k.config == *c
	k.mu.Unlock()
	if same {
		return
	}
	if err := k.stop(); err != nil {
		k.log.Error("Watcher did not end", "err", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.config, k.unit, k.current = c, nil, nil
	if c != nil {
		k.unit = startUnit(ctx, k.log, k.retry, func(ctx context.Context) error { return k.run(ctx, *c) })
	}
}

// run is one run. One that has failed is not run again: what it holds is unknown.
func (k *watchKeeper[C, S]) run(ctx context.Context, c C) error {
	w, err := k.make(c, k.sink, k.log)
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	k.mu.Lock()
	k.current = w
	k.mu.Unlock()
	return w.Run(ctx)
}

// stop must be called without the lock, which run takes.
func (k *watchKeeper[C, S]) stop() error {
	k.mu.Lock()
	unit := k.unit
	k.mu.Unlock()
	if unit == nil {
		return nil
	}
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	return unit.stop(k.what, timer.C)
}

// watched is what is known of a watcher.
type watched[C comparable, S any] struct {
	config C
	state  S
	err    string // why it does not run
}

// look returns nil if nothing is to be watched.
func (k *watchKeeper[C, S]) look() *watched[C, S] {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.config == nil || k.unit == nil {
		return nil
	}
	w := &watched[C, S]{config: *k.config, err: unitError(k.unit)}
	if k.current != nil {
		w.state = k.current.State()
	}
	return w
}
