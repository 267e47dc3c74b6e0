package stamp

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/keyfile"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/estimate/delay"
	"oneway.example/exporter/estimate/voice"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/net/wire/timefmt"
	"oneway.example/exporter/probe/target"
)

// Options are the probe's own keys in the configuration. Durations are written
// as in Go ("100ms"); an absent key keeps its default.
type Options struct {
	// Interval is the (mean) time between test packets.
	Interval time.Duration `yaml:"interval"`
	// Schedule is "periodic" (RFC 3432, random start) or "poisson" (RFC 2330
	// section 11.1.1).
	Schedule string `yaml:"schedule"`
	// Size is the UDP payload in bytes. The default, 172, is that of a G.711
	// voice packet of 20 ms.
	Size int `yaml:"payload_bytes"`
	// DSCP is the code point of the test packets, 0..63.
	DSCP int `yaml:"dscp"`
	// TTL of the test packets. Default 255 (RFC 4656 section 4.1.2).
	TTL int `yaml:"ttl"`
	// KeyFile holds the shared secret of authenticated mode; empty: unauthenticated.
	KeyFile string `yaml:"key_file"`
	// LossTimeout is the waiting time, Tmax of RFC 7680, of either direction: a packet with a longer one-way delay
	// is lost, and so is a longer round trip.
	LossTimeout time.Duration `yaml:"loss_timeout"`
	// Window is the length of the interval over which minima, maxima, medians,
	// PDV and voice quality are taken. Zero: as long as 20 packets take, but at
	// least 10 s and at most 10 min or 65,536 packets.
	Window time.Duration `yaml:"window"`
	// Options select the destination, the address family and the outgoing interface.
	target.Options `yaml:",inline"`
	// LocalPort is the UDP source port of the test packets, for a reflector that replies to one port only; 0: the kernel's choice.
	LocalPort int `yaml:"local_port"`
	// Hardware names the interface whose hardware timestamps are used; empty: kernel timestamps only. The test
	// packets must leave and arrive on it.
	Hardware string `yaml:"hardware"`
	// TimestampFormat is "ntp" or "ptp" (the Z bit of the Error Estimate).
	TimestampFormat string `yaml:"timestamp_format"`
	// TAIOffset is TAI-UTC, used with PTP timestamps only.
	TAIOffset time.Duration `yaml:"tai_offset"`
	// MaxBound: delays with a larger combined bound are invalid; 0: no limit.
	MaxBound time.Duration `yaml:"max_bound"`
	// PathMinimum is a lower limit of the delay of either direction, from the length of the path or from better
	// clocks; it bounds the clocks' offset (package feasible). 0: not used.
	PathMinimum time.Duration `yaml:"path_minimum"`
	// Codecs are the codecs whose voice quality is computed; empty: none.
	Codecs []string `yaml:"codecs"`
	// Models are the voice quality models: "g107", "simplified".
	Models []string `yaml:"voice_models"`
	// Impairments also exports Id and Ie,eff of each rating.
	Impairments bool `yaml:"voice_impairments"`
	// Playout are the simulated playout buffers: "fixed", "adaptive".
	Playout []string `yaml:"playout"`
	// PlayoutDelay is the fixed buffer's depth.
	PlayoutDelay time.Duration `yaml:"playout_delay"`

	format timefmt.Format
	keys   []*stampfmt.Key
	slim   bool // profile slim: what it does not export is not estimated
}

// Values of options.
const (
	schedulePeriodic = "periodic"
	schedulePoisson  = "poisson"
	playoutFixed     = "fixed"
	playoutAdaptive  = "adaptive"
)

// Limits of the options. maxSize is the payload of the largest IPv4 datagram that jumbo Ethernet carries
// unfragmented.
const (
	minInterval = 100 * time.Microsecond
	maxInterval = time.Hour
	maxSize     = 8972
	maxMinimum  = 10 * time.Second
	// maxOutstanding is the most packets sent within the loss timeout; both ends remember at least as many.
	maxOutstanding = 1 << 16
)

// DefaultOptions are the options of an empty configuration.
func DefaultOptions() Options {
	return Options{
		Interval: time.Second, Schedule: schedulePeriodic, TTL: 255,
		LossTimeout: 3 * time.Second, Options: target.DefaultOptions(), TimestampFormat: "ntp", TAIOffset: 37 * time.Second,
		Codecs: []string{"G.711-PLC", "G.729"}, Models: []string{"g107"}, Playout: []string{playoutAdaptive},
		PlayoutDelay: 60 * time.Millisecond,
	}
}

// check validates o and fills in derived values.
func (o *Options) check() error {
	if o.Window == 0 {
		o.Window = max(time.Second, min(max(10*time.Second, 20*o.Interval), 10*time.Minute, delay.PDVLimit*o.Interval))
	}
	err := errors.Join(
		option.Between("interval", o.Interval, minInterval, maxInterval),
		option.Between("loss_timeout", o.LossTimeout, 10*time.Millisecond, time.Minute),
		option.Between("window", o.Window, time.Second, 10*time.Minute),
		option.Between("tai_offset", o.TAIOffset, 0, time.Minute),
		option.Between("max_bound", o.MaxBound, 0, time.Hour),
		option.Between("path_minimum", o.PathMinimum, 0, maxMinimum),
		option.Between("playout_delay", o.PlayoutDelay, 0, 2*time.Second),
		oneOf("schedule", o.Schedule, schedulePeriodic, schedulePoisson),
		oneOf("timestamp_format", o.TimestampFormat, "ntp", "ptp"),
		option.Between("dscp", o.DSCP, 0, 63),
		option.Between("ttl", o.TTL, 1, 255),
		option.Between("local_port", o.LocalPort, 0, 65535),
		o.Check(),
		o.checkVoice(),
		o.loadKeys(),
	)
	if err == nil {
		err = errors.Join(
			o.checkCount("loss_timeout", o.LossTimeout, maxOutstanding, "packets can be waited for"),
			o.checkCount("window", o.Window, delay.PDVLimit, "packets make a window"),
		)
	}
	if err != nil {
		return err
	}
	o.format = timefmt.NTP
	if o.TimestampFormat == "ptp" {
		o.format = timefmt.PTP
	}
	if o.Size == 0 {
		o.Size = defaultSize(o.KeyFile != "")
	}
	if _, err := planLayout(o.Size, o.KeyFile != ""); err != nil {
		return option.Errorf("payload_bytes", "is %d; %v", o.Size, err)
	}
	return nil
}

func (o *Options) loadKeys() (err error) {
	if o.KeyFile == "" {
		return nil
	}
	if o.keys, err = loadKeys(o.KeyFile); err != nil {
		return option.Errorf("key_file", "cannot be used: %v", err)
	}
	return nil
}

func loadKeys(file string) (keys []*stampfmt.Key, err error) {
	secrets, err := keyfile.Load(file)
	for _, secret := range secrets {
		keys = append(keys, stampfmt.NewKey(secret))
	}
	return keys, err
}

// checkCount limits the number of remembered packets.
func (o *Options) checkCount(key string, v time.Duration, most int, why string) error {
	longest := time.Duration(most) * o.Interval
	if v <= longest {
		return nil
	}
	return option.Errorf(key, "is %v; with an interval of %v it must be at most %v, since no more than %d %s",
		v, o.Interval, longest.Truncate(100*time.Millisecond), most, why)
}

func (o *Options) checkVoice() error {
	for i, name := range o.Codecs {
		if _, err := voice.CodecByName(name); err != nil {
			return option.Errorf(fmt.Sprintf("codecs[%d]", i), "is %q; %v", name, err)
		}
	}
	for i, name := range o.Models {
		if _, err := voice.ModelByName(name); err != nil {
			return option.Errorf(fmt.Sprintf("voice_models[%d]", i), "is %q; %v", name, err)
		}
	}
	for i, name := range o.Playout {
		if err := oneOf(fmt.Sprintf("playout[%d]", i), name, playoutFixed, playoutAdaptive); err != nil {
			return err
		}
	}
	return nil
}

func oneOf(key, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return option.Errorf(key, "is %q; it must be one of %q", value, allowed)
}

// encode writes a time in the timestamp format of this session's packets.
func (o *Options) encode(t instant.Time) uint64 { return o.format.Encode(t, o.TAIOffset) }

// decode reads a timestamp of the remote end, in the format that the reply's own Error Estimate names (RFC 8762
// section 4.2.1).
func (o *Options) decode(r *reply, raw uint64, local instant.Time) instant.Time {
	return r.packet.Error.Format().Decode(raw, o.TAIOffset, local)
}

// explains is the longest time between a drop and the decision of a loss attributed to it, if the next packet arrives
// at once and this host is not late.
func (o *Options) explains() time.Duration { return o.LossTimeout + 2*tickInterval }

// replyWait is the longest time for which a reply waits for its true T3: until the next two or three replies should
// have arrived.
func (o *Options) replyWait() time.Duration { return max(time.Second, replyWait*o.Interval) }

// layout is the content of a test packet of a given size. Bytes count UDP payload.
type layout struct {
	size          int
	authenticated bool
	base          int
	followUp      bool
	// receipt: there is space for our own TLV. Without it, statistics queries sent beside the test packets give the
	// counts of each direction.
	receipt bool
	words   int // of the receipt's bitmap
	padding int // value bytes of the Extra Padding TLV; -1: no such TLV
}

const (
	followUpBytes     = stampfmt.TLVHeaderBytes + 16
	receiptFixedBytes = stampfmt.TLVHeaderBytes + 72
	hmacTLVBytes      = stampfmt.TLVHeaderBytes + 16
	receiptWords      = 4
	voicePacketBytes  = 172 // RTP header and 20 ms of G.711
)

// defaultSize is that of a G.711 voice packet, or the smallest authenticated
// packet that carries everything.
func defaultSize(authenticated bool) int {
	if authenticated {
		return stampfmt.AuthenticatedBytes + followUpBytes + receiptFixedBytes + 8*receiptWords + hmacTLVBytes
	}
	return voicePacketBytes
}

// planLayout fits as much into size bytes as there is space for, in this order: Receipt with one word, Follow-Up,
// more words, padding.
func planLayout(size int, authenticated bool) (layout, error) {
	l := layout{size: size, authenticated: authenticated, base: stampfmt.UnauthenticatedBytes, padding: -1}
	if authenticated {
		l.base = stampfmt.AuthenticatedBytes
	}
	if size < l.base || size > maxSize {
		return l, fmt.Errorf("it must be between %d and %d bytes of UDP payload", l.base, maxSize)
	}
	free := size - l.base
	if free == 0 {
		return l, nil
	}
	if authenticated {
		if free -= hmacTLVBytes; free < 0 {
			return l, fmt.Errorf("an authenticated packet has either %d or at least %d bytes", l.base, l.base+hmacTLVBytes)
		}
	}
	for _, try := range layoutsByWorth() {
		rest := free
		if try.followUp {
			rest -= followUpBytes
		}
		if try.receipt {
			rest -= receiptFixedBytes + 8*try.words
		}
		if rest == 0 || rest >= stampfmt.TLVHeaderBytes {
			l.followUp, l.receipt, l.words = try.followUp, try.receipt, try.words
			if rest > 0 {
				l.padding = rest - stampfmt.TLVHeaderBytes
			}
			return l, nil
		}
	}
	return l, fmt.Errorf("%d bytes beyond the base packet are too few for a TLV; take %d or at least %d",
		free, l.base, l.base+stampfmt.TLVHeaderBytes)
}

func layoutsByWorth() []layout {
	var all []layout
	for words := receiptWords; words >= 0; words-- {
		all = append(all, layout{followUp: true, receipt: true, words: words})
	}
	return append(all, layout{receipt: true}, layout{followUp: true}, layout{})
}
