package loadtest

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"oneway.example/exporter/core/keyfile"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/calendar"
	"oneway.example/exporter/probe/target"
)

// Options are the keys common to all load-test probes.
type Options struct {
	// Every is the interval between runs, 10 s to a week. Jitter is the range of a random offset of
	// each run, at most half of Every.
	Every  time.Duration `yaml:"every"`
	Jitter time.Duration `yaml:"jitter"`
	// Windows are the times of day, local time, in which runs may start, such as
	// "22:00-06:00" or "mon-fri 09:00-17:00"; none: at any time.
	Windows []calendar.Window `yaml:"windows"`
	// Link is the name of a link that two load tests must not use at once; empty: the path's first link, or the path's name.
	Link string `yaml:"link"`
	// LoadServer is the host:port of the remote end; empty: the path's peer, port 8620.
	LoadServer string `yaml:"load_server"`
	// TokenFile holds the token for the load server; each run reads it.
	TokenFile string `yaml:"token_file"`
	// CAFile has the certificate authorities of the load server's certificate; empty: the
	// system's. Pin is "sha256:" and the hash of its public key in hex, instead of them.
	CAFile string `yaml:"ca_file"`
	Pin    string `yaml:"pin"`
	// CertFile and KeyFile are the client certificate and its key, if the load server requires
	// one.
	CertFile string `yaml:"cert_file"`
	KeyFile  string `yaml:"key_file"`
	// Directions are tested one after the other, in this order.
	Directions []string `yaml:"directions"`
	// DSCP of the test packets, 0..63.
	DSCP int `yaml:"dscp"`
	// Addressing has the address family of the load server and the source address.
	target.Addressing `yaml:",inline"`
	// Checksum is whether packets have a UDP checksum. Without it (IPv4 only) packets corrupted on the path arrive
	// and are counted as corrupted.
	Checksum bool `yaml:"checksum"`
	// MaxWait is how long a run that is due waits for its link, local and remote.
	MaxWait time.Duration `yaml:"max_wait"`
	// Timeout of a run; zero: twice its planned time plus a minute.
	Timeout time.Duration `yaml:"timeout"`
	// DrainTimeout is the idle timeout after the last packet was sent; packets that have not
	// arrived then are lost. It must exceed the delay of the link's queue. In tests of TCP it is that of the light packets beside
	// the load.
	DrainTimeout time.Duration `yaml:"drain_timeout"`
	// WorkingDelayInterval is the time between light test packets beside the load, 10 ms to 1 s; zero: none.
	WorkingDelayInterval time.Duration `yaml:"working_delay_interval"`

	directions []sample.Direction
}

// PacketKeys are the keys of Options for tests that send packets of their own: they have no effect on TCP, whose packets the
// kernel makes.
func PacketKeys() []string { return []string{"checksum"} }

// DefaultOptions returns the options of an empty configuration.
func DefaultOptions() Options {
	return Options{
		Every: 30 * time.Minute, Directions: []string{"forward", "reverse"}, Addressing: target.DefaultOptions().Addressing,
		Checksum: true, MaxWait: 5 * time.Minute, DrainTimeout: 5 * time.Second, WorkingDelayInterval: 100 * time.Millisecond,
	}
}

// Limits of the options.
const (
	minEvery = 10 * time.Second
	maxEvery = 7 * 24 * time.Hour
	maxDrain = 2 * time.Minute // equals udp.MaxIdle
)

// TestedDirections returns the directions to be tested, in order. It is valid after NewProber or RunOnce has
// checked the options.
func (o *Options) TestedDirections() []sample.Direction { return o.directions }

// LocalAddr returns the source address; the zero value: the kernel chooses.
func (o *Options) LocalAddr() netip.Addr {
	local, _ := netip.ParseAddr(o.Local) // checked before
	return local.Unmap()
}

// check validates the options and sets the derived fields. It returns all errors.
func (o *Options) check() error {
	every := option.Between("every", o.Every, minEvery, maxEvery)
	errs := []error{
		every,
		option.Between("max_wait", o.MaxWait, 0, 24*time.Hour),
		option.Between("timeout", o.Timeout, 0, 24*time.Hour),
		option.Between("drain_timeout", o.DrainTimeout, 100*time.Millisecond, maxDrain),
		o.checkWorking(),
		o.checkDirections(),
		o.checkTrust(),
		option.Between("dscp", o.DSCP, 0, 63),
		o.Check(), // of Addressing
	}
	if every == nil {
		errs = append(errs, option.Between("jitter", o.Jitter, 0, o.Every/2)) // the limit of calendar.Calendar is Every
	}
	if !o.Checksum && o.Family == "ipv6" {
		errs = append(errs, option.Errorf("checksum", "is false, which is for IPv4 only (RFC 8200 section 8.1); family is ipv6"))
	}
	return errors.Join(errs...)
}

// checkTrust reads what each run reads: the token, and the proofs of either end.
func (o *Options) checkTrust() error {
	var errs []error
	if _, err := readToken(o.TokenFile); err != nil {
		errs = append(errs, option.Errorf("token_file", "cannot be used: %v", err))
	}
	if err := loadcontrol.CheckPin(o.Pin); err != nil {
		errs = append(errs, option.Errorf("pin", "is %.80q; %v", o.Pin, err))
	}
	if o.CAFile != "" {
		if _, err := keyfile.CAs(o.CAFile); err != nil {
			errs = append(errs, option.Errorf("ca_file", "cannot be used: %v", err))
		}
	}
	switch {
	case o.CertFile != "" && o.KeyFile == "":
		errs = append(errs, option.Missing(true, "key_file", "it has the private key of cert_file"))
	case o.CertFile == "" && o.KeyFile != "":
		errs = append(errs, option.Missing(true, "cert_file", "key_file is the private key of its certificate"))
	case o.CertFile != "":
		if _, err := keyfile.KeyPair(o.CertFile, o.KeyFile); err != nil {
			errs = append(errs, option.Errorf("cert_file", "cannot be used with key_file: %v", err))
		}
	}
	return errors.Join(errs...)
}

func (o *Options) checkWorking() error {
	if o.WorkingDelayInterval == 0 {
		return nil
	}
	return option.Between("working_delay_interval", o.WorkingDelayInterval, 10*time.Millisecond, time.Second)
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
