package heavy

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"oneway.example/exporter/control"
	"oneway.example/exporter/keyfile"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/sched"
)

// Options are the keys that all heavy probes share. See Decode.
type Options struct {
	// Every is the time between runs, 10 s to a week; each may be up to Jitter earlier or later,
	// half of Every at the most.
	Every  time.Duration `yaml:"every"`
	Jitter time.Duration `yaml:"jitter"`
	// Windows are the times of day in which runs may start, local time, such as
	// "22:00-06:00" or "mon-fri 09:00-17:00"; none: at any time.
	Windows []sched.Window `yaml:"windows"`
	// Link is what no two heavy tests use at once; empty: the path's name.
	Link string `yaml:"link"`
	// Responder is the far end's host:port; empty: the path's peer, port 8620.
	Responder string `yaml:"responder"`
	// TokenFile holds the token that the responder knows; it is read for each run.
	TokenFile string `yaml:"token_file"`
	// CAFile has the certificates that the responder's must be signed by; empty: the
	// system's. Pin is "sha256:" and the hash of its public key in hex, in place of them.
	CAFile string `yaml:"ca_file"`
	Pin    string `yaml:"pin"`
	// CertFile and KeyFile are this agent's own certificate and key, if the responder asks
	// for one.
	CertFile string `yaml:"cert_file"`
	KeyFile  string `yaml:"key_file"`
	// Directions are those that are tested, one after the other, in this order.
	Directions []string `yaml:"directions"`
	// DSCP is the code point of the test packets, 0..63.
	DSCP int `yaml:"dscp"`
	// Family is any, ipv4 or ipv6; Local the address to send from, empty: the kernel's choice.
	Family string `yaml:"family"`
	Local  string `yaml:"local"`
	// NoChecksum leaves out the UDP checksum (IPv4 only), so that what is damaged on the
	// way arrives, and is seen to be damaged.
	NoChecksum bool `yaml:"no_checksum"`
	// MaxWait is how long a run that is due waits for its link, here or at the far end.
	MaxWait time.Duration `yaml:"max_wait"`
	// Timeout ends a run, however far it is; zero: twice what it should take, and a minute.
	Timeout time.Duration `yaml:"timeout"`
	// DrainTimeout is how long nothing may come, after all was sent, until what has not
	// come is lost. It must be longer than the link's queue: a session that is silent for
	// so long under load is given up.
	DrainTimeout time.Duration `yaml:"drain_timeout"`

	directions []sample.Direction
	local      netip.Addr
}

// DefaultOptions are those of an empty configuration.
func DefaultOptions() Options {
	return Options{
		Every: 30 * time.Minute, Directions: []string{"forward", "reverse"}, Family: familyAny,
		MaxWait: 5 * time.Minute, DrainTimeout: 5 * time.Second,
	}
}

// Families as written in the configuration.
const (
	familyAny  = "any"
	familyIPv4 = "ipv4"
	familyIPv6 = "ipv6"
)

// Limits of the options.
const (
	minEvery = 10 * time.Second
	maxEvery = 7 * 24 * time.Hour
	maxDrain = 2 * time.Minute // see control.Transfer
)

// Order is the directions to be tested, in order. It is known once NewProber or Once has
// checked the options.
func (o *Options) Order() []sample.Direction { return o.directions }

// check validates the options and fills in what is derived from them.
func (o *Options) check() error {
	if err := o.checkTimes(); err != nil {
		return err
	}
	if err := o.checkDirections(); err != nil {
		return err
	}
	if (o.CertFile == "") != (o.KeyFile == "") {
		return &probe.OptionError{Key: "cert_file", Problem: "and key_file belong together; give both or none"}
	}
	for _, f := range []struct{ key, name string }{{"token_file", o.TokenFile}, {"key_file", o.KeyFile}} {
		// They are read for each run, and one that is not there may come before that.
		if err := keyfile.Check(f.name); errors.Is(err, keyfile.ErrMode) {
			return &probe.OptionError{Key: f.key, Problem: "cannot be used: " + err.Error()}
		}
	}
	return o.checkAddressing()
}

func (o *Options) checkTimes() error {
	for _, c := range []struct {
		key           string
		value, lo, hi time.Duration
	}{
		{"every", o.Every, minEvery, maxEvery},
		{"jitter", o.Jitter, 0, o.Every / 2}, // as sched.Calendar wants it
		{"max_wait", o.MaxWait, 0, 24 * time.Hour},
		{"timeout", o.Timeout, 0, 24 * time.Hour},
		{"drain_timeout", o.DrainTimeout, 100 * time.Millisecond, maxDrain},
	} {
		if c.value < c.lo || c.value > c.hi {
			return &probe.OptionError{Key: c.key, Problem: fmt.Sprintf("is %v; it must be between %v and %v", c.value, c.lo, c.hi)}
		}
	}
	return nil
}

func (o *Options) checkDirections() error {
	o.directions = nil
	for i, word := range o.Directions {
		j := slices.IndexFunc(sample.Directions(), func(d sample.Direction) bool { return d.String() == word })
		key := fmt.Sprintf("directions[%d]", i)
		if j < 0 {
			return &probe.OptionError{Key: key, Problem: fmt.Sprintf("is %q; it must be forward or reverse", word)}
		}
		if slices.Contains(o.directions, sample.Directions()[j]) {
			return &probe.OptionError{Key: key, Problem: fmt.Sprintf("is %q for the second time; name each direction once", word)}
		}
		o.directions = append(o.directions, sample.Directions()[j])
	}
	if len(o.directions) == 0 {
		return &probe.OptionError{Key: "directions", Problem: "is empty; it must be [forward], [reverse] or both"}
	}
	return nil
}

func (o *Options) checkAddressing() error {
	if o.DSCP < 0 || o.DSCP > 63 {
		return &probe.OptionError{Key: "dscp", Problem: fmt.Sprintf("is %d; it must be between 0 and 63", o.DSCP)}
	}
	if !slices.Contains([]string{familyAny, familyIPv4, familyIPv6}, o.Family) {
		return &probe.OptionError{Key: "family", Problem: fmt.Sprintf("is %q; it must be any, ipv4 or ipv6", o.Family)}
	}
	if o.NoChecksum && o.Family == familyIPv6 {
		return &probe.OptionError{Key: "no_checksum", Problem: "is for IPv4 only (RFC 8200 section 8.1); family is ipv6"}
	}
	if o.Local == "" {
		return nil
	}
	addr, err := netip.ParseAddr(o.Local)
	if err != nil {
		return &probe.OptionError{Key: "local", Problem: fmt.Sprintf("is %q; it must be an IP address of this host", o.Local)}
	}
	o.local = addr.Unmap()
	if o.Family == familyIPv4 && !o.local.Is4() || o.Family == familyIPv6 && o.local.Is4() {
		return &probe.OptionError{Key: "local", Problem: fmt.Sprintf("is %s, which is not of family %s", o.local, o.Family)}
	}
	return nil
}

// DefaultPort is that of responders.
const DefaultPort = control.DefaultPort
