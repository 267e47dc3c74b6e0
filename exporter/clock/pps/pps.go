// Package pps watches a pulse per second as the Linux kernel stamps it
// (/dev/ppsN, RFC 2783, the kernel's Documentation/driver-api/pps.rst): whether
// pulses come, how evenly, and what they say of the system's clock.
//
// It reads beside chronyd or gpsd and takes nothing from them: any number of
// readers may fetch, and no parameter of the device is changed. The daemon steers
// the clock; estimate/ppsfit, which is fed here, judges it from the same pulses
// over CLOCK_MONOTONIC_RAW, with none of the daemon's arithmetic.
//
// The kernel stamps a pulse with CLOCK_REALTIME. Where that is on
// CLOCK_MONOTONIC_RAW is found right after the fetch by reading both clocks and
// going back by the time since the stamp; see Pulse.RawError for how well.
package pps

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"oneway.example/exporter/ctxtime"
	"oneway.example/exporter/instant"
	"oneway.example/exporter/metric"
)

// DefaultDevice is the default of Options.Device.
const DefaultDevice = "/dev/pps0"

const (
	// fetchTimeout bounds one wait for a pulse: longer than a second, so that a
	// pulse never falls between two waits, and short, as it delays the shutdown.
	fetchTimeout = 1500 * time.Millisecond
	// lostAfter is the time without a pulse after which values are withdrawn.
	lostAfter = 5 * time.Second
	// farewell is how long the end of Run waits for a fetch that hangs.
	farewell = fetchTimeout + 500*time.Millisecond
)

// Pulse is one pulse as the kernel stamped it.
type Pulse struct {
	// Sequence is the kernel's count of this edge since the device was made.
	Sequence uint32
	// Assert is CLOCK_REALTIME at the edge (the clear edge with Options.Clear).
	Assert instant.Time
	// Raw is CLOCK_MONOTONIC_RAW at the edge.
	Raw time.Duration
	// RawError bounds the error of Raw against Assert: half the time that reading
	// the clocks took (0.1 to 1 us; tens of us in a user-mode-linux guest), plus
	// what the two clocks may have gone apart since the edge: 500 ppm, the most
	// that the kernel takes as a frequency, or twice what was measured over the
	// last second, of the time since. That is 25 ns for a reader that wakes after 50 us.
	RawError time.Duration
}

// Options configure a Watcher. The zero value watches DefaultDevice.
type Options struct {
	// Device is the path; empty: DefaultDevice.
	Device string
	// Clear takes the clear edge for the pulse, for a receiver or a level converter
	// that inverts.
	Clear bool
	// Name is the value of the metric label `pps`; empty: the last part of Device.
	Name string
	// Sink takes the metrics; nil: nobody.
	Sink metric.Sink
	// Log is told when pulses and the device come and go; nil: nobody.
	Log *slog.Logger

	// kernel replaces the operating system in tests.
	kernel kernel
}

// State is what is known now.
type State struct {
	// Open: the device is open. Fault says why not, or what is wrong with it; empty
	// if nothing is.
	Open  bool
	Fault string
	// Pulses and Missed count since the start: pulses stamped by the kernel, and
	// seconds without one.
	Pulses, Missed uint64
	// Last is the last pulse; zero before the first.
	Last Pulse
	// Present: a pulse came within the last 5 s.
	Present bool
	// Jitter is the standard deviation of the last 64 intervals; JitterKnown is
	// false before eight intervals and without a pulse for 5 s.
	Jitter      time.Duration
	JitterKnown bool
	// FitOffset is the system's clock minus the pulses' time, modulo one second,
	// FitBound its bound; FitKnown is false until enough pulses agree and without a
	// good pulse for 5 s.
	FitOffset, FitBound time.Duration
	FitKnown            bool
}

// Watcher watches one device. State may be called from any goroutine; Run is called
// once.
type Watcher struct {
	options Options
	state   atomic.Pointer[State]
}

// New checks the options. It opens nothing.
func New(o Options) (*Watcher, error) {
	o.Device = cmp.Or(o.Device, DefaultDevice)
	if !filepath.IsAbs(o.Device) {
		return nil, fmt.Errorf("pps: device is %q; it is a path such as %s", o.Device, DefaultDevice)
	}
	o.Name = cmp.Or(o.Name, filepath.Base(o.Device))
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler)).With("pps", o.Name, "device", o.Device)
	if o.kernel == nil {
		o.kernel = linux{}
	}
	w := &Watcher{options: o}
	w.state.Store(&State{})
	return w, nil
}

// State says what is known now.
func (w *Watcher) State() State { return *w.state.Load() }

// Run reads pulses and publishes until ctx ends; it returns nil then. A device that
// is not there, or vanishes, is opened again for ever. The end takes up to 2 s, as
// a wait for a pulse cannot be broken off.
func (w *Watcher) Run(ctx context.Context) error {
	j := newJudge(w.options.Sink, w.options.Name)
	defer func() { w.state.Store(j.close()) }()
	r := &reader{options: &w.options, news: make(chan news)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.run(ctx)
	}()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	events := log{Logger: w.options.Log}
	for {
		select {
		case <-ctx.Done():
			select {
			case <-ended:
			case <-time.After(farewell):
				w.options.Log.Warn("the kernel does not return from a fetch; its thread is left behind")
			}
			return nil
		case n := <-r.news:
			j.take(n)
		case <-tick.C:
			j.age(time.Now())
		}
		state := j.state
		w.state.Store(&state)
		events.tell(j)
	}
}

// log writes a line when something has changed, and none for what stays.
type log struct {
	*slog.Logger
	open, silent bool
	fault        string
	// vanished: the last fault was that of an open device; that it cannot be opened
	// then, either, is no other event.
	vanished bool
}

func (l *log) tell(j *judge) {
	s := &j.state
	switch {
	case s.Fault != "" && s.Fault != l.fault:
		if !l.vanished {
			l.Warn("no pulses: the device cannot be read; trying on", "err", s.Fault)
		}
		l.vanished = l.open
	case s.Open && !l.open:
		l.Info("device opened")
		l.vanished = false
	}
	switch {
	case j.silent && !l.silent:
		l.Warn("no pulse for 5 s", "last", s.Last.Assert.String())
	case l.silent && s.Present:
		l.Info("pulses are back", "missed", s.Missed)
	}
	l.open, l.fault, l.silent = s.Open, s.Fault, j.silent
}

const (
	// firstPause and longestPause are between attempts to open the device.
	firstPause   = time.Second
	longestPause = 30 * time.Second
	// rest follows each pulse: a line that oscillates costs no more than fifty
	// fetches a second, and the sequence counts what was slept through.
	rest = 20 * time.Millisecond
	// idle is how many fetches in a row may return at once without a pulse (the
	// other edge is one a second) before each is followed by a pause.
	idle = 4
	// idlePause is that pause. Some drivers cannot wait and say that they can.
	idlePause = 100 * time.Millisecond
)

// news is what the reader has to say: a device opened, a fault, or an edge.
type news struct {
	opened bool
	err    error
	event  event
	now    reading // right after the fetch
}

// reader waits for pulses on a goroutine of its own, as the kernel may hold it.
type reader struct {
	options *Options
	news    chan news
	// heard: an edge came since the device was opened.
	heard bool
}

// run opens the device, and again, until ctx ends.
func (r *reader) run(ctx context.Context) {
	pause := firstPause
	for {
		d, err := r.options.kernel.open(r.options.Device, r.options.Clear)
		if err == nil {
			r.heard = false
			err = r.read(ctx, d)
			d.close()
		}
		if r.heard {
			pause, r.heard = firstPause, false
		}
		if !r.tell(ctx, news{err: err}) || !ctxtime.For(ctx, pause) {
			return
		}
		pause = min(2*pause, longestPause)
	}
}

// read tells of each new edge until the device fails or ctx ends.
func (r *reader) read(ctx context.Context, d device) error {
	if !r.tell(ctx, news{opened: true}) {
		return ctx.Err()
	}
	var last event
	for stale := 0; ctx.Err() == nil; {
		e, err := d.fetch(fetchTimeout)
		now := r.options.kernel.clocks()
		switch {
		case errors.Is(err, errNoEvent):
			if err := d.present(); err != nil {
				return err
			}
		case err != nil:
			return err
		case r.heard && e.sequence == last.sequence:
			if stale++; stale > idle {
				ctxtime.For(ctx, idlePause)
			}
		default:
			stale, last, r.heard = 0, e, true
			r.tell(ctx, news{event: e, now: now})
			ctxtime.For(ctx, rest)
		}
	}
	return ctx.Err()
}

// tell hands n over, and reports whether ctx allowed it.
func (r *reader) tell(ctx context.Context, n news) bool {
	select {
	case r.news <- n:
		return true
	case <-ctx.Done():
		return false
	}
}
