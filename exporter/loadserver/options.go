package loadserver

import (
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/link"
	"oneway.example/exporter/loadcontrol"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/option"
	"oneway.example/exporter/traffic"
)

// Options are the load server's settings. TokensFile is needed, and StateDir unless there
// is a certificate. Tags are the keys of a configuration.
type Options struct {
	// Given tells of a key, such as "max_sessions", whether its value was given, so that zero
	// is no default but wrong; nil: none was.
	Given func(key string) bool
	// Listen are the addresses of control (TCP) and of test traffic (UDP, the same port
	// number); an unspecified address means all of its family. Port 0: any port that is
	// free for both. Default: 0.0.0.0:8620 and [::]:8620.
	Listen []netip.AddrPort
	// CertFile and KeyFile are the certificate (PEM, with its chain) and its key. Neither:
	// a key that the load server makes and keeps in StateDir, for clients to pin.
	CertFile string `yaml:"cert_file"`
	KeyFile  string `yaml:"key_file"`
	// ClientCAFile has the certificates (PEM) that sign those of clients; empty: tokens only.
	ClientCAFile string `yaml:"client_ca_file"`
	// TokensFile says who may run tests; see the package.
	TokensFile string `yaml:"tokens_file"`
	// StateDir keeps the self-made key and what tokens have used today; empty: neither is kept.
	StateDir string
	// Link is the name of what no two load tests may use at once. Default "load_server".
	Link string `yaml:"link"`
	// MaxConnections bounds the control connections, authorized or not. Default 256. Beyond it,
	// each that comes takes the place of one that is not authorized.
	MaxConnections int `yaml:"max_connections"`
	// MaxSessions bounds the authorized ones among them. Default 64. Beyond it, one of a token
	// with fewer takes the place of one that has not opened.
	MaxSessions int `yaml:"max_sessions"`
	// Ports are those for further TCP sockets of a session; default 8621 to 8640.
	Ports option.Ports `yaml:"ports"`
	// Allow lists the sources that are answered; none: all are.
	Allow []netip.Prefix `yaml:"allow"`

	now     func() time.Time // of tests, as the times below
	headers time.Duration
	opening time.Duration
	idle    time.Duration
	writing time.Duration
}

// Env is what the load server is given. All are needed but Log, whose zero value discards, and Version.
type Env struct {
	Log  *slog.Logger
	Sink metric.Sink
	// Clock is asked at the beginning and the end of each transfer; its Run is the
	// caller's business.
	Clock clock.Monitor
	// Traffic are the types of traffic that are served.
	Traffic []traffic.Type
	// Version is the program's, for refusals.
	Version string
	// Links excludes other load tests of this host from Options.Link.
	Links *link.Table
}

// Defaults and limits of Options.
const (
	DefaultLink           = "load_server"
	DefaultMaxConnections = 256
	DefaultMaxSessions    = 64

	// headerTimeout is what an unknown peer may take for the TLS handshake, and again for the
	// request.
	headerTimeout = 5 * time.Second

	maxMaxConnections = 1 << 14
	maxMaxSessions    = 1 << 12
)

func orDefault[T comparable](given bool, v *T, d T) {
	var zero T
	if *v == zero && !given {
		*v = d
	}
}

func (o *Options) given(key string) bool { return o.Given != nil && o.Given(key) }

// complete checks o and fills in the defaults.
func (o *Options) complete() error {
	if len(o.Listen) == 0 {
		o.Listen = []netip.AddrPort{
			netip.AddrPortFrom(netip.IPv4Unspecified(), loadcontrol.DefaultPort),
			netip.AddrPortFrom(netip.IPv6Unspecified(), loadcontrol.DefaultPort),
		}
	}
	orDefault(o.given("link"), &o.Link, DefaultLink)
	orDefault(o.given("max_connections"), &o.MaxConnections, DefaultMaxConnections)
	orDefault(o.given("max_sessions"), &o.MaxSessions, min(DefaultMaxSessions, o.MaxConnections))
	orDefault(false, &o.Ports, option.Ports{First: loadcontrol.DefaultPort + 1, Last: loadcontrol.DefaultPort + 20})
	orDefault(false, &o.headers, headerTimeout)
	orDefault(false, &o.opening, openTime)
	orDefault(false, &o.idle, idleTime)
	orDefault(false, &o.writing, writeTime)
	if o.now == nil {
		o.now = time.Now
	}
	return o.check()
}

// Check says all that is wrong with the settings by themselves: errors of the keys of a
// configuration (*option.Error), and others.
func (o Options) Check() error { return o.complete() }

func (o *Options) check() error {
	mostSessions := maxMaxSessions
	if o.MaxConnections >= 1 {
		mostSessions = min(mostSessions, o.MaxConnections)
	}
	errs := []error{
		option.Missing(o.TokensFile == "", "tokens_file", `it says who may run tests: "oneway token new --file tokens --name NAME" makes one`),
		option.Missing(o.CertFile != "" && o.KeyFile == "", "key_file", "cert_file needs it"),
		option.Missing(o.KeyFile != "" && o.CertFile == "", "cert_file", "key_file needs it"),
		option.Name("link", o.Link),
		option.Between("max_connections", o.MaxConnections, 1, maxMaxConnections),
		option.Between("max_sessions", o.MaxSessions, 1, mostSessions),
	}
	if o.Ports.First == 0 || o.Ports.First > o.Ports.Last {
		errs = append(errs, option.Errorf("ports", "is %v; it must be a range of ports, such as 8621-8640", o.Ports))
	}
	if slices.ContainsFunc(o.Listen, func(a netip.AddrPort) bool { return !a.IsValid() }) {
		errs = append(errs, errors.New("loadserver: listen: not an address with a port"))
	}
	if slices.ContainsFunc(o.Allow, func(p netip.Prefix) bool { return !p.IsValid() }) {
		errs = append(errs, errors.New("loadserver: allow: not an address with a prefix length"))
	}
	return errors.Join(errs...)
}

// allowed tells whether a source may speak to the load server.
func (o *Options) allowed(a netip.Addr) bool {
	return len(o.Allow) == 0 || slices.ContainsFunc(o.Allow, func(p netip.Prefix) bool { return p.Contains(a.Unmap().WithZone("")) })
}
