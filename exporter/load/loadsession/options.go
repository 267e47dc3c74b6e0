package loadsession

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/core/keyfile"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/target"
)

// Options are the keys common to all load-test probes with sessions with a load server. Describe has their meanings, defaults
// and bounds.
type Options struct {
	loadtest.Options `yaml:",inline"`
	LoadServer       string   `yaml:"load_server"`
	TokenFile        string   `yaml:"token_file"`
	CAFile           string   `yaml:"ca_file"`
	Pin              string   `yaml:"pin"`
	CertFile         string   `yaml:"cert_file"`
	KeyFile          string   `yaml:"key_file"`
	Directions       []string `yaml:"directions"`
	DSCP             int      `yaml:"dscp"`
	// Addressing has the address family of the load server and the source address.
	target.Addressing    `yaml:",inline"`
	Checksum             bool          `yaml:"checksum"`
	DrainTimeout         time.Duration `yaml:"drain_timeout"`
	WorkingDelayInterval time.Duration `yaml:"working_delay_interval"`

	directions []sample.Direction
}

// Describe returns the descriptions of the keys.
func (o *Options) Describe() []option.Description {
	return slices.Concat(o.Options.Describe(), []option.Description{
		option.Text(&o.LoadServer, fmt.Sprintf("The load server: a name or address, with :port if it is not %d.", loadcontrol.DefaultPort)).Unset(fmt.Sprintf("the path's peer, port %d", loadcontrol.DefaultPort)).
			WithExample(fmt.Sprintf("core.example.net:%d", loadcontrol.DefaultPort)).FileOnly().Checked(o.checkLoadServer),
		option.Text(&o.TokenFile, "File with the token that the operator of the load server provided, in its first line. Each run reads it.").WithExample("core.token").Checked(func(key string) error {
			_, err := readToken(o.TokenFile)
			return cannotUse(key, err)
		}),
		option.Text(&o.Pin, "Hash of the load server's key (sha256:...), as the load server logs it: it verifies the certificate instead of an authority, or both do.").
			WithExample("sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08").Checked(o.checkPin),
		option.Text(&o.CAFile, "CA certificates (PEM) for the load server.").Unset("the authorities of the system, without {pin}").WithExample("core-ca.pem").Checked(func(key string) error {
			_, err := keyfile.CAs(o.CAFile)
			return cannotUse(key, err)
		}),
		option.Text(&o.CertFile, "Client certificate (PEM), if the load server requires one.").WithExample("agent.pem").Checked(o.checkCertificate),
		option.Text(&o.KeyFile, "Private key of the client certificate (PEM).").WithExample("agent.key").Checked(func(string) error {
			return option.Missing(o.CertFile == "", "cert_file", "%s is the private key of its certificate", option.Key("key_file"))
		}),
		option.Value(&o.Directions, []string{sample.Forward.String(), sample.Reverse.String()}, "Directions that are tested one after the other, in this order.").FileOnly().Checked(o.checkDirections),
		option.Number(&o.DSCP, 0, 0, maxDSCP, "Code point (DSCP) of the packets of the load, as a number; 46 is EF."),
	}, o.Addressing.Describe(), []option.Description{
		option.Switch(&o.Checksum, true, "Send with UDP checksum; without it (IPv4) corrupted packets arrive and are counted."),
		option.Number(&o.DrainTimeout, 5*time.Second, 100*time.Millisecond, loadcontrol.MaxIdle, "Waiting time for packets after the last one was sent (tests of TCP: for the light packets during the load): "+
			"longer than the delay of the link's queue, when both directions are loaded at once several times the delay of both queues."),
		option.Number(&o.WorkingDelayInterval, 100*time.Millisecond, 10*time.Millisecond, time.Second, fmt.Sprintf("Mean time between light test packets during the load, and for %v before it, "+
			"which measure the delay, loss and R that others have meanwhile. At 100ms they take 17 kb/s in each direction: choose more on a link below 1 Mb/s.", loadtest.IdleTime)).Unset("none"),
	})
}

// workingKey is the key of the option that has no effect on tests without light packets during the load.
const workingKey = "working_delay_interval"

// PacketKeys are the keys of Options for tests that send packets of their own: they have no effect on TCP, whose packets the
// kernel makes.
func PacketKeys() []string { return []string{"checksum"} }

// DefaultOptions returns the options of an empty configuration.
func DefaultOptions() Options { return option.Defaults[Options]() }

// maxDSCP is the largest code point.
const maxDSCP = 63

// LocalAddr returns the source address; the zero value: the kernel chooses.
func (o *Options) LocalAddr() netip.Addr {
	local, _ := netip.ParseAddr(o.Local) // checked before
	return local.Unmap()
}

// check validates the options and sets the derived fields. It returns all errors.
func (o *Options) check() error {
	errs := []error{option.Check(o)}
	if !o.Checksum && o.Family == hostport.IPv6 {
		errs = append(errs, option.Errorf("checksum", "is false, which is for IPv4 only (RFC 8200 section 8.1); %s is ipv6", option.Key("family")))
	}
	return errors.Join(errs...)
}

// checkCertificate reads the certificate of this end.
func (o *Options) checkCertificate(key string) error {
	if o.KeyFile == "" {
		return option.Missing(true, "key_file", "it has the private key of %s", option.Key(key))
	}
	if _, err := keyfile.KeyPair(o.CertFile, o.KeyFile); err != nil {
		return option.Errorf(key, "cannot be used with %s: %v", option.Key("key_file"), err)
	}
	return nil
}

// checkLoadServer reports an address that is none.
func (o *Options) checkLoadServer(string) error {
	_, _, err := o.address(probe.Target{})
	return err
}

// cannotUse is the error of a file that cannot be used; nil without err.
func cannotUse(key string, err error) error {
	if err == nil {
		return nil
	}
	return option.Errorf(key, "cannot be used: %v", err)
}

func (o *Options) checkPin(key string) error {
	if err := loadcontrol.CheckPin(o.Pin); err != nil {
		return option.Errorf(key, "is %.80q; %v", o.Pin, err)
	}
	return nil
}

// checkDirections reads the directions.
func (o *Options) checkDirections(key string) error {
	o.directions = nil
	for i, word := range o.Directions {
		j := slices.IndexFunc(sample.Directions(), func(d sample.Direction) bool { return d.String() == word })
		if j < 0 {
			return option.Errorf(fmt.Sprintf("%s[%d]", key, i), "is %q; it must be forward or reverse", word)
		}
		if slices.Contains(o.directions, sample.Directions()[j]) {
			return option.Errorf(fmt.Sprintf("%s[%d]", key, i), "is %q for the second time; name each direction once", word)
		}
		o.directions = append(o.directions, sample.Directions()[j])
	}
	if len(o.directions) == 0 {
		return option.Errorf(key, "is empty; it must be [forward], [reverse] or both")
	}
	return nil
}
