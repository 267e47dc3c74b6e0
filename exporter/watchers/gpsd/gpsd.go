// Package gpsd is a client of gpsd, which reports the state of the GNSS receiver.
//
// It reads gpsd's JSON reports (gpsd_json(5), protocol 3) over TCP: the kind of fix, the satellites, the pulse per second
// with its sawtooth error, and the delay of the serial time. The error bound of a delay does not depend on it, only on
// the clock daemon (clocks/chrony); the reports explain changes of that bound.
//
// The receiver's position is passed to the listeners of the recorder (record.Track) only: it is neither logged nor a
// metric.
//
// gpsd may be absent, hang, or send false reports or too many; probes are not affected:
//
//	no gpsd                 retried without end, after pauses that double up to 30 s, half of each random
//	gpsd hangs              gets a request after 15 s of silence, is disconnected after 15 s more
//	gpsd without a device   replies to requests, so the connection is kept; connected is 0
//	receiver without a fix  reports mode 1, so it counts as connected
//	receiver unplugged      gpsd 3.22 often does not report this, and may list the device without end: its values are
//	                        withdrawn and connected is 0 after 15 s of silence
//	an invalid line         is counted by reason, and reading continues with the next line
//	a flood                 is read at a limited rate, in fixed memory
package gpsd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/watcher"
)

// firstPause is the first pause after a connection has failed or ended.
const firstPause = time.Second

// Client follows one receiver of one gpsd. Its methods are safe for concurrent use; Run is called once.
type Client struct {
	options Options
	series  *metric.Scope // set by Run

	mu       sync.Mutex
	replying bool
	release  string
	failure  string // why the last connection ended; empty: gpsd replies, or has not been tried
	receiver receiver
}

// New checks the options and returns a client without data. It opens nothing.
func New(o Options) (*Client, error) {
	o.Address = cmp.Or(o.Address, DefaultAddress)
	if err := errors.Join(checkAddress(o.Address), checkDevice(o.Device)); err != nil {
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

func checkAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if n, wrong := strconv.ParseUint(port, 10, 16); err != nil || host == "" || wrong != nil || n == 0 {
		return option.Errorf("address", "is %q; it must be a host and a port, such as 127.0.0.1:2947 or [::1]:2947", address)
	}
	return nil
}

// State is the current state of the receiver. It does not block.
func (c *Client) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.receiver.state(time.Now())
	s.Replying, s.Release = c.replying, c.release
	return s
}

// Run connects, reads and publishes until ctx ends, and then returns nil. It retries after every error.
func (c *Client) Run(ctx context.Context) error {
	c.series = c.options.Scope()
	defer c.series.Close()
	// The counters start at zero; they are incremented where the events occur.
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
			ctxtime.Sleep(ctx, publishEvery)
		}
	})
	c.follow(ctx)
	return nil
}

// follow makes one connection after another.
func (c *Client) follow(ctx context.Context) {
	pause := time.Duration(0) // the last pause; 0: the last connection succeeded
	for ctx.Err() == nil {
		began := time.Now()
		answered, err := c.connect(ctx)
		if ctx.Err() != nil {
			return
		}
		c.failed(err)
		if answered && time.Since(began) >= c.options.maxBackOff {
			pause = 0
		}
		if answered || pause == 0 {
			c.options.Log.Warn("Cannot read from gpsd", "receiver", c.options.Name, "address", c.options.Address, "err", err)
		}
		// Doubled each time up to the limit; half of it is random, so that many clients do not reconnect at the same time.
		pause = min(max(2*pause, firstPause), c.options.maxBackOff)
		if !ctxtime.Sleep(ctx, pause/2+time.Duration(c.options.random()*float64(pause/2))) {
			return
		}
	}
}

// connect makes one connection and reads it to its end. It reports whether gpsd sent a valid line, and why the connection
// ended.
func (c *Client) connect(ctx context.Context) (answered bool, err error) {
	conn, err := c.options.dial(ctx)
	if errors.Is(err, syscall.ECONNREFUSED) {
		err = fmt.Errorf("%w: is gpsd running there? `systemctl start gpsd`", err)
	}
	if err != nil {
		return false, err
	}
	c.series.Series(metric.GNSSConnections).Add(1)
	s := &session{Client: c, conn: conn, request: request(c.options.Device)}
	err = s.serve(ctx)
	c.reset()
	return s.replied, err
}

func (c *Client) failed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failure = errtext.Words(err)
}

// reset discards the state of the connection.
func (c *Client) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replying, c.release = false, ""
	c.receiver = receiver{wanted: c.options.Device, lastMessage: c.receiver.lastMessage}
}

// take applies one report to the state, and reports whether the receiver sent it.
func (c *Client) take(report any, now time.Time) bool {
	c.mu.Lock()
	replied, had := c.replying, c.receiver.connected(now)
	c.replying, c.failure = true, ""
	if v, ok := report.(*version); ok {
		c.release = quote(v.Release)
	}
	reported := c.receiver.apply(report, now)
	has, release := c.receiver.connected(now), c.release
	c.mu.Unlock()
	if !replied {
		c.options.Log.Info("Connected to gpsd", "receiver", c.options.Name, "address", c.options.Address, "release", release)
	}
	if had != has {
		c.options.Log.Info("Device of gpsd changed", "receiver", c.options.Name, "present", has)
	}
	return reported
}

// DefaultName is the default of Options.Name.
const DefaultName = "gps0"

// DefaultAddress is the address of the local gpsd.
const DefaultAddress = "127.0.0.1:2947"

// defaultMaxBackOff is the longest pause between two attempts to connect.
const defaultMaxBackOff = 30 * time.Second

// dialTimeout limits the time to connect.
const dialTimeout = 5 * time.Second

// maxDevice is the maximum length of a device name in gpsd (GPS_PATH_MAX of gps.h is 128, with the final zero).
const maxDevice = 127

// Options configure the client. The zero value follows the receiver of the local gpsd.
type Options struct {
	// Env has the Name, which is the value of the metric label `receiver`; empty: DefaultName. A nil Sink discards the metrics, a nil
	// Log the records, and a nil Recorder the points of the track.
	watcher.Env
	// Address is gpsd's host and TCP port; empty: 127.0.0.1:2947. Offsets of pulse and time are those of the system
	// clock of gpsd's host, so it should be this host.
	Address string
	// Device is the receiver's name in gpsd (from its command line or gpsdctl), such as /dev/ttyS0. Empty: the first
	// device that reports, until it is silent; pulses may then come from another device, such as /dev/pps0.
	Device string
	// Set by tests only; random returns a value from 0 to below 1.
	dial                func(context.Context) (net.Conn, error)
	random              func() float64
	timeout, maxBackOff time.Duration
}

// checkDevice rejects names that gpsd's JSON parser would misread: only printable US-ASCII without quotes and backslashes
// needs no escape.
func checkDevice(device string) error {
	if len(device) > maxDevice {
		return option.Errorf("device", "has %d characters; the limit of gpsd is %d", len(device), maxDevice)
	}
	odd := func(r rune) bool { return r < '!' || r > '~' || r == '"' || r == '\\' }
	if i := strings.IndexFunc(device, odd); i >= 0 {
		return option.Errorf("device", "is %q, with an invalid character at position %d; it must be a path such as /dev/ttyS0", device, i+1)
	}
	return nil
}

// publishEvery is the interval at which the state is published. Expired values disappear at most that much later.
const publishEvery = time.Second

// write sets the gauges from a state; an unknown value is absent.
func write(to *metric.Scope, s *State) {
	to.Set(metric.GNSSConnected, metric.Flag(s.Connected))
	to.SetIf(metric.GNSSFix, float64(s.Fix), s.Fix != FixUnknown)
	to.SetIf(metric.GNSSSatellitesSeen, float64(s.Seen.N), s.Seen.Known)
	to.SetIf(metric.GNSSSatellitesUsed, float64(s.Used.N), s.Used.Known)
	to.SetIf(metric.GNSSPulseOffset, s.Pulse.Offset.Seconds(), !s.Pulse.At.IsZero())
	to.SetIf(metric.GNSSSawtooth, s.Sawtooth, s.HasSawtooth)
	to.SetIf(metric.GNSSTimeOffset, s.Sentence.Offset.Seconds(), !s.Sentence.At.IsZero())
	// A float64 has a resolution below a microsecond here.
	to.SetIf(metric.GNSSLastMessage, time.Duration(s.LastMessage).Seconds(), !s.LastMessage.IsZero())
}
