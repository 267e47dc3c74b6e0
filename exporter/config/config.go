package config

import (
	"net/netip"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Config is a whole file. All defaults are filled in.
type Config struct {
	// File is the name under which it was read, for messages.
	File string `yaml:"-"`
	// Clock says how this host's clock is known.
	Clock Clock `yaml:"clock"`
	// Reflector answers other hosts' test packets; nil: none runs.
	Reflector *Reflector `yaml:"reflector"`
	// Responder is the far end of other hosts' heavy tests; nil: none runs.
	Responder *Responder `yaml:"responder"`
	// Paths are what is measured.
	Paths []Path `yaml:"paths"`
	// CalibrationFile holds the stamp errors of this host's interfaces, as
	// `oneway calibrate` has measured them; empty: none are known.
	CalibrationFile string `yaml:"calibration_file"`
	// StateDir keeps what must outlive a restart: data budgets' usage, reports, the
	// responder's key; empty: nothing is kept.
	StateDir string `yaml:"state_dir"`
	// Links are what heavy tests share, with their budgets.
	Links []Link `yaml:"links"`
	// Reports of heavy tests' runs.
	Reports Reports `yaml:"reports"`

	root *yaml.Node
}

// Problem is what somebody else finds wrong with a key, such as
// "reflector.key_file".
func (c *Config) Problem(key, text string) *Problem {
	n := c.root
	for name := range strings.SplitSeq(key, ".") {
		n = child(n, name)
	}
	return problemAt(c.File, n, key, "%s", text)
}

// Sources of knowledge of the clock.
const (
	// ClockChrony asks chronyd.
	ClockChrony = "chrony"
	// ClockStatic believes a configured bound: for hosts that share one clock.
	ClockStatic = "static"
	// ClockNone knows nothing: no one-way delay is valid.
	ClockNone = "none"
)

// Clock says how this host's clock is known.
type Clock struct {
	// Source is ClockChrony (the default), ClockStatic or ClockNone.
	Source string `yaml:"source"`
	// Address of chronyd, as unix:///path or udp://host:port; empty: the default.
	Address string `yaml:"address"`
	// Bound is what ClockStatic believes, at most 1 s; it may be 0.
	Bound time.Duration `yaml:"bound"`
	// Interval is how often chronyd is asked, 100 ms to 1 min; default 1 s.
	Interval time.Duration `yaml:"interval"`
	// SocketDir is where our end of chronyd's Unix socket is put: an absolute path;
	// empty: beside chronyd's own.
	SocketDir string `yaml:"socket_dir"`
	// MaxClockError is chrony.conf's maxclockerror as a ratio, above 0 and at most
	// 0.01; 0: chronyd's default, 1e-6.
	MaxClockError Ratio `yaml:"max_clock_error"`
	// TrustLocal takes chronyd's local mode for a synchronised clock.
	TrustLocal bool `yaml:"trust_local"`
	// GPSD is the receiver that gpsd tells of; nil: gpsd is not asked.
	GPSD *GPSD `yaml:"gpsd"`
	// PPS is the pulse that the kernel stamps; nil: no pulse is watched.
	PPS *PPS `yaml:"pps"`
}

// GPSD says which receiver is watched, whatever disciplines the clock.
type GPSD struct {
	// Address of gpsd, as host:port; default 127.0.0.1:2947.
	Address string `yaml:"address"`
	// Device is the receiver's, as gpsd calls it; empty: any.
	Device string `yaml:"device"`
	// Name is the metric label `receiver`; default gps0.
	Name string `yaml:"name"`
}

// Edges of a pulse.
const (
	// EdgeAssert is the edge with which the signal begins.
	EdgeAssert = "assert"
	// EdgeClear is the edge with which it ends.
	EdgeClear = "clear"
)

// PPS says which pulse per second is watched, whatever disciplines the clock.
type PPS struct {
	// Device is the kernel's; default /dev/pps0.
	Device string `yaml:"device"`
	// Edge that marks the second: EdgeAssert (the default) or EdgeClear.
	Edge string `yaml:"edge"`
	// Name is the metric label `pps`; default pps0.
	Name string `yaml:"name"`
}

// Reflector has the settings of the reflector; zero values mean its defaults.
type Reflector struct {
	// Listen has at least one address.
	Listen []Listen `yaml:"listen"`
	// KeyFile holds the shared secrets; empty: no authenticated mode.
	KeyFile string `yaml:"key_file"`
	// RequireKey refuses what is not authenticated.
	RequireKey bool `yaml:"require_key"`
	// Stateless copies numbers instead of counting.
	Stateless bool      `yaml:"stateless"`
	RateLimit RateLimit `yaml:"rate_limit"`
	// MaxSessions bounds what is remembered.
	MaxSessions int `yaml:"max_sessions"`
	// SessionExpiry is how long a silent session is remembered.
	SessionExpiry time.Duration `yaml:"session_expiry"`
	// Hardware names the interface whose card's time stamps are used; empty: the
	// kernel's only.
	Hardware string `yaml:"hardware"`
	// Allow lists the sources that are answered; empty: all.
	Allow []netip.Prefix `yaml:"allow"`
}

// RateLimit is for each source address.
type RateLimit struct {
	// PacketsPerSecond that are answered.
	PacketsPerSecond int `yaml:"packets_per_second"`
	// Burst is how many at once; 0: the reflector's choice.
	Burst int `yaml:"burst"`
}

// Path is one peer and how it is measured.
type Path struct {
	// Name is the metric label, unique in a file; see NamePattern.
	Name string `yaml:"name"`
	// Peer is a host name or address with an optional port, as written.
	Peer string `yaml:"peer"`
	// Probes has at least one; their names are unique within the path.
	Probes []Probe `yaml:"probes"`
}

// Probe is one way of measuring a path.
type Probe struct {
	// Name is the metric label; default: Type.
	Name string `yaml:"name"`
	// Type is the word by which the agent finds the probe's code.
	Type string `yaml:"type"`
	// Options are all other keys, raw.
	Options Options `yaml:",rest"`
}

// NamePattern is what the names of paths and probes look like: they are labels
// of metrics, and part of addresses in dashboards.
const NamePattern = `[A-Za-z0-9][A-Za-z0-9_.:/-]{0,99}`
