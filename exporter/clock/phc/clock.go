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
	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/core/instant"
)

// Clock is the clock of an interface's card, read once a second while it is open. It is a tstamp.HardwareClock.
//
// A later reading that fails is not an error: nothing is converted, so the kernel's timestamps are used, until the card
// can be read again.
type Clock struct {
	name     string
	log      *slog.Logger
	machine  machine
	relation Relation
	steps    *clock.StepDetector
	era      atomic.Uint64 // steps of the system clock when relation was measured

	cancel  context.CancelFunc
	running sync.WaitGroup
}

// Start opens the clock of the card of interface name. An error describes the fault of the interface and its remedy.
func Start(name string, log *slog.Logger) (*Clock, error) {
	return begin(name, log, machine{inspect: Interface, open: openDevice})
}

// machine is the part of the operating system that Start uses.
type machine struct {
	inspect func(name string) (Info, error)
	open    func(number int) (device, error)
	steps   clock.StepOptions
}

// device is a Device, or a fake one in tests.
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
		c.log.Warn("The card timestamps only some of the received packets, the kernel timestamps the others", "enable_with", "hwstamp_ctl -i "+name+" -t 1 -r 1")
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	c.running.Go(func() { _ = c.steps.Run(ctx) }) // its only error is that of ctx
	c.running.Go(func() { c.keep(ctx, d) })
	return c, nil
}

// advice ends each message about an interface that cannot be used.
const advice = `, or leave "hardware" out`

// usable returns what the card of the interface can do at the moment; an error includes the remedy.
func (c *Clock) usable() (Info, error) {
	info, err := c.machine.inspect(c.name)
	switch {
	case errors.Is(err, syscall.ENODEV):
		return info, fmt.Errorf("phc: interface %s does not exist: correct its name"+advice+" (%w)", c.name, err)
	case err != nil:
		return info, fmt.Errorf("%w: name another interface"+advice, err)
	case info.Clock < 0 || !info.Hardware:
		return info, fmt.Errorf("phc: interface %s has no PTP clock, so its card cannot timestamp: name the interface that test packets use"+advice, c.name)
	case !info.Enabled:
		return info, fmt.Errorf("phc: timestamping is disabled on the card of %s: enable it with hwstamp_ctl -i %[1]s -t 1 -r 1"+advice, c.name)
	}
	return info, nil
}

// open opens the clock; an error includes the remedy.
func (c *Clock) open() (device, Info, error) {
	info, err := c.usable()
	if err != nil {
		return nil, info, err
	}
	d, err := c.machine.open(info.Clock)
	switch {
	case errors.Is(err, os.ErrPermission):
		return nil, info, fmt.Errorf("%w (the clock of %s): let this user read it"+advice, err, c.name)
	case err != nil:
		return nil, info, fmt.Errorf("%w (the clock of %s)", err, c.name)
	}
	return &cardClock{device: d, of: c, number: info.Clock}, info, nil
}

// cardClock is the open clock of a card, as long as the interface has that card. An interface that is deleted and made again may have
// another one, or no timestamping, while the clock of the former card can still be read.
type cardClock struct {
	device
	of     *Clock
	number int
}

// Read returns an error if the interface has another clock now, or its card does not timestamp.
func (d *cardClock) Read() (Reading, error) {
	info, err := d.of.usable()
	if err == nil && info.Clock != d.number {
		err = fmt.Errorf("phc: interface %s has the clock %d now, and had %d", d.of.name, info.Clock, d.number)
	}
	if err != nil {
		return Reading{}, err
	}
	return d.device.Read()
}

const (
	// maxRetry limits the wait between attempts to read a card again.
	maxRetry = 10 * time.Second
	// healthy is how many successful readings in a row end a failure. A card that fails intermittently is not logged
	// each time.
	healthy = 10
)

// keep follows d, and after a failure opens the clock anew: the interface may have returned with another clock. It logs
// each failure once.
func (c *Clock) keep(ctx context.Context, d device) {
	logged, delay := false, Interval
	for {
		var err error
		if d == nil {
			d, _, err = c.open()
		}
		if err == nil {
			r := &reader{from: d, clock: c}
			if logged {
				r.recovered = func() {
					logged, delay = false, Interval
					c.log.Info("Reading the card's clock works again")
				}
			}
			err = errors.Join(c.relation.Follow(ctx, r, Interval), d.Close())
			d = nil
		}
		if ctx.Err() != nil {
			return
		}
		if !logged {
			logged = true
			c.log.Warn("Cannot read the card's clock; using kernel timestamps and retrying", "err", err)
		}
		if !ctxtime.Sleep(ctx, delay) {
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
	recovered func() // called after healthy readings; nil: not called
}

var errStepping = errors.New("phc: system clock was stepped during each of 5 readings")

// Read returns a reading during which the system clock was not stepped.
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
			r.clock.relation.Forget() // first, so that System never uses a line of another era
			r.clock.era.Store(before)
		}
		if r.readings++; r.readings == healthy && r.recovered != nil {
			r.recovered()
		}
		return now, nil
	}
	return Reading{}, errStepping
}

// System converts a raw timestamp, see Relation.System. After a step of the system clock it converts nothing until two
// more readings: a line from before the step would give times of the old clock.
func (c *Clock) System(raw instant.Time) (at instant.Time, ok bool) {
	if c.steps.Check().Steps != c.era.Load() {
		return 0, false
	}
	return c.relation.System(raw)
}

// Uncertainty is the one-sided error bound of a converted timestamp, at most MaxUncertainty; ok is false while nothing
// is converted.
func (c *Clock) Uncertainty() (u time.Duration, ok bool) { return c.relation.Uncertainty() }

// Close stops the readings and waits until they end; nothing is converted afterwards.
func (c *Clock) Close() {
	c.cancel()
	c.running.Wait()
}
