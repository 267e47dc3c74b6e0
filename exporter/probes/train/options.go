package train

import (
	"fmt"
	"slices"
	"time"

	"oneway.example/exporter/estimate/capacity"
	"oneway.example/exporter/heavy"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/stream"
)

// Options are the probe's own keys in the configuration; an absent key keeps its default.
// Those of heavy.Options stand beside them.
type Options struct {
	// PayloadBytes are the sizes of the packets, as UDP payload, 32 to 8972, in the order
	// in which they are sent.
	PayloadBytes []int `yaml:"payload_bytes"`
	// Trains is how many clean trains of a size are wanted, 3 to 1000.
	Trains int `yaml:"trains"`
	// TrainPackets is the length of a train, 5 to 200 packets.
	TrainPackets int `yaml:"train_packets"`
	// LongTrainPackets is the length of three trains more, of one size, that look for a token
	// bucket which the others do not empty, 0 to 1000 packets; shorter where the link would
	// take more than two seconds for one, and none where they are not twice as long as the others.
	LongTrainPackets int `yaml:"long_train_packets"`
	// TrainInterval is the time from the beginning of a train to that of the next, 10 ms to
	// 1 min. Where the slowest link takes longer than that for a train, it is made longer.
	TrainInterval time.Duration `yaml:"train_interval"`
	// Group trains are sent one after the other, and then nothing for GroupPause.
	Group      int           `yaml:"group"`
	GroupPause time.Duration `yaml:"group_pause"`
	// Repeats is how many trains of a size may be discarded and sent again.
	Repeats int `yaml:"repeats"`
	// MinClean is how many clean trains a capacity needs; zero: a third of Trains, but
	// capacity.MinClean at the least.
	MinClean int `yaml:"min_clean"`
	// PathMTU: the path's MTU is searched for, up to MaxMTU octets of IP packet.
	PathMTU bool `yaml:"path_mtu"`
	MaxMTU  int  `yaml:"max_mtu"`
}

// DefaultOptions are those of the WPI report.
func DefaultOptions() Options {
	return Options{
		PayloadBytes: []int{1472, 1200, 1000, 800},
		Trains:       30, TrainPackets: 25, LongTrainPackets: 200, TrainInterval: time.Second,
		Group: 10, GroupPause: 10 * time.Second,
		Repeats: 30,
		PathMTU: true, MaxMTU: 9000,
	}
}

// Limits of the options.
const (
	maxSizes    = 12
	maxPayload  = 8972 // IPv4 on jumbo Ethernet
	maxTrains   = 1000
	minPackets  = 5 // fewer say too little of what has come between them
	maxPackets  = 200
	maxLong     = 1000
	minInterval = 10 * time.Millisecond
	maxInterval = time.Minute
)

func (o *Options) check() error {
	if o.MinClean == 0 {
		o.MinClean = max(capacity.MinClean, o.Trains/3)
	}
	if err := o.checkSizes(); err != nil {
		return err
	}
	for _, c := range []struct {
		key           string
		value, lo, hi int
	}{
		{"trains", o.Trains, capacity.MinClean, maxTrains},
		{"train_packets", o.TrainPackets, minPackets, maxPackets},
		{"long_train_packets", o.LongTrainPackets, 0, maxLong},
		{"group", o.Group, 1, maxTrains},
		{"repeats", o.Repeats, 0, maxTrains},
		{"min_clean", o.MinClean, capacity.MinClean, o.Trains},
		{"max_mtu", o.MaxMTU, base6, 65_535},
	} {
		if c.value < c.lo || c.value > c.hi {
			return &probe.OptionError{Key: c.key, Problem: fmt.Sprintf("is %d; it must be between %d and %d", c.value, c.lo, c.hi)}
		}
	}
	for _, c := range []struct {
		key           string
		value, lo, hi time.Duration
	}{
		{"train_interval", o.TrainInterval, minInterval, maxInterval},
		{"group_pause", o.GroupPause, 0, maxInterval},
	} {
		if c.value < c.lo || c.value > c.hi {
			return &probe.OptionError{Key: c.key, Problem: fmt.Sprintf("is %v; it must be between %v and %v", c.value, c.lo, c.hi)}
		}
	}
	return nil
}

func (o *Options) checkSizes() error {
	if n := len(o.PayloadBytes); n == 0 || n > maxSizes {
		return &probe.OptionError{Key: "payload_bytes", Problem: fmt.Sprintf("has %d sizes; it must have 1 to %d", n, maxSizes)}
	}
	for i, size := range o.PayloadBytes {
		key := fmt.Sprintf("payload_bytes[%d]", i)
		if size < stream.HeaderBytes || size > maxPayload {
			return &probe.OptionError{Key: key, Problem: fmt.Sprintf("is %d; it must be between %d and %d", size, stream.HeaderBytes, maxPayload)}
		}
		if slices.Contains(o.PayloadBytes[:i], size) {
			return &probe.OptionError{Key: key, Problem: fmt.Sprintf("is %d for the second time", size)}
		}
	}
	return nil
}

// Type is the registry's entry. The zero value is ready.
type Type struct{}

// New returns the type.
func New() Type { return Type{} }

// Name is "train".
func (Type) Name() string { return "train" }

// New checks the options of one path. Nothing is opened.
func (Type) New(env probe.Env, target probe.Target, decode func(any) error) (probe.Prober, error) {
	shared, own := heavy.DefaultOptions(), DefaultOptions()
	if err := heavy.Decode(decode, &shared, &own); err != nil {
		return nil, err
	}
	k, err := NewKind(shared, own)
	if err != nil {
		return nil, err
	}
	return heavy.NewProber(env, target, shared, k)
}
