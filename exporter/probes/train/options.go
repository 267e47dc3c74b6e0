package train

import (
	"errors"
	"time"

	"oneway.example/exporter/core/option"
	"oneway.example/exporter/estimate/capacity"
	"oneway.example/exporter/load/stream"
)

// Options are the probe's own keys in the configuration; an absent key keeps its default.
// Those of loadtest.Options stand beside them.
type Options struct {
	// PayloadBytes are the packet sizes as UDP payload, 32 to 8972, in sending order.
	PayloadBytes []int `yaml:"payload_bytes"`
	// Trains is the number of clean trains of a size, 3 to 1000.
	Trains int `yaml:"trains"`
	// TrainPackets is the length of a train, 5 to 200 packets.
	TrainPackets int `yaml:"train_packets"`
	// LongTrainPackets is the length of three additional trains of one size that detect a token bucket not emptied
	// by the others, 0 to 1000 packets. They are shorter if the link needs more than two seconds for one, and are
	// left out if they are not twice as long as the others.
	LongTrainPackets int `yaml:"long_train_packets"`
	// TrainInterval is the time between starts of trains, 10 ms to 1 min. It is longer if the slowest link needs
	// longer for a train.
	TrainInterval time.Duration `yaml:"train_interval"`
	// Group is the number of trains between two pauses of GroupPause.
	Group      int           `yaml:"group"`
	GroupPause time.Duration `yaml:"group_pause"`
	// Repeats is the number of discarded trains of a size that may be repeated.
	Repeats int `yaml:"max_repeats"`
	// MinClean is the number of clean trains that a capacity requires; zero: a third of Trains, but at least
	// capacity.MinClean.
	MinClean int `yaml:"min_clean"`
	// PathMTU: the path's MTU is searched, up to MaxMTU bytes of IP packet.
	PathMTU bool `yaml:"path_mtu"`
	MaxMTU  int  `yaml:"max_mtu_bytes"`
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
	maxTrains   = 1000
	minPackets  = 5 // fewer do not detect interleaved packets
	maxInterval = time.Minute
)

func (o *Options) check() error {
	if o.MinClean == 0 {
		o.MinClean = max(capacity.MinClean, o.Trains/3)
	}
	if n := len(o.PayloadBytes); n == 0 || n > maxSizes {
		return option.Errorf("payload_bytes", "has %d sizes; it must have 1 to %d", n, maxSizes)
	}
	err := errors.Join(
		option.EachOnce("payload_bytes", o.PayloadBytes, stream.HeaderBytes, 8972),
		option.Between("trains", o.Trains, capacity.MinClean, maxTrains),
		option.Between("train_packets", o.TrainPackets, minPackets, 200),
		option.Between("long_train_packets", o.LongTrainPackets, 0, 1000),
		option.Between("group", o.Group, 1, maxTrains),
		option.Between("max_repeats", o.Repeats, 0, maxTrains),
		option.Between("max_mtu_bytes", o.MaxMTU, base6, 65_535),
		option.Between("train_interval", o.TrainInterval, 10*time.Millisecond, maxInterval),
		option.Between("group_pause", o.GroupPause, 0, maxInterval),
	)
	if err == nil {
		err = option.Between("min_clean", o.MinClean, capacity.MinClean, o.Trains)
	}
	return err
}
