// Package pps watches a pulse per second that the Linux kernel timestamps (/dev/ppsN, RFC 2783, the kernel's
// Documentation/driver-api/pps.rst): the presence of pulses, their jitter, and the clock offset by them.
//
// It reads in parallel with chronyd or gpsd and does not affect them: any number of readers may fetch, and no parameter of
// the device is changed. The daemon disciplines the clock; estimate/ppsfit checks the clock by the same pulses over
// CLOCK_MONOTONIC_RAW, independently of the daemon's computations.
//
// The kernel timestamps a pulse with CLOCK_REALTIME. The corresponding CLOCK_MONOTONIC_RAW is computed right after the
// fetch from a reading of both clocks and the time since the timestamp; see Pulse.RawError for the error.
package pps

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/watcher"
)

// DefaultDevice is the default of Options.Device.
const DefaultDevice = "/dev/pps0"

const (
	// fetchTimeout limits one wait for a pulse: longer than a second, so that a pulse never falls between two waits, and
	// short, since it delays the shutdown.
	fetchTimeout = 1500 * time.Millisecond
	// lostAfter is the time without a pulse after which values are withdrawn.
	lostAfter = 5 * time.Second
	// endTimeout is the time that the end of Run waits for a fetch that hangs.
	endTimeout = fetchTimeout + 500*time.Millisecond
)

// Pulse is one pulse as timestamped by the kernel.
type Pulse struct {
	// Sequence is the kernel's count of this edge since the device was created.
	Sequence uint32
	// Assert is CLOCK_REALTIME at the edge (the clear edge with Options.Clear).
	Assert instant.Time
	// Raw is CLOCK_MONOTONIC_RAW at the edge.
	Raw time.Duration
	// RawError bounds the error of Raw relative to Assert: half the time of reading the clocks (0.1 to 1 us; tens of us in
	// a user-mode-linux guest), plus the possible divergence of the two clocks since the edge: 500 ppm, the kernel's
	// maximum frequency, or twice the rate measured over the last second, times the time since the edge. That is 25 ns
	// for a reader that wakes after 50 us.
	RawError time.Duration
}

// Options configure a Watcher. The zero value watches DefaultDevice.
type Options struct {
	// Env has the Name, which is the value of the metric label `pps`; empty: the last part of Device. A nil Sink discards the metrics,
	// a nil Log the records.
	watcher.Env
	// Device is the path; empty: DefaultDevice.
	Device string
	// Clear uses the clear edge as the pulse, for a receiver or level converter that inverts the signal.
	Clear bool

	// kernel replaces the operating system in tests.
	kernel kernel
}

// State is the current state.
type State struct {
	// Open: the device is open. Fault is why it is not, or its error; empty if there is none.
	Open  bool
	Fault string
	// Pulses and Missed count since the start: pulses timestamped by the kernel, and seconds without one.
	Pulses, Missed uint64
	// Last is the last pulse; zero before the first.
	Last Pulse
	// Present: a pulse came within the last 5 s.
	Present bool
	// Jitter is the standard deviation of the last 64 intervals; JitterKnown is false before eight intervals and after
	// 5 s without a pulse.
	Jitter      time.Duration
	JitterKnown bool
	// FitOffset is the system clock minus the pulses' time, modulo one second, FitBound its error bound; FitKnown is false
	// until enough pulses agree and after 5 s without a used pulse.
	FitOffset, FitBound time.Duration
	FitKnown            bool
}

// Watcher watches one device. State may be called from any goroutine; Run is called once.
type Watcher struct {
	options Options
	state   atomic.Pointer[State]
}

// New checks the options. It opens nothing.
func New(o Options) (*Watcher, error) {
	o.Device = cmp.Or(o.Device, DefaultDevice)
	if err := checkPath(o.Device); err != nil {
		return nil, err
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

func checkPath(device string) error {
	if !filepath.IsAbs(device) {
		return option.Errorf("device", "is %q; it must be an absolute path, such as %s", device, DefaultDevice)
	}
	return nil
}

// State returns the current state.
func (w *Watcher) State() State { return *w.state.Load() }

// Run reads pulses and publishes until ctx ends; it returns nil then. It retries without end to open a missing device. The
// end takes up to 2 s, since a wait for a pulse cannot be interrupted.
func (w *Watcher) Run(ctx context.Context) error {
	j := newJudge(w.options.Scope())
	defer func() { w.state.Store(j.close()) }()
	r := &reader{options: &w.options, messages: make(chan message)}
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
			case <-time.After(endTimeout):
				w.options.Log.Warn("Fetch from the kernel did not return; its thread is abandoned")
			}
			return nil
		case n := <-r.messages:
			j.take(n)
		case <-tick.C:
			j.age(time.Now())
		}
		state := j.state
		w.state.Store(&state)
		events.update(j)
	}
}

// log writes a record when the state changes.
type log struct {
	*slog.Logger
	open, silent bool
	fault        string
	// vanished: the last fault was that of an open device; the following failure to open it is part of the same event.
	vanished bool
}

func (l *log) update(j *judge) {
	s := &j.state
	switch {
	case s.Fault != "" && s.Fault != l.fault:
		if !l.vanished {
			l.Warn("Device cannot be read, will be retried", "err", s.Fault)
		}
		l.vanished = l.open
	case s.Open && !l.open:
		l.Info("Device opened")
		l.vanished = false
	}
	switch {
	case j.silent && !l.silent:
		l.Warn("No pulse for 5 s", "last", s.Last.Assert.String())
	case l.silent && s.Present:
		l.Info("Pulses are back", "missed", s.Missed)
	}
	l.open, l.fault, l.silent = s.Open, s.Fault, j.silent
}

const (
	// firstPause and longestPause limit the pause between attempts to open the device.
	firstPause   = time.Second
	longestPause = 30 * time.Second
	// pulsePause follows each pulse: an oscillating line costs at most fifty fetches per second, and the sequence
	// counts the pulses meanwhile.
	pulsePause = 20 * time.Millisecond
	// idle is the number of consecutive fetches without a pulse that may return at once (the other edge is one per
	// second) before each is followed by a pause.
	idle = 4
	// idlePause is that pause. Some drivers cannot wait but report that they can.
	idlePause = 100 * time.Millisecond
)

// message is a message of the reader: an opened device, a fault, or an edge.
type message struct {
	opened bool
	err    error
	event  event
	now    reading // right after the fetch
}

// reader waits for pulses in a goroutine of its own, since the kernel may block it.
type reader struct {
	options  *Options
	messages chan message
	// anyEdge: an edge was received since the device was opened.
	anyEdge bool
}

// run opens the device, repeatedly, until ctx ends.
func (r *reader) run(ctx context.Context) {
	pause := firstPause
	for {
		d, err := r.options.kernel.open(r.options.Device, r.options.Clear)
		if err == nil {
			r.anyEdge = false
			err = r.read(ctx, d)
			d.close()
		}
		if r.anyEdge {
			pause, r.anyEdge = firstPause, false
		}
		if !r.send(ctx, message{err: err}) || !ctxtime.Sleep(ctx, pause) {
			return
		}
		pause = min(2*pause, longestPause)
	}
}

// read reports each new edge until the device fails or ctx ends.
func (r *reader) read(ctx context.Context, d device) error {
	if !r.send(ctx, message{opened: true}) {
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
		case r.anyEdge && e.sequence == last.sequence:
			if stale++; stale > idle {
				ctxtime.Sleep(ctx, idlePause)
			}
		default:
			stale, last, r.anyEdge = 0, e, true
			r.send(ctx, message{event: e, now: now})
			ctxtime.Sleep(ctx, pulsePause)
		}
	}
	return ctx.Err()
}

// send sends n, and reports false if ctx ended first.
func (r *reader) send(ctx context.Context, n message) bool {
	select {
	case r.messages <- n:
		return true
	case <-ctx.Done():
		return false
	}
}
