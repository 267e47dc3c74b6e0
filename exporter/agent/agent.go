// Package agent runs what a configuration says: a clock monitor and beside it the
// watchers of a GNSS receiver and its pulse, a reflector and a prober for each probe of
// each path, one pacer for all of them.
//
// What fails is retried and shown, and stops nothing else: an agent starts
// without its clock daemon, with its reflector's port taken and with names that
// do not resolve. Only a configuration that cannot be right is refused, and
// then the one before it stays in force.
//
// A reload keeps the probers whose configuration means the same, with their
// sessions and counters. The content of key files is part of the meaning. Reloads that are
// asked for within a second of the last are one.
package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"oneway.example/exporter/calibration"
	"oneway.example/exporter/ctxtime"
	"oneway.example/exporter/incident"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/record"
	"oneway.example/exporter/sched"
)

// Options are what an agent is made of. ConfigFile and Types are needed.
type Options struct {
	// ConfigFile is read by New and at each reload.
	ConfigFile string
	// Types are the kinds of probes there are.
	Types []probe.Type
	// Sink takes all measurements; nil: metric.Discard.
	Sink metric.Sink
	// Log; nil: discarded.
	Log *slog.Logger
	// Notify tells the service manager of states such as "READY=1"; nil: systemd,
	// if it asks for it (sd_notify(3)).
	Notify func(state string)
	// Socket is where load tests from this host's terminals ask for links (package lease);
	// empty: nowhere. SocketGroup is the group that may ask besides this user and root;
	// empty: none.
	Socket, SocketGroup string

	retry       retry         // of tests
	reloadPause time.Duration // the same
}

// Agent runs a configuration. Make one with New; Run runs it once.
type Agent struct {
	options Options
	log     *slog.Logger
	sink    metric.Sink
	notify  func(string)

	reloading sync.Mutex // one reload at a time
	reloaded  time.Time  // the last one's end; guarded by reloading

	// What everything is given.
	pacer  *sched.Pacer
	clock  *leasedClock
	shared *shared
	// recorder has the raw samples of all probes.
	recorder record.Recorder
	incident *incident.Supervisor

	// Guarded by reloading.
	running  map[string]*task // by key
	unexport func()           // ends the series of the calibration

	mu        sync.Mutex   // guards what follows
	next      func() error // the reload that has not begun; nil: nobody waits for one
	ctx       context.Context
	inForce   *plan // before Run, what will be
	started   time.Time
	loaded    time.Time
	reloadErr error
}

// New reads and checks the configuration. It opens nothing but that file and
// those that it names.
func New(o Options) (*Agent, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Sink == nil {
		o.Sink = metric.Discard{}
	}
	if o.Notify == nil {
		o.Notify = systemdNotify(o.Log)
	}
	o.retry = retry{cmp.Or(o.retry.first, time.Second), cmp.Or(o.retry.most, time.Minute)}
	o.reloadPause = cmp.Or(o.reloadPause, reloadPause)
	a := &Agent{options: o, log: o.Log, sink: o.Sink, notify: o.Notify, clock: &leasedClock{}, shared: newShared(o.Sink, o.Log)}
	var err error
	if a.pacer, err = sched.NewPacer(); err != nil {
		return nil, fmt.Errorf("agent: %w", err)
	}
	a.incident = incident.New(incident.Options{
		Recorder: &a.recorder, Reports: a.shared.reports, Sink: a.sink, Held: a.shared.held, Log: a.log.With("component", "incident"),
	})
	if a.inForce, err = a.plan(); err != nil {
		a.release()
		return nil, err
	}
	return a, nil
}

// release frees what New has opened and Run would free.
func (a *Agent) release() {
	ended, end := context.WithCancel(context.Background())
	end()
	_ = a.pacer.Run(ended) // that is how a pacer's timer is freed; it cannot fail
}

// Run measures until ctx ends, and then returns nil with nothing left running.
// An error says why nothing can be measured at all.
func (a *Agent) Run(ctx context.Context) error {
	// The pacer outlives the probers, which take their tasks out of it.
	pacing, stopPacing := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- a.pacer.Run(pacing) }()
	defer stopPacing()

	success, loadedAt := a.sink.Series(metric.ConfigReloadSuccess), a.sink.Series(metric.ConfigReloadTime)
	defer success.Close()
	defer loadedAt.Close()
	sharing, keeping := a.always("the publishing of quotas", a.log, a.shared.Run), a.always("keeping incident", a.log, a.incident.Run)
	a.begin(ctx)
	lending := a.lease()
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	var watchers sync.WaitGroup
	watchers.Go(func() { a.watchdog(watching) })
	watchers.Go(func() { watchDescriptors(watching, a.log, openNull) })
	a.notify("READY=1")
	var err error
	select {
	case <-ctx.Done():
	case err = <-ended:
		err = fmt.Errorf("agent: the pacer ended: %w", errors.Join(err, errNoPacer))
		ended <- nil
	}
	a.notify("STOPPING=1")
	stuck := errors.Join(stopAll(lending...), stopAll(keeping), a.end(), stopAll(sharing))
	stopPacing()
	stopWatching()
	watchers.Wait()
	return errors.Join(err, stuck, <-ended)
}

var errNoPacer = errors.New("without it nothing is sent")

// always starts what no configuration changes, and stopAll ends.
func (a *Agent) always(what string, log *slog.Logger, run func(context.Context) error) *task {
	return &task{what: what, unit: startUnit(context.Background(), log, a.options.retry, run)}
}

// begin puts the configuration that New has read in force.
func (a *Agent) begin(ctx context.Context) {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	a.mu.Lock()
	a.ctx, a.started = ctx, time.Now().UTC()
	a.mu.Unlock()
	a.apply(a.inForce)
	a.log.Info("Measuring", "paths", len(a.inForce.config.Paths), "probes", len(a.inForce.jobs), "config_file", a.options.ConfigFile)
}

// end stops all that runs.
func (a *Agent) end() error {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	a.mu.Lock()
	a.ctx = nil
	a.mu.Unlock()
	err := stopAll(slices.Collect(maps.Values(a.running))...)
	a.calibrated(nil)
	a.incident.SetPaths(nil)
	return err
}

// setGauge sets a gauge that Run holds open.
func (a *Agent) setGauge(d *metric.Desc, v float64) {
	s := a.sink.Series(d)
	s.Set(v)
	s.Close()
}

// calibrated publishes a calibration in place of the one before; nil: none.
func (a *Agent) calibrated(t *calibration.Table) {
	if a.unexport != nil {
		a.unexport()
	}
	a.unexport = t.Export(a.sink)
	for _, w := range t.Warnings() {
		a.log.Warn("Calibration of another system: it may widen bounds, not narrow them", "warning", w)
	}
}

// apply puts a plan in force: first everything that must go ends, then what is
// new begins, so that nothing is measured twice. It returns how many probers
// were kept.
func (a *Agent) apply(p *plan) (kept int) {
	a.mu.Lock()
	ctx := a.ctx
	a.mu.Unlock()
	gone, wanted := a.running, make(map[string]*task, len(p.tasks))
	fresh := map[*task]bool{}
	for _, t := range p.tasks {
		wanted[t.key], fresh[t] = t, gone[t.key] != t
		if !fresh[t] {
			delete(gone, t.key)
		}
	}
	if err := stopAll(slices.Collect(maps.Values(gone))...); err != nil {
		a.log.Error("What is no longer configured did not end", "err", err)
	}
	a.running = wanted
	a.shared.put(&p.shared)
	a.clock.task.Store(p.clock.task)
	for t, later := range p.adopted {
		t.adopt(later)
	}
	a.calibrated(p.calibration)
	a.incident.SetPaths(incidentPaths(p))
	for _, t := range p.tasks {
		if fresh[t] {
			t.unit.start(ctx)
		}
	}
	for _, j := range p.jobs {
		if !fresh[j.task] {
			kept++
		}
	}
	now := time.Now().UTC()
	a.mu.Lock()
	a.inForce, a.loaded, a.reloadErr = p, now, nil
	a.mu.Unlock()
	a.setGauge(metric.ConfigReloadSuccess, 1)
	a.setGauge(metric.ConfigReloadTime, float64(now.UnixNano())/1e9)
	return kept
}

// reloadPause is the least between the end of a reload and the beginning of the next.
const reloadPause = time.Second

// ErrNotRunning is returned by Reload before and after Run.
var ErrNotRunning = errors.New("agent: not running")

// Reload reads the configuration again and puts it in force. On an error the one before stays
// in force, untouched. One reload runs at a time, and the next begins a second after its end:
// all who have asked by then are answered by that one, which reads the file after each of them
// has asked.
func (a *Agent) Reload() error { return a.turn()() }

// turn is the reload that answers whoever asks now: the first who calls it does it, all have its result.
func (a *Agent) turn() func() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.next == nil {
		a.next = sync.OnceValue(a.lead)
	}
	return a.next
}

// lead does a reload for all who wait for it.
func (a *Agent) lead() error {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	a.mu.Lock()
	ctx := a.ctx
	a.mu.Unlock()
	if ctx != nil {
		ctxtime.For(ctx, time.Until(a.reloaded.Add(a.options.reloadPause)))
	}
	a.mu.Lock()
	a.next = nil // who asks from now on is answered by another
	a.mu.Unlock()
	if ctx == nil || ctx.Err() != nil {
		return ErrNotRunning
	}
	defer func() { a.reloaded = time.Now() }()
	return a.reload()
}

// reload does one; reloading is held.
func (a *Agent) reload() error {
	a.notify(reloadingState())
	defer a.notify("READY=1")
	p, err := a.plan()
	if err != nil {
		a.mu.Lock()
		a.reloadErr = err
		a.mu.Unlock()
		a.setGauge(metric.ConfigReloadSuccess, 0)
		a.log.Error("Configuration not reloaded, the one before stays in force", "err", err)
		return err
	}
	kept := a.apply(p)
	a.log.Info("Configuration reloaded", "paths", len(p.config.Paths), "probes", len(p.jobs), "probes_kept", kept)
	return nil
}
