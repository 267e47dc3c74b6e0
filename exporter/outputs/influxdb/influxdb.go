// Package influxdb is the output for InfluxDB 1.8, 2 and 3, and for what has the same write API, such as Telegraf's
// influxdb_listener.
//
// Points become lines of the line protocol. A batch of lines is compressed and appended to the spool, from where it is sent in
// order, one request at a time, until the store has accepted or refused each of its points. Points wait at most flushInterval
// before they are in the spool.
package influxdb

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/output"
	"oneway.example/exporter/output/collect"
	"oneway.example/exporter/output/point"
	"oneway.example/exporter/output/spool"
)

// Type makes these outputs.
type Type struct{}

// NewType makes the type for the registry.
func NewType() Type { return Type{} }

// Name is "influxdb".
func (Type) Name() string { return "influxdb" }

// Document describes the output.
func (Type) Document() (doc string, options []option.Described) {
	o := DefaultOptions()
	return "InfluxDB 1.8, 2 and 3, and Telegraf's influxdb_listener (version: 1). deploy/influxdb has scripts that create the database, with retention and downsampling.", []option.Described{&o}
}

// New checks the options.
func (Type) New(env output.Env, decode func(into ...any) error) (output.Output, error) {
	o := DefaultOptions()
	if err := decode(&o); err != nil {
		return nil, err
	}
	return newOutput(env, o)
}

// flushInterval is the longest time for which points are in memory only, and the interval of the gauges.
const flushInterval = time.Second

func newOutput(env output.Env, o Options) (*Output, error) {
	base, config, err := o.check()
	if err != nil {
		return nil, err
	}
	tags, err := o.tags(env)
	if err != nil {
		return nil, err
	}
	return &Output{env: env, options: o, base: base, tls: config, tags: tags, backoff: backoff{first: time.Second, most: time.Minute}}, nil
}

// Output delivers the points of an agent.
type Output struct {
	env     output.Env
	options Options
	base    *url.URL
	tls     *tls.Config
	tags    []point.Tag
	backoff backoff

	mu     sync.Mutex // guards the fields below
	spool  *spool.Spool
	status output.Status
}

// Run delivers until ctx ends. Points that are not delivered then stay in the spool.
func (o *Output) Run(ctx context.Context) (err error) {
	if o.options.exposed(o.base) {
		o.env.Log.Warn("Credentials are sent without encryption; use an address with https", "destination", o.options.destination())
	}
	dir, limit := o.options.spool(&o.env)
	scope := o.env.Scopes.Add(metric.NewScope(o.env.Sink, o.env.Name))
	for _, result := range []string{resultWritten, resultRejected, resultDropped} {
		scope.Series(metric.OutputPoints, result)
	}
	scope.Series(metric.OutputSpoolLimit).Set(float64(limit))
	s := o.open(ctx, spool.Options{Dir: dir, MaxBytes: limit})
	if s == nil {
		return nil
	}
	b := &batcher{maxPoints: o.options.BatchPoints, maxBytes: int(o.options.BatchBytes), put: s.Append}
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	var parts sync.WaitGroup
	parts.Go(func() { o.newSender(s, scope).run(running) })
	parts.Go(func() {
		defer cancel()
		err = collect.Run(running, o.env, o.options.collect(o.tags), b.add)
	})
	o.keep(running, s, b, scope)
	parts.Wait()
	b.flush()
	s.Check()
	o.publish(s, scope)
	if closed := s.Close(); closed != nil {
		o.env.Log.Warn("Points in memory are lost, since they cannot be written to the spool", "err", closed)
	}
	return err
}

// open opens the spool, and tries again while it cannot be opened: the series of the output exist meanwhile, without that of
// waiting points. It returns nil if ctx ends before.
func (o *Output) open(ctx context.Context, options spool.Options) *spool.Spool {
	for failures := 1; ; failures++ {
		s, err := spool.Open(options)
		reason := ""
		if err != nil {
			reason = fmt.Sprintf("%v; state_dir, or spool.directory, must be a directory that this agent alone uses and can write to", err)
		}
		o.mu.Lock()
		before := o.status.Reason
		o.spool, o.status.Reason = s, reason
		o.mu.Unlock()
		if err == nil {
			return s
		}
		if reason != before {
			o.env.Log.Error("Nothing is delivered: the spool cannot be opened; it will be tried again", "err", reason)
		}
		if !ctxtime.Sleep(ctx, o.backoff.pause(failures)) { // nothing tells when a directory can be used
			return nil
		}
	}
}

// keep flushes and publishes until ctx ends.
func (o *Output) keep(ctx context.Context, s *spool.Spool, b *batcher, scope *metric.Scope) {
	ticker := time.NewTicker(flushInterval)
	defer ticker.Stop()
	dir, _ := o.options.spool(&o.env)
	w := watch{log: o.env.Log, dir: dir}
	for {
		if bad := b.flush(); bad > 0 {
			scope.Series(metric.OutputPoints, resultRejected).Add(float64(bad))
			o.env.Log.Error("Points have no valid line; this is a fault of this program", "points", bad)
		}
		s.Check()
		w.see(o.publish(s, scope))
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// publish sets the metrics of the spool.
func (o *Output) publish(s *spool.Spool, scope *metric.Scope) spool.Stats {
	stats := s.Stats()
	o.env.Sink.Update(func() {
		scope.Series(metric.OutputPoints, resultDropped).SetTotal(float64(stats.Dropped))
		scope.Series(metric.OutputSpool).Set(float64(stats.Bytes))
		saved := 1.0
		if stats.Err != nil {
			saved = 0
		}
		scope.Series(metric.OutputSpoolSaved).Set(saved)
		scope.Series(metric.OutputWaiting).Set(float64(stats.Points))
	})
	return stats
}

// watch logs changes of the spool's state.
type watch struct {
	log     *slog.Logger
	dir     string
	failing bool
	moved   uint64
	dropped uint64
	damaged uint64
	logged  time.Time // when drops were logged last
}

// dropsInterval is the shortest time between two log lines about dropped points.
const dropsInterval = time.Minute

func (w *watch) see(now spool.Stats) {
	if now.Moved > w.moved {
		w.log.Warn("The spool was removed, renamed or replaced while this agent ran; what it can still read is written again", "dir", w.dir)
		w.moved = now.Moved
	}
	switch failing := now.Err != nil; {
	case failing && !w.failing:
		w.log.Error("Spool cannot be written; points are kept in memory while there is space", "err", now.Err)
	case !failing && w.failing:
		w.log.Info("Spool is written again")
	}
	w.failing = now.Err != nil
	if now.Dropped > w.dropped && time.Since(w.logged) >= dropsInterval {
		w.log.Warn("Points were dropped", "points", now.Dropped-w.dropped, "damaged_places", now.Damaged-w.damaged)
		w.dropped, w.damaged, w.logged = now.Dropped, now.Damaged, time.Now()
	}
}

// Status is the current state.
func (o *Output) Status() output.Status {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.status
	s.Destination = o.options.destination()
	if o.spool != nil {
		stats := o.spool.Stats()
		s.Waiting, s.WaitingBytes, s.Dropped = stats.Points, stats.Bytes, stats.Dropped
		if s.Reason == "" && stats.Err != nil {
			s.Reason = stats.Err.Error()
		}
	}
	return s
}
