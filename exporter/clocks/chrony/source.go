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

// DefaultSource polls the local chronyd once a second.
func DefaultSource() *Source {
	return &Source{Interval: defaultInterval, MaxClockError: defaultMaxClockError}
}

// maxMaxClockError is 10,000 ppm, a hundred times the error of a crystal. chrony.conf's value in ppm, used as a ratio, is
// above it.
const maxMaxClockError = 0.01

// Name is the name of the package.
func (*Source) Name() string { return Name }

// New checks the settings and makes the monitor.
func (s *Source) New(env clock.Env) (clock.Monitor, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	return New(Options{
		Address: s.Address, Interval: s.Interval, SocketDir: s.SocketDir,
		MaxClockError: float64(s.MaxClockError), TrustLocal: s.TrustLocal, Sink: env.Sink, Log: env.Log,
	})
}

func (s *Source) check() error {
	udp := strings.HasPrefix(s.Address, "udp://")
	errs := []error{option.Between("interval", s.Interval, 100*time.Millisecond, time.Minute)}
	if s.Address != "" && !udp && !strings.HasPrefix(s.Address, "unix:///") {
		errs = append(errs, option.Errorf("address",
			"is %q; it must begin with unix:/// or udp://, such as unix:///run/chrony/chronyd.sock or udp://127.0.0.1:323", s.Address))
	}
	if s.SocketDir != "" && !filepath.IsAbs(s.SocketDir) {
		errs = append(errs, option.Errorf("socket_dir", "is %q; it must be an absolute path, such as /run/oneway", s.SocketDir))
	}
	if s.SocketDir != "" && udp {
		errs = append(errs, option.Errorf("socket_dir", "is not allowed with a UDP address; it is an option of a Unix socket"))
	}
	if s.MaxClockError <= 0 || s.MaxClockError > maxMaxClockError {
		errs = append(errs, option.Errorf("max_clock_error",
			"is %v; it must be above 0 and at most %v: 1e-6 is chrony.conf's maxclockerror of 1 (ppm)", float64(s.MaxClockError), maxMaxClockError))
	}
	return errors.Join(errs...)
}
