package phc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/ctxtime"
	"oneway.example/exporter/instant"
)

// Clock is the clock of an interface's card, followed once a second while it is
// open. It is a tstamp.HardwareClock.
//
// A reading that fails later is no error: nothing is converted, which leaves the
// kernel's stamps, until the card can be read again.
type Clock struct {
	name     string
	log      *slog.Logger
	machine  machine
	relation Relation
	steps    *clock.StepDetector
	era      atomic.Uint64 // steps of the system clock when relation was learned

	cancel  context.CancelFunc
	running sync.WaitGroup
}

// Start opens the clock of the card of interface name. An error says what is
// wrong with the interface and what to do about it.
func Start(name string, log *slog.Logger) (*Clock, error) {
	return begin(name, log, machine{ask: Interface, open: openDevice})
}

// machine is what Start needs of the operating system.
type machine struct {
	ask   func(name string) (Info, error)
	open  func(number int) (device, error)
	steps clock.StepOptions
}

// device is a Device, or a test's.
type device interface {
	Reader
	io.Closer
}

func openDevice(number int) (device, error) { return Open(number) }

func begin(name string, log *slog.Logger, m machine) (*Clock, error) {
	c := &Clock{name: name, log: log.With("interface", name), machine: m, steps: clock.NewStepDetector(m.steps)}
	d, info, err := c.open()
	if err != nil {
		return nil, err
	}
	if !info.AllPackets {
		c.log.Warn("The card stamps only some of the packets that arrive, the kernel the others", "enable_with", "hwstamp_ctl -i "+name+" -t 1 -r 1")
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	c.running.Go(func() { _ = c.steps.Run(ctx) }) // it has no error but that of ctx
	c.running.Go(func() { c.keep(ctx, d) })
	return c, nil
}

// advice ends each message about an interface that cannot be used.
const advice = `, or leave "hardware" out`

// open opens the clock; an error says what to do about it.
func (c *Clock) open() (device, Info, error) {
	info, err := c.machine.ask(c.name)
	switch {
	case errors.Is(err, syscall.ENODEV):
		return nil, info, fmt.Errorf("phc: interface %s does not exist: correct its name"+advice+" (%w)", c.name, err)
	case err != nil:
		return nil, info, fmt.Errorf("%w: name another interface"+advice, err)
	case info.Clock < 0 || !info.Hardware:
		return nil, info, fmt.Errorf("phc: interface %s has no PTP clock, so its card cannot stamp: name the one that test packets pass"+advice, c.name)
	case !info.Enabled:
		return nil, info, fmt.Errorf("phc: the card of %s was not told to stamp: enable it with hwstamp_ctl -i %[1]s -t 1 -r 1"+advice, c.name)
	}
	d, err := c.machine.open(info.Clock)
	switch {
	case errors.Is(err, os.ErrPermission):
		return nil, info, fmt.Errorf("%w (the clock of %s): let this user read it"+advice, err, c.name)
	case err != nil:
		return nil, info, fmt.Errorf("%w (the clock of %s)", err, c.name)
	}
	return d, info, nil
}

const (
	// maxRetry bounds the wait between attempts to read a card again.
	maxRetry = 30 * time.Second
	// healthy is how many readings in a row end a failure. A card that comes and
	// goes is not told of each time.
	healthy = 10
)

// keep follows d, and after a failure opens the clock anew: the interface may
// be back with another one. It tells once of each failure.
func (c *Clock) keep(ctx context.Context, d device) {
	told, delay := false, Interval
	for {
		var err error
		if d == nil {
			d, _, err = c.open()
		}
		if err == nil {
			r := &reader{from: d, clock: c}
			if told {
				r.recovered = func() {
					told, delay = false, Interval
					c.log.Info("The card's clock is read again")
				}
			}
			err = errors.Join(c.relation.Follow(ctx, r, Interval), d.Close())
			d = nil
		}
		if ctx.Err() != nil {
			return
		}
		if !told {
			told = true
			c.log.Warn("The card's clock cannot be read; the kernel's stamps are used, and it is tried again", "err", err)
		}
		if !ctxtime.For(ctx, delay) {
			return
		}
		delay = min(2*delay, maxRetry)
	}
}

// reader reads a card for a relation of one era of the system clock.
type reader struct {
	from      Reader
	clock     *Clock
	readings  int
	recovered func() // called when so many readings are healthy; nil: nobody
}

var errStepping = errors.New("phc: the system clock is stepped again and again")

// Read is a reading during which the system clock was not stepped.
func (r *reader) Read() (Reading, error) {
	const attempts = 5
	for range attempts {
		before := r.clock.steps.Check().Steps
		now, err := r.from.Read()
		if err != nil {
			return now, err
		}
		if r.clock.steps.Check().Steps != before {
			continue
		}
		if before != r.clock.era.Load() {
			r.clock.relation.Forget() // first, so that System meets no line of another era
			r.clock.era.Store(before)
		}
		if r.readings++; r.readings == healthy && r.recovered != nil {
			r.recovered()
		}
		return now, nil
	}
	return Reading{}, errStepping
}

// System converts a raw stamp, see Relation.System. After a step of the system
// clock it converts nothing until two more readings: a line from before it would
// put stamps where the clock was.
func (c *Clock) System(raw instant.Time) (at instant.Time, ok bool) {
	if c.steps.Check().Steps != c.era.Load() {
		return 0, false
	}
	return c.relation.System(raw)
}

// Uncertainty is how far a converted stamp may be off, one-sided, and never more
// than MaxUncertainty; ok is false while nothing is converted.
func (c *Clock) Uncertainty() (u time.Duration, ok bool) { return c.relation.Uncertainty() }

// Close ends the following and waits for its end; nothing is converted any more.
func (c *Clock) Close() {
	c.cancel()
	c.running.Wait()
}
