// Package gpsd is a client of gpsd: it tells how the GNSS receiver is.
//
// It reads gpsd's JSON reports (gpsd_json(5), protocol 3) over TCP: the kind of
// fix, the satellites, the pulse per second and its sawtooth, and how late the
// serial time comes. Nothing of it enters a delay's bound, which is the clock
// daemon's (clock/chrony) alone; it tells why that bound is what it is.
//
// The receiver's position goes to the recorder's listeners (record.Point) and nowhere else: neither
// to the log nor to a metric.
//
// gpsd may be absent, hang, lie or flood; that costs no probe:
//
//	no gpsd                     tried again for ever, after pauses that double up to
//	                            30 s, half of each at random
//	gpsd that hangs             asked after 15 s of silence, left after 15 more
//	gpsd without a device       answers when asked, so it is kept; connected is 0
//	receiver without a fix      reports mode 1, so it is heard
//	receiver unplugged          gpsd 3.22 often does not tell, and may list it for ever: its
//	                            values are withdrawn and connected is 0 after 15 s of silence
//	a line that makes no sense  is counted by its reason, and the next one is read
//	a flood                     is read at a pace that costs little, in fixed memory
package gpsd

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"time"

	"oneway.example/exporter/ctxtime"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/record"
)

// firstPause is the first pause after a connection has failed or ended.
const firstPause = time.Second

// Client follows one receiver of one gpsd. Its methods are safe for concurrent
// use; Run is called once.
type Client struct {
	options Options
	series  *metric.Scope // set by Run

	mu        sync.Mutex
	answering bool
	release   string
	receiver  receiver
}

// New checks the options and returns a client that knows nothing yet. It opens
// nothing.
func New(o Options) (*Client, error) {
	o.Address = cmp.Or(o.Address, DefaultAddress)
	if _, _, err := net.SplitHostPort(o.Address); err != nil {
		return nil, fmt.Errorf("gpsd: address %q is not host:port: %w", o.Address, err)
	}
	if err := checkDevice(o.Device); err != nil {
		return nil, err
	}
	o.maxBackOff = cmp.Or(o.maxBackOff, defaultMaxBackOff)
	o.Name = cmp.Or(o.Name, DefaultName)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.timeout = cmp.Or(o.timeout, timeout)
	if o.dial == nil {
		dialer := &net.Dialer{Timeout: dialTimeout}
		o.dial = func(ctx context.Context) (net.Conn, error) { return dialer.DialContext(ctx, "tcp", o.Address) }
	}
	if o.random == nil {
		o.random = rand.Float64
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
	c.series = metric.NewScope(c.options.Sink, c.options.Name)
	defer c.series.Close()
	// The counters begin at zero; they are counted where it happens.
	c.series.Total(metric.GNSSConnections, 0)
	for _, m := range malformations() {
		c.series.Total(metric.GNSSMalformed, 0, string(m))
	}
	var background sync.WaitGroup
	defer background.Wait()
	background.Go(func() {
		for ctx.Err() == nil {
			state := c.State()
			c.series.Update(func() { write(c.series, &state) })
			ctxtime.For(ctx, publishEvery)
		}
	})
	c.follow(ctx)
	return nil
}

// follow makes one connection after the other.
func (c *Client) follow(ctx context.Context) {
	pause := time.Duration(0) // the last one; 0: the last connection was good
	for ctx.Err() == nil {
		began := time.Now()
		answered, err := c.connect(ctx)
		if ctx.Err() != nil {
			return
		}
		if answered && time.Since(began) >= c.options.maxBackOff {
			pause = 0
		}
		if answered || pause == 0 {
			c.options.Log.Warn("gpsd is not there", "receiver", c.options.Name, "address", c.options.Address, "err", err)
		}
		// Doubled each time up to the limit, and then between half of that and the whole, so that many
		// clients do not come at once.
		pause = min(max(2*pause, firstPause), c.options.maxBackOff)
		if !ctxtime.For(ctx, pause/2+time.Duration(c.options.random()*float64(pause/2))) {
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
	c.series.Series(metric.GNSSConnections).Add(1)
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

// DefaultName is the default of Options.Name.
const DefaultName = "gps0"

// DefaultAddress is where the local gpsd listens.
const DefaultAddress = "127.0.0.1:2947"

// defaultMaxBackOff is the longest pause between two attempts to connect.
const defaultMaxBackOff = 30 * time.Second

// dialTimeout bounds the making of a connection.
const dialTimeout = 5 * time.Second

// maxDevice is the longest name of a device that gpsd takes (GPS_PATH_MAX of
// gps.h is 128, with the final zero).
const maxDevice = 127

// Options configure the client. The zero value follows whatever receiver the
// local gpsd has.
type Options struct {
	// Address is gpsd's host and TCP port; empty: 127.0.0.1:2947. Pulse and time
	// offsets are of the system clock of gpsd's host, so it should be this host.
	Address string
	// Device is the receiver's name as gpsd itself has it (its command line or
	// gpsdctl), such as /dev/ttyS0. Empty: the first that reports, until it falls
	// silent; pulses may then come from another device, such as /dev/pps0.
	Device string
	// Name is the value of the metric label `receiver`; empty: DefaultName.
	Name string
	// Sink takes the receiver's metrics; nil: nobody.
	Sink metric.Sink
	// Log is told when gpsd or its device comes or goes; nil: nobody.
	Log *slog.Logger
	// Recorder takes the points of the track; nil: nobody reads them.
	Recorder *record.Recorder
	// These are replaced in tests; random is at least 0 and below 1.
	dial                func(context.Context) (net.Conn, error)
	random              func() float64
	timeout, maxBackOff time.Duration
}

// checkDevice rejects what gpsd's own small JSON parser would not read as it is
// meant: only printable US-ASCII without quotes and backslashes needs no escape.
func checkDevice(device string) error {
	if len(device) > maxDevice {
		return fmt.Errorf("gpsd: device has %d characters; gpsd takes at most %d", len(device), maxDevice)
	}
	odd := func(r rune) bool { return r < '!' || r > '~' || r == '"' || r == '\\' }
	if i := strings.IndexFunc(device, odd); i >= 0 {
		return fmt.Errorf("gpsd: device %q has an odd character at position %d; a device is a path such as /dev/ttyS0", device, i+1)
	}
	return nil
}

// publishEvery is how often the state becomes metrics. What is old is gone at
// the latest that much later.
const publishEvery = time.Second

// write brings a state to the gauges; what is not known has no value.
func write(to *metric.Scope, s *State) {
	to.Set(metric.GNSSConnected, metric.Flag(s.Connected))
	to.SetIf(metric.GNSSFix, float64(s.Fix), s.Fix != FixUnknown)
	to.SetIf(metric.GNSSSatellitesSeen, float64(s.Seen.N), s.Seen.Known)
	to.SetIf(metric.GNSSSatellitesUsed, float64(s.Used.N), s.Used.Known)
	to.SetIf(metric.GNSSPulseOffset, s.Pulse.Offset.Seconds(), !s.Pulse.At.IsZero())
	to.SetIf(metric.GNSSSawtooth, s.Sawtooth, s.HasSawtooth)
	to.SetIf(metric.GNSSTimeOffset, s.Sentence.Offset.Seconds(), !s.Sentence.At.IsZero())
	// A float64 still holds the microsecond.
	to.SetIf(metric.GNSSLastMessage, time.Duration(s.LastMessage).Seconds(), !s.LastMessage.IsZero())
}
