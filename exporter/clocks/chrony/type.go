package chrony

import (
	"errors"
	"path/filepath"
	"strings"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/option"
)

// Type is the type chrony.
type Type struct{}

// NewType makes the type for the registry.
func NewType() Type { return Type{} }

// Name is the name of the package.
func (Type) Name() string { return Name }

// Document describes the type.
func (Type) Document() (doc string, options []option.Described) {
	return "Query chronyd.", []option.Described{new(option.Defaults[settings]())}
}

// settings are the options in the configuration; see Options.
type settings struct {
	Address       string        `yaml:"address"`
	Interval      time.Duration `yaml:"interval"`
	SocketDir     string        `yaml:"socket_dir"`
	MaxClockError option.Ratio  `yaml:"max_clock_error"`
	TrustLocal    bool          `yaml:"trust_local"`
}

// Describe describes each option.
func (s *settings) Describe() []option.Description {
	return []option.Description{
		option.Text(&s.Address, "Address of chronyd: unix:///path or udp://address:port.").Unset("the Unix socket, and UDP port 323, of this host").WithExample("unix:///run/chrony/chronyd.sock").
			Checked(s.checkAddress),
		option.Number(&s.Interval, defaultInterval, 100*time.Millisecond, time.Minute, "Time between queries.").FileOnly(),
		option.Text(&s.SocketDir, "Directory of the agent's end of chronyd's Unix socket; chronyd must be able to write to it.").
			Unset("beside chronyd's own, which needs root or chronyd's user").WithExample("/run/oneway").Checked(s.checkSocketDir).FileOnly(),
		option.Value(&s.MaxClockError, defaultMaxClockError, "chrony.conf's maxclockerror as a ratio, if it is set there (1 ppm is 1e-6).").WithExample("1e-6").Checked(s.checkMaxClockError).FileOnly(),
		option.Switch(&s.TrustLocal, false, "Accept chronyd's local mode (local stratum) as synchronized. Right only on the one host whose clock is the reference of an isolated site.").FileOnly(),
	}
}

// maxMaxClockError is 10,000 ppm, a hundred times the error of a crystal. chrony.conf's value in ppm, used as a ratio, is
// above it.
const maxMaxClockError = 0.01

// New checks the options and makes the monitor.
func (Type) New(env clock.Env, decode func(into ...any) error) (clock.Monitor, error) {
	o := option.Defaults[settings]()
	if err := decode(&o); err != nil {
		return nil, err
	}
	if err := option.Check(&o); err != nil {
		return nil, err
	}
	return New(Options{
		Address: o.Address, Interval: o.Interval, SocketDir: o.SocketDir,
		MaxClockError: float64(o.MaxClockError), TrustLocal: o.TrustLocal, Sink: env.Sink, Log: env.Log,
	})
}

func (s *settings) overUDP() bool { return strings.HasPrefix(s.Address, "udp://") }

func (s *settings) checkAddress(key string) error {
	if !s.overUDP() && !strings.HasPrefix(s.Address, "unix:///") {
		return option.Errorf(key, "is %q; it must begin with unix:/// or udp://, such as unix:///run/chrony/chronyd.sock or udp://127.0.0.1:323", s.Address)
	}
	return nil
}

func (s *settings) checkSocketDir(key string) error {
	var errs []error
	if !filepath.IsAbs(s.SocketDir) {
		errs = append(errs, option.Errorf(key, "is %q; it must be an absolute path, such as /run/oneway", s.SocketDir))
	}
	if s.overUDP() {
		errs = append(errs, option.Errorf(key, "is not allowed with a UDP address; it is an option of a Unix socket"))
	}
	return errors.Join(errs...)
}

func (s *settings) checkMaxClockError(key string) error {
	if s.MaxClockError <= 0 || s.MaxClockError > maxMaxClockError {
		return option.Errorf(key, "is %v; it must be above 0 and at most %v: 1e-6 is chrony.conf's maxclockerror of 1 (ppm)", float64(s.MaxClockError), maxMaxClockError)
	}
	return nil
}
