package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/clock/chrony"
	"oneway.example/exporter/clock/none"
	"oneway.example/exporter/clock/static"
	"oneway.example/exporter/config"
	"oneway.example/exporter/instant"
	"oneway.example/exporter/metric"
)

// newMonitor makes the monitor that a configuration wants. It opens nothing.
func newMonitor(c config.Clock, sink metric.Sink, log *slog.Logger) (clock.Monitor, error) {
	switch c.Source {
	case config.ClockStatic:
		return static.New(c.Bound, sink), nil
	case config.ClockNone:
		return none.New(sink), nil
	case config.ClockChrony:
		o := chronyOptions(c)
		o.Sink, o.Log = sink, log
		return chrony.New(o)
	}
	return nil, fmt.Errorf("agent: clock source is %q", c.Source)
}

// chronyOptions are what a configuration says of chronyd.
func chronyOptions(c config.Clock) chrony.Options {
	return chrony.Options{
		Address: c.Address, Interval: c.Interval, SocketDir: c.SocketDir,
		MaxClockError: float64(c.MaxClockError), TrustLocal: c.TrustLocal,
	}
}

// clockKeeper is the monitor that probers are given. The one behind it changes
// with the configuration, so that probers need not.
type clockKeeper struct {
	sink    metric.Sink
	log     *slog.Logger
	retry   retry
	current atomic.Pointer[clock.Monitor]

	mu     sync.Mutex
	config config.Clock
	unit   *unit
}

func newClockKeeper(sink metric.Sink, log *slog.Logger, r retry) *clockKeeper {
	return &clockKeeper{sink: sink, log: log.With("component", "clock"), retry: r}
}

// Quality is that of the monitor in force; before there is one, nothing is known.
func (k *clockKeeper) Quality(at instant.Time) clock.Quality {
	m := k.current.Load()
	if m == nil {
		return clock.Quality{}
	}
	return (*m).Quality(at)
}

// errNotYours: probers are lent the monitor to ask, not to run.
var errNotYours = errors.New("agent: the clock monitor is run by the agent")

// Run is not for those who are lent the monitor.
func (*clockKeeper) Run(context.Context) error { return errNotYours }

// apply puts a clock section in force, if it differs from the one that is. The
// receiver and the pulse are watched by others.
func (k *clockKeeper) apply(ctx context.Context, c config.Clock) {
	c.GPSD, c.PPS = nil, nil
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.unit != nil && k.config == c {
		return
	}
	m, err := newMonitor(c, k.sink, k.log)
	if err != nil { // it was made from the same section when the plan was
		k.log.Error("Clock not changed", "err", err)
		return
	}
	if err := k.stopLocked(); err != nil {
		k.log.Error("Clock monitor did not end", "err", err)
	}
	k.config = c
	k.current.Store(&m)
	k.unit = startUnit(ctx, k.log, k.retry, m.Run)
}

func (k *clockKeeper) stop() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.stopLocked()
}

func (k *clockKeeper) stopLocked() error {
	if k.unit == nil {
		return nil
	}
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	return k.unit.stop("the clock monitor", timer.C)
}

func (k *clockKeeper) status() ClockStatus {
	k.mu.Lock()
	defer k.mu.Unlock()
	q := k.Quality(instant.Now())
	s := ClockStatus{
		Source: k.config.Source, State: q.State.String(), Trusted: q.Synchronised(),
		Bound: q.Bound.Error, Offset: q.Offset, Steps: q.Steps,
	}
	if !s.Trusted {
		s.Reason = q.Bound.Reason.String()
	}
	if q.LastUpdate != 0 {
		s.LastUpdate = time.Unix(0, int64(q.LastUpdate))
	}
	if k.unit != nil {
		s.Error = unitError(k.unit)
	}
	return s
}
