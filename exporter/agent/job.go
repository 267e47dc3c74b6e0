package agent

import (
	"context"
	"errors"
	"sync"
	"time"

	"oneway.example/exporter/config"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/probe"
)

// job is one probe of one path.
type job struct {
	kind    probe.Type
	target  probe.Target
	options config.Options
	// identity is the same as long as the probe means the same.
	identity string
	env      probe.Env // what its prober is lent
	unit     *unit     // nil until it is started

	mu     sync.Mutex
	prober probe.Prober
	lease  *lease
}

func (j *job) key() string { return j.target.Path + "\x00" + j.target.Probe }

// make makes the prober; nothing runs yet.
func (j *job) make() error {
	env, l := j.env, newLease(j.env.Sink)
	env.Sink = l
	p, err := j.kind.New(env, j.target, j.options.Decode)
	if err != nil {
		return err
	}
	j.mu.Lock()
	j.prober, j.lease = p, l
	j.mu.Unlock()
	return nil
}

// start runs the prober under supervision.
func (j *job) start(ctx context.Context, a *Agent) {
	log := a.log.With("path", j.target.Path, "probe", j.target.Probe)
	fresh := true // make has been called already
	j.unit = startUnit(ctx, log, a.options.retry, func(ctx context.Context) error {
		if !fresh {
			// A prober that has failed is not run again: what it holds is unknown.
			if err := j.make(); err != nil {
				return err
			}
		}
		fresh = false
		p, l := j.current()
		defer l.closeAll()
		return p.Run(ctx)
	})
}

func (j *job) current() (probe.Prober, *lease) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.prober, j.lease
}

// stopAll ends jobs together and waits until they have ended.
func stopAll(jobs []*job) error {
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	deadline := make(chan time.Time)
	waited := make(chan struct{})
	defer close(waited)
	go func() {
		select {
		case <-timer.C:
			close(deadline) // for all that are still waited for
		case <-waited:
		}
	}()
	for _, j := range jobs {
		j.unit.cancel()
	}
	var errs []error
	for _, j := range jobs {
		errs = append(errs, j.unit.stop("probe "+j.target.Probe+" of path "+j.target.Path, deadline))
	}
	return errors.Join(errs...)
}

// lease hands out series and takes back those of the path when the prober has
// ended, even if it panicked: a path that is gone must have no series. Series
// without a path, of sockets that probers share, are theirs to close.
type lease struct {
	metric.Sink
	mu   sync.Mutex
	open map[*leased]struct{}
}

func newLease(s metric.Sink) *lease { return &lease{Sink: s, open: map[*leased]struct{}{}} }

type leased struct {
	metric.Series
	from *lease
}

// Series is that of the sink, and remembered.
func (l *lease) Series(d *metric.Desc, values ...string) metric.Series {
	s := l.Sink.Series(d, values...)
	if len(d.Labels) == 0 || d.Labels[0] != metric.Path {
		return s
	}
	one := &leased{s, l}
	l.mu.Lock()
	l.open[one] = struct{}{}
	l.mu.Unlock()
	return one
}

// Close ends the series; a second call does nothing.
func (s *leased) Close() {
	s.from.mu.Lock()
	_, open := s.from.open[s]
	delete(s.from.open, s)
	s.from.mu.Unlock()
	if open {
		s.Series.Close()
	}
}

func (l *lease) closeAll() {
	l.mu.Lock()
	open := l.open
	l.open = map[*leased]struct{}{}
	l.mu.Unlock()
	l.Update(func() {
		for s := range open {
			s.Series.Close()
		}
	})
}
