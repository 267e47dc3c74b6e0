package chrony

import (
	"errors"
	"path/filepath"
	"strings"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/option"
)

// Source has the settings of a configuration; see Options. Make one with DefaultSource.
type Source struct {
	// Address begins with unix:/// or udp://; empty: the default.
	Address string `yaml:"address"`
	// Interval is 100 ms to 1 min.
	Interval time.Duration `yaml:"interval"`
	// SocketDir is an absolute path, not allowed with a UDP address; empty: the default.
	SocketDir string `yaml:"socket_dir"`
	// MaxClockError is above 0 and at most 0.01.
	MaxClockError option.Ratio `yaml:"max_clock_error"`
	TrustLocal    bool         `yaml:"trust_local"`
}

// Describe returns the descriptions of the keys.
func (s *Source) Describe() []option.Description {
	return []option.Description{
		option.Text(&s.Address, "Address of chronyd: unix:///path or udp://address:port.").Unset("the Unix socket, and UDP port 323, of this host").Such("unix:///run/chrony/chronyd.sock").
			Checked(s.checkAddress),
		option.Number(&s.Interval, defaultInterval, 100*time.Millisecond, time.Minute, "Time between queries."),
		option.Text(&s.SocketDir, "Directory of the agent's end of chronyd's Unix socket; chronyd must be able to write to it.").
			Unset("beside chronyd's own, which needs root or chronyd's user").Such("/run/oneway").Checked(s.checkSocketDir),
		option.Value(&s.MaxClockError, defaultMaxClockError, "chrony.conf's maxclockerror as a ratio, if it is set there (1 ppm is 1e-6).").Such("1e-6").Checked(s.checkMaxClockError),
		option.Switch(&s.TrustLocal, false, "Accept chronyd's local mode (local stratum) as synchronized. Right only on the one host whose clock is the reference of an isolated site."),
	}
}

// DefaultSource polls the local chronyd once a second.
func DefaultSource() *Source {
	s := option.Defaults[Source]()
	return &s
}

// maxMaxClockError is 10,000 ppm, a hundred times the error of a crystal. chrony.conf's value in ppm, used as a ratio, is
// above it.
const maxMaxClockError = 0.01

// Name is the name of the package.
func (*Source) Name() string { return Name }

// New checks the settings and makes the monitor.
func (s *Source) New(env clock.Env) (clock.Monitor, error) {
	if err := option.Check(s); err != nil {
		return nil, err
	}
	return New(Options{
		Address: s.Address, Interval: s.Interval, SocketDir: s.SocketDir,
		MaxClockError: float64(s.MaxClockError), TrustLocal: s.TrustLocal, Sink: env.Sink, Log: env.Log,
	})
}

func (s *Source) overUDP() bool { return strings.HasPrefix(s.Address, "udp://") }

func (s *Source) checkAddress(key string) error {
	if !s.overUDP() && !strings.HasPrefix(s.Address, "unix:///") {
		return option.Errorf(key, "is %q; it must begin with unix:/// or udp://, such as unix:///run/chrony/chronyd.sock or udp://127.0.0.1:323", s.Address)
	}
	return nil
}

func (s *Source) checkSocketDir(key string) error {
	var errs []error
	if !filepath.IsAbs(s.SocketDir) {
		errs = append(errs, option.Errorf(key, "is %q; it must be an absolute path, such as /run/oneway", s.SocketDir))
	}
	if s.overUDP() {
		errs = append(errs, option.Errorf(key, "is not allowed with a UDP address; it is an option of a Unix socket"))
	}
	return errors.Join(errs...)
}

func (s *Source) checkMaxClockError(key string) error {
	if s.MaxClockError <= 0 || s.MaxClockError > maxMaxClockError {
		return option.Errorf(key, "is %v; it must be above 0 and at most %v: 1e-6 is chrony.conf's maxclockerror of 1 (ppm)", float64(s.MaxClockError), maxMaxClockError)
	}
	return nil
}
