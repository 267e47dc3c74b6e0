package gpsd

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"oneway.example/exporter/metric"
)

// Defaults of Options.
const (
	DefaultAddress    = "127.0.0.1:2947"
	DefaultName       = "gps0"
	DefaultMaxBackOff = 30 * time.Second
)

// dialTimeout bounds the making of a connection.
const dialTimeout = 5 * time.Second

// longestBackOff is the largest MaxBackOff; twice as much is still a Duration.
const longestBackOff = 24 * time.Hour

// maxDevice is the longest name of a device that gpsd takes (GPS_PATH_MAX of
// gps.h is 128, with the final zero).
const maxDevice = 127

// Options configure the client. The zero value follows whatever receiver the
// local gpsd has.
type Options struct {
	// Address is gpsd's host and TCP port; empty: DefaultAddress. Pulse and time
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
	// MaxBackOff is the longest pause between two attempts to connect, 24 h at most;
	// zero: DefaultMaxBackOff.
	MaxBackOff time.Duration

	// These are replaced in tests; random is at least 0 and below 1.
	dial     func(context.Context) (net.Conn, error)
	random   func() float64
	patience time.Duration
}

// withDefaults fills in what is zero, and rejects what makes no sense.
func (o Options) withDefaults() (Options, error) {
	if o.Address == "" {
		o.Address = DefaultAddress
	}
	if _, _, err := net.SplitHostPort(o.Address); err != nil {
		return o, fmt.Errorf("gpsd: address %q is not host:port: %w", o.Address, err)
	}
	if err := checkDevice(o.Device); err != nil {
		return o, err
	}
	if o.MaxBackOff < 0 || o.MaxBackOff > longestBackOff {
		return o, fmt.Errorf("gpsd: max-back-off is %v; it must not be negative, and %v at most", o.MaxBackOff, longestBackOff)
	}
	if o.MaxBackOff == 0 {
		o.MaxBackOff = DefaultMaxBackOff
	}
	if o.Name == "" {
		o.Name = DefaultName
	}
	if o.Sink == nil {
		o.Sink = metric.Discard{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.dial == nil {
		dialer, address := &net.Dialer{Timeout: dialTimeout}, o.Address
		o.dial = func(ctx context.Context) (net.Conn, error) { return dialer.DialContext(ctx, "tcp", address) }
	}
	if o.patience == 0 {
		o.patience = patience
	}
	if o.random == nil {
		o.random = rand.Float64
	}
	return o, nil
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
