// Package agent runs a configuration: a clock monitor, watchers, a reflector, a load server, and a prober for each probe of each path, with one pacer for all of them.
//
// A part that fails is retried and shown in the status, and does not stop the others: an agent starts without its clock
// daemon, with the reflector's port in use, and with names that do not resolve. Only an invalid configuration is refused,
// and the previous one stays in force.
//
// A reload keeps the probers whose configuration has the same meaning, with their sessions and counters. The content of key
// files is part of the meaning. Reloads requested within a second of the last one are merged into one.
package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/version"

	"oneway.example/exporter/agent/config"
	"oneway.example/exporter/agent/incident"
	"oneway.example/exporter/agent/mesh"
	"oneway.example/exporter/agent/ondemand"
	"oneway.example/exporter/agent/pathlabel"
	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/core/event"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/load/traffic"
	"oneway.example/exporter/net/listen"
	"oneway.example/exporter/net/sched"
	"oneway.example/exporter/output"
	"oneway.example/exporter/output/point"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/calibration"
	"oneway.example/exporter/probe/helper"
	"oneway.example/exporter/watcher"
)

// Options configure an Agent. ConfigFile and Types are required.
type Options struct {
	// ConfigFile is read by New and by each reload.
	ConfigFile string
	// Load reads the configuration; nil: config.Load, which reads a file.
	Load func(file string) (*config.Config, error)
	// Addresses are those of the program besides the reflector's and the load server's, for the log; nil: none.
	Addresses func() []string
	// Types are those that a configuration can name.
	Types Types
	// Series has the points of all series, which outputs deliver; nil: there are none.
	Series output.Series
	// Output makes an output that needs no configuration, for a program of which this agent is a part; nil: none.
	Output func(output.Env) output.Output
	// Light begins the light packets beside load tests; nil: there are none.
	Light probe.Light
	// Sink receives all measurements; nil: metric.Discard.
	Sink metric.Sink
	// Log receives log records; nil: they are discarded.
	Log *slog.Logger
	// Notify sends a state such as "READY=1" to the service manager; nil: systemd, if NOTIFY_SOCKET is set
	// (sd_notify(3)).
	Notify func(state string)
	// Socket is the UNIX socket on which load tests from this host's terminals lease links (package linklease); empty:
	// none. SocketGroup is the group that may use it besides this user and root; empty: none.
	Socket, SocketGroup string

	retry       retry         // set by tests only
	reloadPause time.Duration // set by tests only
	meshPause   time.Duration // set by tests only
	machine     func() mesh.Machine
}

// Types are the members of the registries. Clocks is required, and its first is the default; without a type of another kind no
// configuration can name one.
type Types struct {
	Clocks   []clock.Type
	Probes   []probe.Type
	Outputs  []output.Type
	Watchers []watcher.Type
	// Traffic are the types of traffic that the load server serves.
	Traffic []traffic.Type
}

// Agent runs a configuration. Make one with New; Run runs it once.
type Agent struct {
	options Options
	log     *slog.Logger
	sink    metric.Sink
	notify  func(string)

	reloading sync.Mutex // one reload at a time
	reloaded  time.Time  // end of the last reload; guarded by reloading

	// Shared by all tasks.
	pacer  *sched.Pacer
	clock  *leasedClock
	shared *shared
	state  stateLock // guarded by reloading
	// recorder receives the raw samples of all probes.
	recorder record.Recorder
	// pathTags are the labels of paths for outputs.
	pathTags point.PathLabels
	incident *incident.Supervisor
	onDemand *ondemand.Service
	// helperGroup is the delegated control group for helpers of probes; empty: there is none.
	helperGroup string

	// Guarded by reloading.
	running  map[string]*task // by key
	unexport func()           // ends the series of the calibration
	labels   pathlabel.Series
	warned   map[string]bool // warnings of the configuration that are in the log

	mu        sync.Mutex   // guards the fields below
	next      func() error // the requested reload that has not begun; nil: none
	ctx       context.Context
	inForce   *plan // before Run: the plan to apply
	started   time.Time
	loaded    time.Time
	reloadErr error
}

// New reads and checks the configuration. It opens only that file and the files that it names.
func New(o Options) (*Agent, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Sink == nil {
		o.Sink = metric.Discard{}
	}
	if o.Load == nil {
		o.Load = config.Load
	}
	if o.machine == nil {
		o.machine = mesh.ThisMachine
	}
	if o.Notify == nil {
		o.Notify = SystemdNotify(o.Log)
	}
	o.retry = retry{cmp.Or(o.retry.first, time.Second), cmp.Or(o.retry.most, time.Minute)}
	o.reloadPause = cmp.Or(o.reloadPause, reloadPause)
	o.meshPause = cmp.Or(o.meshPause, listen.RetryInterval)
	a := &Agent{options: o, log: o.Log, sink: o.Sink, notify: o.Notify, clock: &leasedClock{}, helperGroup: helper.Delegated()}
	a.shared = newShared(o.Sink, &a.recorder, o.Log)
	var err error
	if a.pacer, err = sched.NewPacer(); err != nil {
		return nil, fmt.Errorf("agent: %w", err)
	}
	a.incident = incident.New(incident.Options{
		Recorder: &a.recorder, Reports: a.shared.reports, Sink: a.sink, Tested: a.shared.tested.affected, Events: a.shared.events, Log: a.log.With("component", "incident"),
	})
	a.onDemand = ondemand.New(ondemand.Options{Sink: a.sink, Log: a.log.With("component", "on_demand")})
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
	_ = a.pacer.Run(ended) // frees the timer of the pacer; it cannot fail
}

// Run measures until ctx ends, and then returns nil with nothing left running. An error means that nothing can be
// measured.
func (a *Agent) Run(ctx context.Context) error {
	a.reloading.Lock()
	err := a.state.take(a.inForce.shared.stateDir)
	a.reloading.Unlock()
	if err != nil {
		a.release()
		return err
	}
	defer a.state.release()
	// The pacer ends after the probers, which remove their tasks from it.
	pacing, stopPacing := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- a.pacer.Run(pacing) }()
	defer stopPacing()

	success, loadedAt := a.sink.Series(metric.ConfigReloadSuccess), a.sink.Series(metric.ConfigReloadTime)
	defer success.Close()
	defer loadedAt.Close()
	sharing, keeping := a.always("the publishing of quotas", a.log, a.shared.Run), a.always("the incident supervisor", a.log, a.incident.Run)
	helper.RemoveLeft(a.helperGroup)
	a.begin(ctx)
	leasing := a.lease()
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	var watchers sync.WaitGroup
	watchers.Go(func() { a.watchdog(watching) })
	watchers.Go(func() { a.watchState(watching) })
	watchers.Go(func() { a.watchNames(watching) })
	watchers.Go(func() { watchSteps(watching, a.steps, a.shared.events) })
	watchers.Go(func() { watchDescriptors(watching, a.log, openNull) })
	a.notify("READY=1")
	select {
	case <-ctx.Done():
	case err = <-ended:
		err = fmt.Errorf("agent: the pacer ended: %w", errors.Join(err, errNoPacer))
		ended <- nil
	}
	a.notify("STOPPING=1")
	stuck := errors.Join(stopAll(nil, leasing...), stopAll(nil, keeping), a.end(), stopAll(nil, sharing))
	stopPacing()
	stopWatching()
	watchers.Wait()
	return errors.Join(err, stuck, <-ended)
}

var errNoPacer = errors.New("without the pacer no packet is sent")

// always starts a task that is independent of the configuration; stopAll ends it.
func (a *Agent) always(what string, log *slog.Logger, run func(context.Context) error) *task {
	return &task{what: what, unit: startUnit(context.Background(), log, a.options.retry, run)}
}

// begin applies the plan of New.
func (a *Agent) begin(ctx context.Context) {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	a.mu.Lock()
	a.ctx, a.started = ctx, time.Now().UTC()
	a.mu.Unlock()
	a.apply(a.inForce)
	a.warn(a.inForce)
	a.log.Info("Measuring", "version", version.Version, "config_file", a.options.ConfigFile, "paths", len(a.inForce.paths),
		"probes", len(a.inForce.jobs), "watchers", len(a.inForce.watchers.watchers), "addresses", strings.Join(a.addresses(), ", "),
		"time_zone", a.shared.local.Calendar().Name(time.Now()))
	a.shared.events.OfAgent(event.Restarted, a.started, fmt.Sprintf("oneway %s, paths: %d", version.Version, len(a.inForce.paths)))
}

// addresses are all on which this program listens, by the configuration.
func (a *Agent) addresses() (all []string) {
	if a.options.Addresses != nil {
		all = a.options.Addresses()
	}
	for _, l := range a.inForce.reflector.Listen {
		if a.inForce.reflector.task != nil {
			all = append(all, "reflector "+l.String())
		}
	}
	for _, l := range a.inForce.loadServer.Listen {
		if a.inForce.loadServer.task != nil {
			all = append(all, "load_server "+l.String())
		}
	}
	return all
}

// end stops all tasks of the configuration.
func (a *Agent) end() error {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	a.mu.Lock()
	a.ctx = nil
	a.mu.Unlock()
	a.onDemand.Stop()
	err := stopAll(nil, slices.Collect(maps.Values(a.running))...)
	a.shared.events.End() // what ends with the agent is no event
	a.calibrated(nil)
	a.incident.SetPaths(nil)
	a.shared.tested.put(&plan{})
	a.shared.states.put(&plan{})
	a.shared.routes.put(&plan{})
	a.shared.work.put(&plan{})
	a.labels.Publish(a.sink, "", nil)
	return err
}

// setGauge sets a gauge that Run keeps open.
func (a *Agent) setGauge(d *metric.Desc, v float64) {
	s := a.sink.Series(d)
	s.Set(v)
	s.Close()
}

// calibrated publishes a calibration in place of the previous one; nil: none.
func (a *Agent) calibrated(t *calibration.Table) {
	if a.unexport != nil {
		a.unexport()
	}
	a.unexport = t.Export(a.sink)
	for _, w := range t.Warnings() {
		a.log.Warn("Calibration of another system can only widen error bounds", "warning", w)
	}
}

// apply puts a plan in force: first all obsolete tasks end, then new ones start, so that nothing is measured twice. It
// returns the number of probers that continue.
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
	if err := stopAll(reloaded{}, slices.Collect(maps.Values(gone))...); err != nil {
		a.log.Error("Obsolete tasks did not end", "err", err)
	}
	a.running = wanted
	a.shared.put(&p.shared)
	a.clock.task.Store(p.clock.task)
	for t, later := range p.adopted {
		t.adopt(later)
	}
	a.calibrated(p.calibration)
	a.shared.events.SetPaths(p.has)
	a.incident.SetPaths(incidentPaths(p))
	a.shared.tested.put(p)
	a.shared.states.put(p)
	a.shared.routes.put(p)
	a.shared.work.put(p)
	a.labels.Publish(a.sink, p.site, p.labels())
	a.pathTags.Set(p.labelTags())
	a.onDemand.Configure(p.onDemand.config)
	for _, t := range p.tasks {
		if fresh[t] {
			t.unit.start(ctx)
		}
	}
	awaitListeners(ctx, p.reflector.task, p.loadServer.task)
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

// reloadPause is the minimum time between the end of a reload and the start of the next.
const reloadPause = time.Second

// ErrNotRunning is returned by Reload before and after Run.
var ErrNotRunning = errors.New("agent: not running")

// Reload reads the configuration again and puts it in force. On an error the previous one stays in force. One reload runs
// at a time, and the next starts a second after its end: it serves all requests made until it starts, and reads the
// file after the last of them.
func (a *Agent) Reload() error { return a.nextReload()() }

// nextReload returns the reload that serves a request made now: the first caller runs it, all get its result.
func (a *Agent) nextReload() func() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.next == nil {
		a.next = sync.OnceValue(a.runReload)
	}
	return a.next
}

// runReload runs a reload for all requests that wait for it.
func (a *Agent) runReload() error {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	a.mu.Lock()
	ctx := a.ctx
	a.mu.Unlock()
	if ctx != nil {
		// A stream of requests must not keep the agent from measuring: one reload in each pause.
		ctxtime.Sleep(ctx, time.Until(a.reloaded.Add(a.options.reloadPause)))
	}
	a.mu.Lock()
	a.next = nil // later requests get another reload
	a.mu.Unlock()
	if ctx == nil || ctx.Err() != nil {
		return ErrNotRunning
	}
	defer func() { a.reloaded = time.Now() }()
	return a.reload()
}

// warn logs the warnings of a plan that the one before it did not have.
func (a *Agent) warn(p *plan) {
	told := a.warned
	a.warned = map[string]bool{}
	for _, w := range p.summary.Warnings {
		text := w.Key + " " + w.Text
		if a.warned[text] = true; !told[text] {
			a.log.Warn("Configuration accepted with a warning", "warning", w)
		}
	}
}

// reload runs one reload; the caller holds reloading.
func (a *Agent) reload() error {
	a.notify(reloadingState())
	defer a.notify("READY=1")
	p, err := a.plan()
	if err == nil {
		err = a.state.take(p.shared.stateDir)
	}
	if err != nil {
		a.mu.Lock()
		a.reloadErr = err
		a.mu.Unlock()
		a.setGauge(metric.ConfigReloadSuccess, 0)
		a.shared.events.OfAgent(event.ReloadFailed, time.Now(), err.Error())
		a.log.Error("Configuration not reloaded, the previous one is still used", "err", err)
		return err
	}
	kept := a.apply(p)
	a.warn(p)
	a.shared.events.OfAgent(event.Reloaded, time.Now(), fmt.Sprintf("paths: %d, probes: %d, unchanged probes: %d", len(p.paths), len(p.jobs), kept))
	a.log.Info("Configuration reloaded", "paths", len(p.paths), "probes", len(p.jobs), "probes_kept", kept)
	return nil
}
