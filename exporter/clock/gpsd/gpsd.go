// Package gpsd is a client of gpsd: it tells how the GNSS receiver is.
//
// It reads gpsd's JSON reports (gpsd_json(5), protocol 3) over TCP: the kind of
// fix, the satellites, the pulse per second and its sawtooth, and how late the
// serial time comes. Nothing of it enters a delay's bound, which is the clock
// daemon's (clock/chrony) alone; it tells why that bound is what it is.
//
// gpsd may be absent, hang, lie or flood; that costs no probe:
//
//	no gpsd                     tried again for ever, after pauses that double up to
//	                            Options.MaxBackOff, half of each at random
//	gpsd that hangs             asked after 15 s of silence, left after 15 more
//	gpsd without a device       answers when asked, so it is kept; connected is 0
//	receiver without a fix      reports mode 1, so it is heard
//	receiver unplugged          gpsd 3.22 often does not tell, and may list it for ever: its
//	                            values are withdrawn and connected is 0 after 15 s of silence
//	a line that makes no sense  is counted by its reason, and the next one is read
//	a flood                     is read at a pace that costs little, in fixed memory
package gpsd

import (
	"context"
	"sync"
	"time"

	"oneway.example/exporter/wait"
)

// firstPause is the first pause after a connection has failed or ended.
const firstPause = time.Second

// Client follows one receiver of one gpsd. Its methods are safe for concurrent
// use; Run is called once.
type Client struct {
	options Options
	series  *series // set by Run

	mu        sync.Mutex
	answering bool
	release   string
	receiver  receiver
}

// New checks the options and returns a client that knows nothing yet. It opens
// nothing.
func New(o Options) (*Client, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Client{options: o}
	c.reset()
	return c, nil
}

// State is what is known of the receiver now. It never waits for gpsd.
func (c *Client) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.receiver.state(time.Now())
	s.Answering, s.Release = c.answering, c.release
	return s
}

// Run connects, reads and publishes until ctx ends, and then returns nil. It
// never gives up: whatever is wrong with gpsd may be mended.
func (c *Client) Run(ctx context.Context) error {
	c.series = openSeries(c.options.Sink, c.options.Name)
	var background sync.WaitGroup
	background.Go(func() { c.publish(ctx) })
	c.follow(ctx)
	background.Wait()
	c.series.close(c.options.Sink)
	return nil
}

// follow makes one connection after the other.
func (c *Client) follow(ctx context.Context) {
	pauses := backOff{limit: c.options.MaxBackOff, random: c.options.random}
	for ctx.Err() == nil {
		began := time.Now()
		answered, err := c.connect(ctx)
		if ctx.Err() != nil {
			return
		}
		if answered && time.Since(began) >= c.options.MaxBackOff {
			pauses.failed = 0
		}
		if answered || pauses.failed == 0 {
			c.options.Log.Warn("gpsd is not there", "receiver", c.options.Name, "address", c.options.Address, "err", err)
		}
		if !wait.For(ctx, pauses.next()) {
			return
		}
	}
}

// connect makes one connection and reads it to its end. It reports whether gpsd
// said anything, and why the connection ended.
func (c *Client) connect(ctx context.Context) (answered bool, err error) {
	conn, err := c.options.dial(ctx)
	if err != nil {
		return false, err
	}
	c.series.connections.Add(1)
	s := &session{Client: c, conn: conn, request: request(c.options.Device)}
	err = s.serve(ctx)
	c.reset()
	return s.ever, err
}

// reset forgets the connection and all that was known through it.
func (c *Client) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answering, c.release = false, ""
	c.receiver = receiver{wanted: c.options.Device, lastMessage: c.receiver.lastMessage}
}

// take brings one report to the state, and reports whether the receiver sent it.
func (c *Client) take(report any, now time.Time) bool {
	c.mu.Lock()
	answered, had := c.answering, c.receiver.connected(now)
	c.answering = true
	if v, ok := report.(*version); ok {
		c.release = quote(v.Release)
	}
	heard := c.receiver.apply(report, now)
	has, release := c.receiver.connected(now), c.release
	c.mu.Unlock()
	if !answered {
		c.options.Log.Info("gpsd answers", "receiver", c.options.Name, "address", c.options.Address, "release", release)
	}
	if had != has {
		c.options.Log.Info("gpsd's device", "receiver", c.options.Name, "present", has)
	}
	return heard
}

// backOff is the growing pause between connections.
type backOff struct {
	limit  time.Duration
	random func() float64
	failed int // attempts since the last good connection
}

// next is the next pause: doubled each time up to the limit, and then between
// half of that and the whole, so that many clients do not come at once.
func (b *backOff) next() time.Duration {
	pause := min(firstPause, b.limit)
	for i := 0; i < b.failed && pause < b.limit; i++ {
		pause = min(2*pause, b.limit)
	}
	b.failed++
	return pause/2 + time.Duration(b.random()*float64(pause/2))
}
