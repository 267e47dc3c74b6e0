package loadtest

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"oneway.example/exporter/option"
	"oneway.example/exporter/target"

	"oneway.example/exporter/calendar"
	"oneway.example/exporter/keyfile"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/sample"
)

// Options are the keys that all load-test probes share. See Decode.
type Options struct {
	// Every is the time between runs, 10 s to a week; each may be up to Jitter earlier or later,
	// half of Every at the most.
	Every  time.Duration `yaml:"every"`
	Jitter time.Duration `yaml:"jitter"`
	// Windows are the times of day in which runs may start, local time, such as
	// "22:00-06:00" or "mon-fri 09:00-17:00"; none: at any time.
	Windows []calendar.Window `yaml:"windows"`
	// Link is what no two load tests use at once; empty: the path's name.
	Link string `yaml:"link"`
	// LoadServer is the remote end's host:port; empty: the path's peer, port 8620.
	LoadServer string `yaml:"load_server"`
	// TokenFile holds the token that the load server knows; it is read for each run.
	TokenFile string `yaml:"token_file"`
	// CAFile has the certificates that the load server's must be signed by; empty: the
	// system's. Pin is "sha256:" and the hash of its public key in hex, in place of them.
	CAFile string `yaml:"ca_file"`
	Pin    string `yaml:"pin"`
	// CertFile and KeyFile are this agent's own certificate and key, if the load server asks
	// for one.
	CertFile string `yaml:"cert_file"`
	KeyFile  string `yaml:"key_file"`
	// Directions are those that are tested, one after the other, in this order.
	Directions []string `yaml:"directions"`
	// DSCP is the code point of the test packets, 0..63.
	DSCP int `yaml:"dscp"`
	// Of the load server's addresses, those of this family; and where to send from.
	target.Addressing `yaml:",inline"`
	// NoChecksum leaves out the UDP checksum (IPv4 only), so that what is damaged on the
	// way arrives, and is seen to be damaged.
	NoChecksum bool `yaml:"no_checksum"`
	// MaxWait is how long a run that is due waits for its link, here or at the remote end.
	MaxWait time.Duration `yaml:"max_wait"`
	// Timeout ends a run, however far it is; zero: twice what it should take, and a minute.
	Timeout time.Duration `yaml:"timeout"`
	// DrainTimeout is how long nothing may come, after all was sent, until what has not
	// come is lost. It must be longer than the link's queue.
	DrainTimeout time.Duration `yaml:"drain_timeout"`

	directions []sample.Direction
}

// DefaultOptions are those of an empty configuration.
func DefaultOptions() Options {
	return Options{
		Every: 30 * time.Minute, Directions: []string{"forward", "reverse"}, Addressing: target.DefaultOptions().Addressing,
		MaxWait: 5 * time.Minute, DrainTimeout: 5 * time.Second,
	}
}

// Limits of the options.
const (
	minEvery = 10 * time.Second
	maxEvery = 7 * 24 * time.Hour
	maxDrain = 2 * time.Minute // as udp.MaxIdle
)

// Order is the directions to be tested, in order. It is known once NewProber or Once has
// checked the options.
func (o *Options) Order() []sample.Direction { return o.directions }

// LocalAddr is the address to send from; the zero value: the kernel's choice.
func (o *Options) LocalAddr() netip.Addr {
	local, _ := netip.ParseAddr(o.Local) // it was checked
	return local.Unmap()
}

// check validates the options and fills in what is derived from them.
func (o *Options) check() error {
	err := cmp.Or(
		option.Between("every", o.Every, minEvery, maxEvery),
		option.Between("jitter", o.Jitter, 0, o.Every/2), // as calendar.Calendar wants it
		option.Between("max_wait", o.MaxWait, 0, 24*time.Hour),
		option.Between("timeout", o.Timeout, 0, 24*time.Hour),
		option.Between("drain_timeout", o.DrainTimeout, 100*time.Millisecond, maxDrain),
		o.checkDirections(),
	)
	if err != nil {
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
	if err := cmp.Or(option.Between("dscp", o.DSCP, 0, 63), option.OneOf("family", o.Family, "any", "ipv4", "ipv6")); err != nil {
		return err
	}
	if o.NoChecksum && o.Family == "ipv6" {
		return &probe.OptionError{Key: "no_checksum", Problem: "is for IPv4 only (RFC 8200 section 8.1); family is ipv6"}
	}
	return o.Check() // of the addressing
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
