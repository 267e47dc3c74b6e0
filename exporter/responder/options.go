package responder

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/control"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/sched"
)

// Options are the responder's settings. TokensFile is needed, and StateDir unless there
// is a certificate.
type Options struct {
	// Listen are the addresses of control (TCP) and of test traffic (UDP, the same port
	// number); an unspecified address means all of its family. Port 0: any port that is
	// free for both. Default: 0.0.0.0:8620 and [::]:8620.
	Listen []netip.AddrPort
	// CertFile and KeyFile are the certificate (PEM, with its chain) and its key. Neither:
	// a key that the responder makes and keeps in StateDir, for clients to pin.
	CertFile, KeyFile string
	// ClientCAFile has the certificates (PEM) that sign those of clients; empty: tokens only.
	ClientCAFile string
	// TokensFile says who may run tests; see the package.
	TokensFile string
	// StateDir keeps the self-made key and what tokens have used today; empty: neither is kept.
	StateDir string
	// Link is the name of what no two heavy tests may use at once. Default "responder".
	Link string
	// MaxConnections bounds the control connections, authorised or not. Default 256. Beyond it,
	// each that comes takes the place of one that is not authorised.
	MaxConnections int
	// MaxSessions bounds the authorised ones among them. Default 64. Beyond it, one of a token
	// with fewer takes the place of one that has not opened.
	MaxSessions int
	// Allow lists the sources that are answered; none: all are.
	Allow []netip.Prefix

	now     func() time.Time // of tests, as the times below
	headers time.Duration
	opening time.Duration
	idle    time.Duration
	writing time.Duration
}

// Env is what the responder is lent. All are needed but Log, whose zero value discards.
type Env struct {
	Log  *slog.Logger
	Sink metric.Sink
	// Clock is asked at the beginning and the end of each transfer; its Run is the
	// caller's business.
	Clock clock.Monitor
	// Links excludes other heavy tests of this host from Options.Link.
	Links *sched.Links
}

// Defaults and limits of Options.
const (
	DefaultLink           = "responder"
	DefaultMaxConnections = 256
	DefaultMaxSessions    = 64

	// headerTimeout is what a stranger may take for the TLS handshake, and again for the
	// request.
	headerTimeout = 5 * time.Second

	maxMaxConnections = 1 << 14
	maxMaxSessions    = 1 << 12
)

func orDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// complete checks o and fills in the defaults.
func (o *Options) complete() error {
	if len(o.Listen) == 0 {
		o.Listen = []netip.AddrPort{
			netip.AddrPortFrom(netip.IPv4Unspecified(), control.DefaultPort),
			netip.AddrPortFrom(netip.IPv6Unspecified(), control.DefaultPort),
		}
	}
	orDefault(&o.Link, DefaultLink)
	orDefault(&o.MaxConnections, DefaultMaxConnections)
	orDefault(&o.MaxSessions, min(DefaultMaxSessions, o.MaxConnections))
	orDefault(&o.headers, headerTimeout)
	orDefault(&o.opening, openTime)
	orDefault(&o.idle, idleTime)
	orDefault(&o.writing, writeTime)
	if o.now == nil {
		o.now = time.Now
	}
	return o.check()
}

func (o *Options) check() error {
	for _, a := range o.Listen {
		if !a.IsValid() {
			return errors.New("responder: listen: not an address with a port")
		}
	}
	switch {
	case o.TokensFile == "":
		return errors.New(`responder: there is no tokens file, so nobody could use it; "oneway token new" makes one`)
	case (o.CertFile == "") != (o.KeyFile == ""):
		return errors.New("responder: a certificate needs its key, and a key its certificate")
	case o.CertFile == "" && o.StateDir == "":
		return errors.New("responder: without a certificate it needs a state directory (state_dir), to keep a key of its own")
	case o.MaxConnections < 1 || o.MaxConnections > maxMaxConnections:
		return fmt.Errorf("responder: max_connections is %d; it must be between 1 and %d", o.MaxConnections, maxMaxConnections)
	case o.MaxSessions < 1 || o.MaxSessions > min(maxMaxSessions, o.MaxConnections):
		return fmt.Errorf("responder: max_sessions is %d; it must be between 1 and %d", o.MaxSessions, min(maxMaxSessions, o.MaxConnections))
	}
	for _, p := range o.Allow {
		if !p.IsValid() {
			return errors.New("responder: allow: not an address with a prefix length")
		}
	}
	return nil
}

// allowed tells whether a source may speak to the responder.
func (o *Options) allowed(a netip.Addr) bool {
	if len(o.Allow) == 0 {
		return true
	}
	for _, p := range o.Allow {
		if p.Contains(a.Unmap()) {
			return true
		}
	}
	return false
}
