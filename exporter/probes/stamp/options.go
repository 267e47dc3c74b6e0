package stamp

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"oneway.example/exporter/core/bound"
	"oneway.example/exporter/core/keyfile"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/pathstate"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/estimate/delay"
	"oneway.example/exporter/estimate/seqwin"
	"oneway.example/exporter/estimate/voice"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/net/wire/timefmt"
	"oneway.example/exporter/probe/target"
	"oneway.example/exporter/probes/stamp/ledger"
)

// Options are the probe's own keys in the configuration. Describe has their meanings, defaults and bounds.
type Options struct {
	Interval    time.Duration `yaml:"interval"`
	Schedule    string        `yaml:"schedule"`
	Size        int           `yaml:"payload_bytes"`
	DSCP        int           `yaml:"dscp"`
	TTL         int           `yaml:"ttl"`
	KeyFile     string        `yaml:"key_file"`
	LossTimeout time.Duration `yaml:"loss_timeout"`
	// Window is set by check if it is zero: as long as 20 packets take, but at least 10 s and at most 10 min or 65,536 packets.
	Window time.Duration `yaml:"window"`
	// Options select the destination, the address family and the outgoing interface.
	target.Options  `yaml:",inline"`
	LocalPort       int           `yaml:"local_port"`
	Hardware        string        `yaml:"hardware"`
	TimestampFormat string        `yaml:"timestamp_format"`
	TAIOffset       time.Duration `yaml:"tai_offset"`
	MaxBound        time.Duration `yaml:"max_bound"`
	MaxLoss         float64       `yaml:"max_loss"`
	MaxDelay        time.Duration `yaml:"max_delay"`
	MaxDelayRise    time.Duration `yaml:"max_delay_rise"`
	PathMinimum     time.Duration `yaml:"path_minimum"`
	Codecs          []string      `yaml:"codecs"`
	Models          []string      `yaml:"voice_models"`
	Impairments     bool          `yaml:"voice_impairments"`
	Playout         []string      `yaml:"playout"`
	PlayoutDelay    time.Duration `yaml:"playout_delay"`

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
	formatNTP        = "ntp"
	formatPTP        = "ptp"
)

// Limits of the options. maxSize is the payload of the largest IPv4 datagram that jumbo Ethernet carries
// unfragmented.
const (
	minInterval = 100 * time.Microsecond
	maxInterval = time.Hour
	maxSize     = 8972
	maxMinimum  = 10 * time.Second
	maxDSCP     = 63
	// The window: its longest time, and the packets and the least time of the default.
	maxWindow     = 10 * time.Minute
	windowPackets = 20
	leastWindow   = 10 * time.Second
)

// Describe returns the descriptions of the probe's keys, those of target.Options included.
func (o *Options) Describe() []option.Description {
	return slices.Concat([]option.Description{
		option.Number(&o.Interval, time.Second, minInterval, maxInterval, "Time between test packets."),
		option.Word(&o.Schedule, schedulePeriodic, []string{schedulePeriodic, schedulePoisson},
			"Schedule of the test packets: periodic (RFC 3432) or poisson (RFC 2330 section 11.1.1), which also detects periodic behavior of the path; {interval} is its mean."),
		option.Value(&o.Size, 0, "UDP payload of the test packets, in bytes.").
			Unset(fmt.Sprintf("%d, a G.711 voice packet of 20 ms, and with a {key_file} %d", voicePacketBytes, DefaultSize(true))).WithExample(strconv.Itoa(voicePacketBytes)),
		option.Number(&o.DSCP, 0, 0, maxDSCP, "Code point (DSCP) of the test packets, as a number; 46 is EF, used for voice."),
		option.Number(&o.TTL, 255, 1, 255, "TTL or hop limit of the test packets."),
		option.Text(&o.KeyFile, "File with the shared secret of authenticated mode; the first line signs.").WithExample("office.key").
			Checked(func(key string) error { return o.loadKeys(key) }),
		option.Number(&o.LossTimeout, seqwin.DefaultWait, 10*time.Millisecond, time.Minute,
			fmt.Sprintf("Waiting time of each direction and of the round trip, after which a packet is lost (Tmax of RFC 7680); at most %d times {interval}.", ledger.MaxOutstanding)),
		option.Number(&o.Window, 0, time.Second, maxWindow, "The window of minima, medians, maxima, variation and voice quality.").
			Unset(fmt.Sprintf("the time of %d packets, at least %v", windowPackets, leastWindow)).FileOnly(),
	}, o.Options.Describe(), []option.Description{
		option.Number(&o.LocalPort, 0, 0, math.MaxUint16, fmt.Sprintf("UDP source port, for a reflector that replies to one port only. Without one, a path changes its port when nothing comes back for %s, or for two intervals, and {loss_timeout}; then less often, up to every %s.", unit.Duration(portAge), unit.Duration(mostPortAge))).Unset("the kernel's choice").WithPlaceholder("PORT"),
		option.Text(&o.Hardware, "Use the hardware timestamps of this interface, which test packets and replies must pass.").Unset("the kernel's timestamps").WithExample("eth0").WithPlaceholder("IFACE"),
		option.Word(&o.TimestampFormat, formatNTP, []string{formatNTP, formatPTP}, "Timestamp format to request of the peer.").FileOnly(),
		option.Number(&o.TAIOffset, timefmt.TAIOffset, 0, time.Minute, "TAI-UTC, used with {timestamp_format} ptp.").FileOnly(),
		option.Number(&o.MaxBound, 0, 0, bound.Limit, "Delays with a larger combined bound are counted as invalid.").Unset("no limit").FileOnly(),
		option.Number(&o.MaxLoss, 0.01, 0.0001, 1, "Limit of the path's state: a path is degraded if more than this ratio of its packets is lost, in "+fmt.Sprintf("%.0f", pathstate.Recent.Minutes())+" minutes.").FileOnly(),
		option.Number(&o.MaxDelay, 150*time.Millisecond, 0, maxMinimum, "Limit of the path's state: a path is degraded if more than "+unit.Ratio.Format(pathstate.SlowShare)+" of the packets of a direction take longer (ITU-T G.114 clause 3), for certain despite the error bound, ...").FileOnly(),
		option.Number(&o.MaxDelayRise, 50*time.Millisecond, 0, maxMinimum, "... and longer than the smallest delay of the last hour by more than this: a long and steady delay, as of a satellite, is no fault.").FileOnly(),
		option.Number(&o.PathMinimum, 0, 0, maxMinimum, "Known lower limit of the delay of each direction (4.9 us per km of fiber): with it, the smallest delays of both "+
			"directions bound the clocks' offset, which helps where there is only NTP. The possible slew of a clock during a round trip remains in the bound. "+
			"If the path can be shorter, the bound is wrong.").Unset("unknown"),
		option.Value(&o.Codecs, []string{"G.711-PLC", "G.729"}, "Codecs of voice quality (E-model); [] computes none.").FileOnly().
			Checked(func(key string) error { return checkEach(key, o.Codecs, voice.CodecByName, voice.CodecNames()) }),
		option.Value(&o.Models, []string{voice.NameG107}, "Models of voice quality: g107, simplified.").FileOnly().
			Checked(func(key string) error { return checkEach(key, o.Models, voice.ModelByName, voice.ModelNames()) }),
		option.Switch(&o.Impairments, false, "Whether the impairments Id and Ie,eff of each rating are series as well.").FileOnly(),
		option.Words(&o.Playout, []string{playoutAdaptive}, []string{playoutAdaptive, playoutFixed}, "Simulated playout buffers of voice quality.").FileOnly(),
		option.Number(&o.PlayoutDelay, 60*time.Millisecond, 0, 2*time.Second, "Depth of the fixed playout buffer.").FileOnly(),
	})
}

// DefaultOptions are the options of an empty configuration.
func DefaultOptions() Options { return option.Defaults[Options]() }

// check validates o and fills in derived values.
func (o *Options) check() error {
	if o.Window == 0 {
		o.Window = max(time.Second, min(max(leastWindow, windowPackets*o.Interval), maxWindow, delay.PDVLimit*o.Interval))
	}
	err := option.Check(o)
	if err == nil {
		err = errors.Join(
			o.checkCount("loss_timeout", o.LossTimeout, ledger.MaxOutstanding, "packets can be waited for"),
			o.checkCount("window", o.Window, delay.PDVLimit, "packets make a window"),
		)
	}
	if err != nil {
		return err
	}
	o.format = timefmt.NTP
	if o.TimestampFormat == formatPTP {
		o.format = timefmt.PTP
	}
	if o.Size == 0 {
		o.Size = DefaultSize(o.KeyFile != "")
	}
	if _, err := planLayout(o.Size, o.KeyFile != ""); err != nil {
		return option.Errorf("payload_bytes", "is %d; %v", o.Size, err)
	}
	return nil
}

func (o *Options) loadKeys(key string) (err error) {
	if o.keys, err = loadKeys(o.KeyFile); err != nil {
		return option.Errorf(key, "cannot be used: %v", err)
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
	return option.Errorf(key, "is %v; with an %s of %v it must be at most %v, since no more than %d %s",
		v, option.Key("interval"), o.Interval, longest.Truncate(100*time.Millisecond), most, why)
}

// checkEach returns an error unless find knows each name; it knows the names in all.
func checkEach[T any](key string, names []string, find func(name string) (T, error), all []string) error {
	for i, name := range names {
		if _, err := find(name); err != nil {
			return option.OneOf(fmt.Sprintf("%s[%d]", key, i), name, all...)
		}
	}
	return nil
}

// ledger returns what the ledger needs to know of the test packets.
func (o *Options) ledger(plan layout) ledger.Options {
	return ledger.Options{Interval: o.Interval, LossTimeout: o.LossTimeout, TAIOffset: o.TAIOffset, TTL: uint8(o.TTL), Receipts: plan.receipt, Format: o.format}
}

// reach is by how many packets one may be overtaken in the waiting time, twice the mean with a Poisson schedule, and a few
// more while its reply waits for the true T3.
func (o *Options) reach() uint32 {
	return uint32(min(delay.PDVLimit-2, 2*o.LossTimeout/o.Interval+6))
}

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

// DefaultSize is the UDP payload of a test packet in bytes: of a G.711 voice packet, or of the smallest authenticated packet that carries
// everything.
func DefaultSize(authenticated bool) int {
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

// leastReply is the length of the shortest reply, in bytes.
func (l *layout) leastReply() int {
	if l.authenticated {
		return stampfmt.AuthenticatedBytes
	}
	return stampfmt.MinReplyBytes
}

func layoutsByWorth() []layout {
	var all []layout
	for words := receiptWords; words >= 0; words-- {
		all = append(all, layout{followUp: true, receipt: true, words: words})
	}
	return append(all, layout{receipt: true}, layout{followUp: true}, layout{})
}
