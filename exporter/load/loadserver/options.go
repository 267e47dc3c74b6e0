package loadserver

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/localday"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/traffic"
	"oneway.example/exporter/probe/link"
)

// Options configure a load server. TokensFile is required, and StateDir unless there is a
// certificate. Tags are configuration keys.
type Options struct {
	// Given returns whether a key, such as "max_sessions", was configured, so that an explicit
	// zero is an error, not the default; nil: none was.
	Given func(key string) bool
	// Listen has the addresses of control (TCP) and of test traffic (UDP, the same port number);
	// an unspecified address stands for all of its family. Port 0: a port that is free for both.
	// Default: both of them at loadcontrol.DefaultPort.
	Listen []netip.AddrPort
	// CertFile and KeyFile are the certificate (PEM, with its chain) and its key. Neither: a
	// generated key in StateDir, for clients to pin.
	CertFile string `yaml:"cert_file"`
	KeyFile  string `yaml:"key_file"`
	// ClientCAFile has the authorities (PEM) of client certificates; empty: tokens only.
	ClientCAFile string `yaml:"client_ca_file"`
	// TokensFile has the tokens; see the package.
	TokensFile string `yaml:"tokens_file"`
	// StateDir has the generated key and the usage of tokens today; empty: neither is stored.
	StateDir string
	// Link is the name of a link that two load tests must not use at once. Default: DefaultLink.
	Link string `yaml:"link"`
	// MaxConnections limits the control connections, authorized or not. Default: DefaultMaxConnections. At the limit
	// a new one replaces one that is not authorized.
	MaxConnections int `yaml:"max_connections"`
	// MaxSessions limits the authorized ones among them. Default: DefaultMaxSessions, or MaxConnections if these are fewer. At the limit one of a token
	// with fewer sessions replaces one that is not open.
	MaxSessions int `yaml:"max_sessions"`
	// Ports for further sockets of a session, TCP for its transfers and UDP for its reflector; default option.LoadServerPorts.
	Ports option.Ports `yaml:"ports"`
	// Allow lists the allowed sources; empty: all.
	Allow []netip.Prefix `yaml:"allow"`

	now     func() time.Time // set by tests, as are the times below
	headers time.Duration
	opening time.Duration
	idle    time.Duration
	writing time.Duration
}

// Env has the dependencies of a load server. Log (nil: discarded) and Version are optional.
type Env struct {
	Log  *slog.Logger
	Sink metric.Sink
	// Clock is read during each transfer; the caller calls its Run.
	Clock clock.Monitor
	// Traffic has the supported types of traffic.
	Traffic []traffic.Type
	// Version of the program, for refusals.
	Version string
	// Links excludes other load tests of this host from Options.Link.
	Links *link.Table
	// Local decides when the day of a token's quota begins; nil: the time zone of this host.
	Local *localday.Clock
}

// Defaults and limits of Options.
const (
	DefaultLink           = "load_server"
	DefaultMaxConnections = 256
	DefaultMaxSessions    = 64

	// headerTimeout is the timeout of an unknown peer's TLS handshake, and of its
	// request.
	headerTimeout = 5 * time.Second

	maxMaxConnections = 1 << 14
	maxMaxSessions    = 1 << 12
)

// StateDoc is what a load server stores in StateDir, in words.
const StateDoc = "the generated key and today's use of the tokens"

// Describe returns the descriptions of the keys of Options. Section has the others.
func (o *Options) Describe() []option.Description {
	return []option.Description{
		option.Value(&o.Ports, option.LoadServerPorts(), "Ports for further sockets of a test: TCP, for tests of TCP, each during its transfer; UDP, one for each session, for the test packets "+
			"during the load.").Checked(o.checkPorts),
		option.Text(&o.TokensFile, "File with the tokens of the clients and their limits: \"oneway token new --file tokens --name NAME --out NAME.token\" adds a line, and makes the "+
			"client's file. It is read again when it changes; a client without a line is refused.").WithExample("tokens").
			Required(`it says who may run tests: "oneway token new --file tokens --name NAME" makes one`),
		option.Text(&o.CertFile, "Certificate (PEM). Its pin is logged for the clients (pin: sha256:...).").Unset("a generated key, which is stored in {state_dir}").WithExample("cert.pem"),
		option.Text(&o.KeyFile, "Private key of the certificate (PEM).").WithExample("key.pem"),
		option.Text(&o.ClientCAFile, "Authorities (PEM) of client certificates, for clients with one instead of a token. The file is read again when it changes.").WithExample("clients.pem"),
		option.Text(&o.Link, "Link of its tests: one at a time, and none during a test of this agent's own probes on a link of the same name. Paths over it, and those to the "+
			"client, have no alerts of loss and delay meanwhile.").WithExample(DefaultLink).Checked(func(key string) error { return option.Name(key, o.Link) }),
		option.Number(&o.MaxConnections, DefaultMaxConnections, 1, maxMaxConnections, "Maximum number of control connections; at most "+option.Part(hostPart)+" of them of unknown peers from one address."),
		option.Number(&o.MaxSessions, DefaultMaxSessions, 1, maxMaxSessions, fmt.Sprintf("Maximum number of authorized control connections, at most {max_connections}. A token has %d at the same time, unless its line has sessions=N.", DefaultTokenSessions)).
			Checked(func(key string) error { return option.Between(key, o.MaxSessions, 1, o.mostSessions()) }),
		option.Sources(&o.Allow, "all that have a token"),
	}
}

// mostSessions is the limit of MaxSessions.
func (o *Options) mostSessions() int {
	if o.MaxConnections < 1 {
		return maxMaxSessions
	}
	return min(maxMaxSessions, o.MaxConnections)
}

// checkPorts reports a range that is none.
func (o *Options) checkPorts(key string) error {
	if o.Ports.First == 0 || o.Ports.First > o.Ports.Last {
		return option.Errorf(key, "is %v; it must be a range of ports, such as %v", o.Ports, option.LoadServerPorts())
	}
	return nil
}

// LinkName is the link of its tests: Link, or the default if it is empty.
func (o *Options) LinkName() string { return cmp.Or(o.Link, DefaultLink) }

func (o *Options) given(key string) bool { return o.Given != nil && o.Given(key) }

// complete sets the defaults and checks o.
func (o *Options) complete() error {
	if len(o.Listen) == 0 {
		o.Listen = []netip.AddrPort{
			netip.AddrPortFrom(netip.IPv4Unspecified(), loadcontrol.DefaultPort),
			netip.AddrPortFrom(netip.IPv6Unspecified(), loadcontrol.DefaultPort),
		}
	}
	option.Default(o.given("link"), &o.Link, o.LinkName())
	option.Default(o.given("max_connections"), &o.MaxConnections, DefaultMaxConnections)
	option.Default(o.given("max_sessions"), &o.MaxSessions, min(DefaultMaxSessions, o.mostSessions()))
	option.Default(false, &o.Ports, option.LoadServerPorts())
	option.Default(false, &o.headers, headerTimeout)
	option.Default(false, &o.opening, openTime)
	option.Default(false, &o.idle, idleTime)
	option.Default(false, &o.writing, writeTime)
	return o.check()
}

func (o *Options) check() error {
	errs := []error{
		option.Check(o),
		option.Missing(o.CertFile != "" && o.KeyFile == "", "key_file", "%s needs it", option.Key("cert_file")),
		option.Missing(o.KeyFile != "" && o.CertFile == "", "cert_file", "%s needs it", option.Key("key_file")),
	}
	if slices.ContainsFunc(o.Listen, func(a netip.AddrPort) bool { return !a.IsValid() }) {
		errs = append(errs, errors.New("loadserver: listen: not an address with a port"))
	}
	if slices.ContainsFunc(o.Allow, func(p netip.Prefix) bool { return !p.IsValid() }) {
		errs = append(errs, errors.New("loadserver: allow: not an address with a prefix length"))
	}
	return errors.Join(errs...)
}

// allowed returns whether a source is allowed.
func (o *Options) allowed(a netip.Addr) bool {
	return len(o.Allow) == 0 || slices.ContainsFunc(o.Allow, func(p netip.Prefix) bool { return p.Contains(a.Unmap().WithZone("")) })
}
