package pps

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oneway.example/exporter/clock/clocktest"
	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/watcher"
)

const (
	// waking is how long after the pulse the fake's fetch returns.
	waking = 50 * time.Microsecond
	// rawRate is how much faster the fake's raw clock goes than true time.
	rawRate = 35e-6
)

// fake is a kernel whose true time is the bubble's, which begins at a whole second.
type fake struct {
	mu sync.Mutex
	// begun is when the true time began.
	begun time.Time
	// wall is how much the system's clock is ahead of the truth.
	wall time.Duration
	// latency of the next pulses.
	latency time.Duration
	// every is the time from one pulse to the next; silent: none come.
	every  time.Duration
	silent bool
	// other is how long before the pulse the line has its other edge; zero: never.
	other time.Duration
	// openErr, fetchErr and presentErr are what the calls fail with.
	openErr, fetchErr, presentErr error
	// garble changes what fetch returns.
	garble func(*event)
	// hang blocks fetch until it is closed, which is done after the watcher's end.
	hang chan struct{}
	// slow delays the return of a fetch.
	slow time.Duration
	// restless: fetch never waits.
	restless bool

	sequence       uint32
	stamp          instant.Time
	pulse          chan struct{} // closed by the next pulse
	opens, fetches int
	openDevices    int
}

// do changes the fake.
func (k *fake) do(change func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change()
}

func (k *fake) now() reading {
	elapsed := time.Since(k.begun)
	return reading{
		wall:        instant.FromTime(time.Now()).Add(k.wall),
		raw:         1000*time.Second + elapsed + time.Duration(float64(elapsed)*rawRate),
		uncertainty: 200,
	}
}

func (k *fake) clocks() reading {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.now()
}

// beat makes the pulses, at whole seconds of true time and its latency, until ctx ends.
func (k *fake) beat(ctx context.Context) {
	for next := k.begun; ; {
		var other, latency time.Duration
		k.do(func() { next, other = next.Add(k.every), k.other })
		// simulated time (synctest)
		if other > 0 && ctxtime.Sleep(ctx, time.Until(next)-other) {
			k.do(k.wake)
		}
		// simulated time (synctest)
		if !ctxtime.Sleep(ctx, time.Until(next)) {
			return
		}
		k.do(func() { latency = k.latency })
		// simulated time (synctest)
		if !ctxtime.Sleep(ctx, latency) {
			return
		}
		k.do(func() {
			if !k.silent {
				k.sequence++
				k.stamp = k.now().wall
				k.wake()
			}
		})
	}
}

// wake ends all waits of fetch.
func (k *fake) wake() {
	close(k.pulse)
	k.pulse = make(chan struct{})
}

func (k *fake) open(string, bool) (device, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.opens++
	if k.openErr != nil {
		return nil, k.openErr
	}
	k.openDevices++
	return k, nil
}

func (k *fake) present() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.presentErr
}

func (k *fake) close() { k.do(func() { k.openDevices-- }) }

func (k *fake) fetch(timeout time.Duration) (event, error) {
	k.mu.Lock()
	k.fetches++
	pulse, hang, slow, restless := k.pulse, k.hang, k.slow, k.restless
	k.mu.Unlock()
	if hang != nil {
		<-hang
	}
	if restless {
		pulse = make(chan struct{})
		close(pulse)
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-pulse:
		// simulated time (synctest)
		time.Sleep(waking + slow)
	case <-timer.C:
		return event{}, errNoEvent
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	e := event{sequence: k.sequence, at: k.stamp}
	if k.garble != nil {
		k.garble(&e)
	}
	return e, k.fetchErr
}

// bench is a watcher at work on a fake kernel.
type bench struct {
	*testing.T
	*fake
	*Watcher
	sink *metrictest.Sink
	logs *clocktest.Log
}

// run starts a watcher in a bubble, lets f work with it and ends it.
func run(t *testing.T, f func(*bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{T: t, sink: &metrictest.Sink{}, logs: &clocktest.Log{}}
		b.fake = &fake{begun: time.Now(), every: time.Second, pulse: make(chan struct{})}
		var err error
		b.Watcher, err = New(Options{
			Env: watcher.Env{Name: "p", Sink: b.sink, Log: slog.New(slog.NewTextHandler(b.logs, nil))}, kernel: b.fake,
		})
		if err != nil {
			t.Fatal(err)
		}
		simulation, end := context.WithCancel(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { b.beat(simulation) })
		all.Go(func() {
			if err := b.Watcher.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		// Off the whole second: the work is between the pulses.
		time.Sleep(500 * time.Millisecond)
		f(b)
		b.stop(cancel)
		b.do(func() {
			if b.hang != nil {
				close(b.hang)
			}
		})
		time.Sleep(fetchTimeout) // time stands still in a bubble whose test is over
		end()
		all.Wait()
	})
}

// stop ends the watcher and looks at what it leaves.
func (b *bench) stop(cancel func()) {
	before := time.Now()
	cancel()
	for b.sink.Open() > 0 {
		if time.Since(before) > 2100*time.Millisecond {
			b.Fatalf("not at its end %v after its context", time.Since(before))
		}
		time.Sleep(10 * time.Millisecond) // simulated time (synctest)
	}
	if s := b.State(); s.Open || s.Present || s.FitKnown || s.JitterKnown {
		b.Errorf("after the end: %+v", s)
	}
}

// seconds lets true time go on.
func (b *bench) seconds(n int) {
	time.Sleep(time.Duration(n) * time.Second) // simulated time (synctest)
	synctest.Wait()
}

// value is a series' value; it fails if there is none.
func (b *bench) value(d *metric.Desc, labels ...string) float64 {
	b.Helper()
	v, ok := b.sink.Value(d, append([]string{"p"}, labels...)...)
	if !ok {
		b.Errorf("%s is absent", d.Name)
	}
	return v
}

func (b *bench) expect(want float64, d *metric.Desc, labels ...string) {
	b.Helper()
	if v := b.value(d, labels...); v != want {
		b.Errorf("%s%v is %v, want %v", d.Name, labels, v, want)
	}
}

func (b *bench) absent(descs ...*metric.Desc) {
	b.Helper()
	for _, d := range descs {
		if v, ok := b.sink.Value(d, "p"); ok {
			b.Errorf("%s is %v, want none", d.Name, v)
		}
	}
}

// offset fails unless the fit says that the clock is fast by want.
func (b *bench) offset(want time.Duration) {
	b.Helper()
	got, bound := b.value(metric.PPSFitOffset), b.value(metric.PPSFitBound)
	if d := got - want.Seconds(); d > bound || -d > bound || bound <= 0 || bound > 2e-6 {
		b.Errorf("fit offset %v +- %v s, want %v", got, bound, want)
	}
}

func (b *bench) logged(n int, message string) {
	b.Helper()
	if got := b.logs.Count(message); got != n {
		b.Errorf("%q logged %d times, want %d:\n%s", message, got, n, b.logs.Take())
	}
}

var (
	errGone      = errors.New("it is gone")
	errUnplugged = errors.New("no such device")
	errForbidden = errors.New("permission denied")
)
