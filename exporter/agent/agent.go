package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"oneway.example/exporter/calibration"
	"oneway.example/exporter/clock/gpsd"
	"oneway.example/exporter/clock/pps"
	"oneway.example/exporter/config"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/probe"
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
	// Socket is where heavy tests from this host's terminals ask for links (package loan);
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

	asked     reloads
	reloading sync.Mutex // one reload at a time
	reloaded  time.Time  // the last one's end; guarded by reloading

	mu        sync.Mutex // guards what follows
	ctx       context.Context
	pacer     *sched.Pacer
	config    *config.Config
	started   time.Time
	loaded    time.Time
	reloadErr error
	jobs      []*job
	shared    *sharedKeeper
	clock     *clockKeeper
	receiver  *watchKeeper[config.GPSD, gpsd.State]
	pulse     *watchKeeper[config.PPS, pps.State]
	reflector *reflectorKeeper
	responder *responderKeeper
	unexport  func() // ends the series of the calibration; touched with reloading held
}

// stopTimeout is how long probers may take to end.
const stopTimeout = 5 * time.Second

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
	o.retry.complete()
	if o.reloadPause == 0 {
		o.reloadPause = reloadPause
	}
	c, _, err := load(o.ConfigFile, o.Types)
	if err != nil {
		return nil, err
	}
	a := &Agent{options: o, log: o.Log, sink: o.Sink, notify: o.Notify, config: c}
	if a.shared, err = newSharedKeeper(a.sink, a.log); err != nil {
		return nil, err
	}
	a.clock = newClockKeeper(a.sink, a.log, o.retry)
	a.receiver = newReceiverKeeper(a.sink, a.log, o.retry)
	a.pulse = newPulseKeeper(a.sink, a.log, o.retry)
	a.reflector = newReflectorKeeper(a.sink, a.log, a.clock, o.retry)
	a.responder = newResponderKeeper(a.sink, a.log, a.clock, a.shared.links, o.retry)
	return a, nil
}

// Run measures until ctx ends, and then returns nil with nothing left running.
// An error says why nothing can be measured at all.
func (a *Agent) Run(ctx context.Context) error {
	pacer, err := sched.NewPacer()
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	// The pacer outlives the probers, which take their tasks out of it.
	pacing, stopPacing := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- pacer.Run(pacing) }()
	defer stopPacing()

	success, loadedAt := a.sink.Series(metric.ConfigReloadSuccess), a.sink.Series(metric.ConfigReloadTime)
	defer success.Close()
	defer loadedAt.Close()
	if err := a.begin(ctx, pacer); err != nil {
		stopPacing()
		return errors.Join(err, <-ended)
	}
	stopLending := a.lend()
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	watched, counted := a.watchdog(watching, pacer), watchDescriptors(watching, a.log, openNull)
	a.notify("READY=1")
	select {
	case <-ctx.Done():
	case err = <-ended:
		err = fmt.Errorf("agent: the pacer ended: %w", errors.Join(err, errNoPacer))
		ended <- nil
	}
	a.notify("STOPPING=1")
	stuck := errors.Join(stopLending(), a.end())
	stopPacing()
	stopWatching()
	<-watched
	<-counted
	return errors.Join(err, stuck, <-ended)
}

var errNoPacer = errors.New("without it nothing is sent")

// begin puts the configuration that New has read in force.
func (a *Agent) begin(ctx context.Context, pacer *sched.Pacer) error {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	a.mu.Lock()
	a.ctx, a.pacer, a.started = ctx, pacer, time.Now()
	a.mu.Unlock()
	p, err := a.plan(a.config)
	if err != nil {
		return err
	}
	a.apply(p)
	a.log.Info("Measuring", "paths", len(p.config.Paths), "probes", len(p.jobs), "config_file", a.options.ConfigFile)
	return nil
}

// end stops all that runs.
func (a *Agent) end() error {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	a.mu.Lock()
	jobs := a.jobs
	a.ctx = nil
	a.mu.Unlock()
	err := stopAll(jobs)
	a.calibrated(nil)
	defer a.shared.end() // after all who use it
	return errors.Join(err, a.reflector.stop(), a.responder.stop(), a.receiver.stop(), a.pulse.stop(), a.clock.stop())
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
	old, ctx := a.jobs, a.ctx
	a.mu.Unlock()
	running := map[*job]bool{}
	for _, j := range p.jobs {
		running[j] = true
	}
	gone := slices.DeleteFunc(slices.Clone(old), func(j *job) bool { return running[j] })
	if err := stopAll(gone); err != nil {
		a.log.Error("A prober that is no longer configured did not end", "err", err)
	}
	a.shared.apply(ctx, p.config)
	a.clock.apply(ctx, p.clock)
	a.receiver.apply(ctx, p.clock.GPSD)
	a.pulse.apply(ctx, p.clock.PPS)
	a.reflector.apply(ctx, p.reflector)
	a.responder.apply(ctx, p.responder)
	a.calibrated(p.calibration)
	for _, j := range p.jobs {
		if j.unit != nil {
			kept++
			continue
		}
		j.start(ctx, a)
	}
	now := time.Now()
	a.mu.Lock()
	a.jobs, a.config, a.loaded, a.reloadErr = p.jobs, p.config, now, nil
	a.mu.Unlock()
	a.setGauge(metric.ConfigReloadSuccess, 1)
	a.setGauge(metric.ConfigReloadTime, float64(now.UnixNano())/1e9)
	return kept
}
