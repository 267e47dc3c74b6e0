package stamp

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"oneway.example/exporter/estimate/delay"
	"oneway.example/exporter/estimate/voice"
	"oneway.example/exporter/keyfile"
	"oneway.example/exporter/probe"
	wire "oneway.example/exporter/wire/stamp"
	"oneway.example/exporter/wire/timefmt"
)

// Options are the probe's own keys in the configuration. Durations are written
// as in Go ("100ms"); an absent key keeps its default.
type Options struct {
	// Interval is the (mean) time between test packets.
	Interval time.Duration `yaml:"interval"`
	// Schedule is "periodic" (RFC 3432, random start) or "poisson" (RFC 2330
	// section 11.1.1).
	Schedule string `yaml:"schedule"`
	// Size is the UDP payload in octets. The default, 172, is that of a G.711
	// voice packet of 20 ms.
	Size int `yaml:"size"`
	// DSCP is the code point of the test packets, 0..63.
	DSCP int `yaml:"dscp"`
	// TTL of the test packets. Default 255 (RFC 4656 section 4.1.2).
	TTL int `yaml:"ttl"`
	// KeyFile holds the shared secret of authenticated mode; empty: unauthenticated.
	KeyFile string `yaml:"key_file"`
	// LossTimeout is the waiting time, Tmax of RFC 7680, of either direction: a packet
	// whose one-way delay is longer is lost, and so is a round trip of that length.
	LossTimeout time.Duration `yaml:"loss_timeout"`
	// Window is the length of the interval over which minima, maxima, medians,
	// PDV and voice quality are taken. Zero: as long as 20 packets take, but at
	// least 10 s and at most 10 min or 65,536 packets.
	Window time.Duration `yaml:"window"`
	// Local is the address to send from; empty: the kernel's choice.
	Local string `yaml:"local"`
	// Hardware names the interface whose card's time stamps are used; empty: the
	// kernel's only. The test packets must pass that card.
	Hardware string `yaml:"hardware"`
	// Family restricts name resolution: "any", "ipv4" or "ipv6".
	Family string `yaml:"family"`
	// ResolveInterval is how often the peer's name is looked up again.
	ResolveInterval time.Duration `yaml:"resolve_interval"`
	// TimestampFormat is "ntp" or "ptp" (the Z bit of the Error Estimate).
	TimestampFormat string `yaml:"timestamp_format"`
	// TAIOffset is TAI-UTC, used with PTP stamps only.
	TAIOffset time.Duration `yaml:"tai_offset"`
	// MaxBound: delays with a larger combined bound are invalid; 0: no limit.
	MaxBound time.Duration `yaml:"max_bound"`
	// PathMinimum is what the delay of either direction is known to be at least, by
	// the path's length or by better clocks; it bounds the clocks' offset (package
	// feasible). 0: it is not used.
	PathMinimum time.Duration `yaml:"path_minimum"`
	// Codecs are the codecs whose voice quality is computed; empty: none.
	Codecs []string `yaml:"codecs"`
	// Playout are the playout buffers simulated: "fixed", "adaptive".
	Playout []string `yaml:"playout"`
	// PlayoutDelay is the fixed buffer's depth.
	PlayoutDelay time.Duration `yaml:"playout_delay"`

	format timefmt.Format
	local  netip.Addr
	keys   []*wire.Key
}

// Schedules and families as written in the configuration.
const (
	schedulePeriodic = "periodic"
	schedulePoisson  = "poisson"
	familyAny        = "any"
	familyIPv4       = "ipv4"
	familyIPv6       = "ipv6"
	playoutFixed     = "fixed"
	playoutAdaptive  = "adaptive"
)

// Limits of the options. The size is that of the largest datagram that IPv4 on
// jumbo Ethernet carries unfragmented.
const (
	minInterval = 100 * time.Microsecond
	maxInterval = time.Hour
	maxSize     = 8972
	maxMinimum  = 10 * time.Second
	// maxOutstanding is how many packets may be sent within the loss timeout: so many, and
	// more, are remembered at both ends.
	maxOutstanding = 1 << 16
)

// DefaultOptions are the options of an empty configuration.
func DefaultOptions() Options {
	return Options{
		Interval: time.Second, Schedule: schedulePeriodic, TTL: 255,
		LossTimeout: 3 * time.Second, Family: familyAny,
		ResolveInterval: time.Minute, TimestampFormat: "ntp", TAIOffset: 37 * time.Second,
		Codecs: []string{"G.711-PLC", "G.729"}, Playout: []string{playoutAdaptive},
		PlayoutDelay: 60 * time.Millisecond,
	}
}

// check validates o and fills in what is derived from it.
func (o *Options) check() error {
	if o.Window == 0 {
		o.Window = max(time.Second, min(max(10*time.Second, 20*o.Interval), 10*time.Minute, delay.PDVLimit*o.Interval))
	}
	if err := o.checkTimes(); err != nil {
		return err
	}
	if err := o.checkCounts(); err != nil {
		return err
	}
	if err := o.checkWords(); err != nil {
		return err
	}
	if err := o.checkAddressing(); err != nil {
		return err
	}
	if err := o.checkVoice(); err != nil {
		return err
	}
	if o.KeyFile != "" {
		keys, err := loadKeys(o.KeyFile)
		if err != nil {
			return &probe.OptionError{Key: "key_file", Problem: "cannot be used: " + err.Error()}
		}
		o.keys = keys
	}
	if o.Size == 0 {
		o.Size = defaultSize(o.KeyFile != "")
	}
	if _, err := planLayout(o.Size, o.KeyFile != ""); err != nil {
		return &probe.OptionError{Key: "size", Problem: fmt.Sprintf("is %d; %v", o.Size, err)}
	}
	return nil
}

func loadKeys(file string) (keys []*wire.Key, err error) {
	secrets, err := keyfile.Load(file)
	for _, secret := range secrets {
		keys = append(keys, wire.NewKey(secret))
	}
	return keys, err
}

func (o *Options) checkTimes() error {
	for _, c := range []struct {
		key           string
		value, lo, hi time.Duration
	}{
		{"interval", o.Interval, minInterval, maxInterval},
		{"loss_timeout", o.LossTimeout, 10 * time.Millisecond, time.Minute},
		{"window", o.Window, time.Second, 10 * time.Minute},
		{"resolve_interval", o.ResolveInterval, time.Second, 24 * time.Hour},
		{"tai_offset", o.TAIOffset, 0, time.Minute},
		{"max_bound", o.MaxBound, 0, time.Hour},
		{"path_minimum", o.PathMinimum, 0, maxMinimum},
		{"playout_delay", o.PlayoutDelay, 0, 2 * time.Second},
	} {
		if c.value < c.lo || c.value > c.hi {
			return &probe.OptionError{Key: c.key, Problem: fmt.Sprintf("is %v; it must be between %v and %v", c.value, c.lo, c.hi)}
		}
	}
	return nil
}

// checkCounts keeps what is remembered within bounds.
func (o *Options) checkCounts() error {
	for _, c := range []struct {
		key  string
		time time.Duration
		most int
		why  string
	}{
		{"loss_timeout", o.LossTimeout, maxOutstanding, "packets can be waited for"},
		{"window", o.Window, delay.PDVLimit, "packets make a window"},
	} {
		if longest := time.Duration(c.most) * o.Interval; c.time > longest {
			return &probe.OptionError{Key: c.key, Problem: fmt.Sprintf("is %v; with an interval of %v it must be at most %v, since no more than %d %s", c.time, o.Interval, longest.Truncate(100*time.Millisecond), c.most, c.why)}
		}
	}
	return nil
}

func (o *Options) checkWords() error {
	for _, c := range []struct {
		key, value string
		allowed    []string
	}{
		{"schedule", o.Schedule, []string{schedulePeriodic, schedulePoisson}},
		{"family", o.Family, []string{familyAny, familyIPv4, familyIPv6}},
		{"timestamp_format", o.TimestampFormat, []string{"ntp", "ptp"}},
	} {
		if err := oneOf(c.key, c.value, c.allowed); err != nil {
			return err
		}
	}
	o.format = timefmt.NTP
	if o.TimestampFormat == "ptp" {
		o.format = timefmt.PTP
	}
	return nil
}

func (o *Options) checkAddressing() error {
	switch {
	case o.DSCP < 0 || o.DSCP > 63:
		return &probe.OptionError{Key: "dscp", Problem: fmt.Sprintf("is %d; it must be between 0 and 63", o.DSCP)}
	case o.TTL < 1 || o.TTL > 255:
		return &probe.OptionError{Key: "ttl", Problem: fmt.Sprintf("is %d; it must be between 1 and 255", o.TTL)}
	case o.Local == "":
		return nil
	}
	addr, err := netip.ParseAddr(o.Local)
	if err != nil {
		return &probe.OptionError{Key: "local", Problem: fmt.Sprintf("is %q; it must be an IP address of this host", o.Local)}
	}
	o.local = addr.Unmap()
	if (o.Family == familyIPv4 && !o.local.Is4()) || (o.Family == familyIPv6 && o.local.Is4()) {
		return &probe.OptionError{Key: "local", Problem: fmt.Sprintf("is %s, which is not of family %s", o.local, o.Family)}
	}
	return nil
}

func (o *Options) checkVoice() error {
	for i, name := range o.Codecs {
		if _, err := voice.CodecByName(name); err != nil {
			return &probe.OptionError{Key: fmt.Sprintf("codecs[%d]", i), Problem: fmt.Sprintf("is %q; %v", name, err)}
		}
	}
	for i, name := range o.Playout {
		if err := oneOf(fmt.Sprintf("playout[%d]", i), name, []string{playoutFixed, playoutAdaptive}); err != nil {
			return err
		}
	}
	return nil
}

func oneOf(key, value string, allowed []string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return &probe.OptionError{Key: key, Problem: fmt.Sprintf("is %q; it must be one of %q", value, allowed)}
}
