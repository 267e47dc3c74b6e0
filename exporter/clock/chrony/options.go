package chrony

import (
	"fmt"
	"log/slog"
	"net"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/metric"
)

// Name is the default of Options.Name.
const Name = "chrony"

// Defaults of Options.
const (
	DefaultInterval      = time.Second
	DefaultHoldDown      = 5 * time.Second
	DefaultSilentAfter   = 30 * time.Second
	DefaultMaxBackOff    = 10 * time.Second
	DefaultMaxClockError = 1e-6
)

// queryTimeout bounds one query. chronyd answers from memory in well under a
// millisecond; what takes longer is a host in trouble.
const queryTimeout = 500 * time.Millisecond

// longest is the largest of each duration in Options; some multiples of it are still a
// Duration.
const longest = 24 * time.Hour

// Options configure the monitor. The zero value asks the local chronyd as
// chronyc does. Durations are from 0 to 24 h.
type Options struct {
	// Address is "unix:///run/chrony/chronyd.sock" or "udp://127.0.0.1:323". Empty:
	// both of these and udp://[::1]:323, in turn until one answers.
	Address string
	// SocketDir is where the client's end of a Unix socket is put. chronyd must be
	// able to reach and write it. Empty: beside chronyd's own socket, as chronyc
	// does; that takes root or the user of chronyd.
	SocketDir string
	// Interval between queries; zero: DefaultInterval.
	Interval time.Duration
	// HoldDown is the least time of distrust after a step; zero: DefaultHoldDown.
	HoldDown time.Duration
	// SilentAfter is the age at which the last reply is no longer believed; zero:
	// DefaultSilentAfter. It should be several MaxBackOff.
	SilentAfter time.Duration
	// MaxBackOff is the longest pause between attempts; zero: DefaultMaxBackOff.
	MaxBackOff time.Duration
	// MaxClockError is chronyd's maxclockerror as a ratio, which the protocol does
	// not tell: the rate at which the clock may drift on its own between updates.
	// Zero: DefaultMaxClockError, which is chronyd's default. Set it if chrony.conf does.
	MaxClockError float64
	// TrustLocal takes chronyd's local mode (`local stratum`, reference 7F7F0101)
	// for a synchronised clock. It is right on the one host whose clock is the time
	// of an island by decree; elsewhere it hides that no source is heard.
	TrustLocal bool
	// Name is the value of the metric label `clock`; empty: Name.
	Name string
	// Sink takes the clock's metrics; nil: nobody.
	Sink metric.Sink
	// Log is told when chronyd stops and starts to answer; nil: nobody.
	Log *slog.Logger
	// Steps says how steps are detected.
	Steps clock.StepOptions

	// dial replaces the sockets in tests.
	dial func(address) (net.Conn, error)
}

// withDefaults fills in what is zero, and rejects what makes no sense.
func (o Options) withDefaults() (Options, error) {
	defaults := []struct {
		name    string
		value   *time.Duration
		instead time.Duration
	}{
		{"interval", &o.Interval, DefaultInterval},
		{"hold-down", &o.HoldDown, DefaultHoldDown},
		{"silent-after", &o.SilentAfter, DefaultSilentAfter},
		{"max-back-off", &o.MaxBackOff, DefaultMaxBackOff},
	}
	for _, d := range defaults {
		if *d.value < 0 || *d.value > longest {
			return o, fmt.Errorf("chrony: %s is %v; it must not be negative, and %v at most", d.name, *d.value, longest)
		}
		if *d.value == 0 {
			*d.value = d.instead
		}
	}
	if !(o.MaxClockError >= 0 && o.MaxClockError <= 1) {
		return o, fmt.Errorf("chrony: max clock error is %v; it is a ratio such as 1e-6", o.MaxClockError)
	}
	if o.MaxClockError == 0 {
		o.MaxClockError = DefaultMaxClockError
	}
	if o.Name == "" {
		o.Name = Name
	}
	if o.Sink == nil {
		o.Sink = metric.Discard{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Steps.Log == nil {
		o.Steps.Log = o.Log
	}
	if o.Steps.Read == nil {
		o.Steps.Read = clock.SystemReader()
	}
	if o.dial == nil {
		dir := o.SocketDir
		o.dial = func(a address) (net.Conn, error) { return a.dial(dir) }
	}
	return o, nil
}
