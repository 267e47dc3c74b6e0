package train

import (
	"fmt"
	"time"

	"oneway.example/exporter/core/option"
	"oneway.example/exporter/estimate/capacity"
	"oneway.example/exporter/load/stream"
)

// Options are the probe's own keys in the configuration, beside those of loadtest.Options. Describe has their meanings, defaults and
// bounds.
type Options struct {
	PayloadBytes     []int         `yaml:"payload_bytes"`
	Trains           int           `yaml:"trains"`
	TrainPackets     int           `yaml:"train_packets"`
	LongTrainPackets int           `yaml:"long_train_packets"`
	TrainInterval    time.Duration `yaml:"train_interval"`
	Group            int           `yaml:"group"`
	GroupPause       time.Duration `yaml:"group_pause"`
	Repeats          int           `yaml:"max_repeats"`
	MinClean         int           `yaml:"min_clean"`
	PathMTU          bool          `yaml:"path_mtu"`
	MaxMTU           int           `yaml:"max_mtu_bytes"`
}

// Describe returns the descriptions of the probe's own keys. The defaults are those of the WPI report.
func (o *Options) Describe() []option.Description {
	return []option.Description{
		option.Numbers(&o.PayloadBytes, []int{1472, 1200, 1000, 800}, stream.HeaderBytes, 8972, "UDP payload of the packets, in the order of sending.").Count(1, maxSizes),
		option.Number(&o.Trains, 30, capacity.MinClean, maxTrains, "Number of clean trains of each size."),
		option.Number(&o.TrainPackets, 25, minPackets, 200, "Number of packets in a train."),
		option.Number(&o.LongTrainPackets, 200, 0, 1000, fmt.Sprintf("Number of packets in each of %d long trains of one size, which detect a token bucket that the others do "+
			"not empty; 0: no long trains. They are shorter if the link needs more than %v for one or the rate of the token does not allow one at once, and left out if they are not %d times as long as the others. Where no train is clean, "+
			"since the link is faster than the sender, they double in length up to this number or what the token allows, until one has emptied a bucket.", longTrains, longest, longFactor)),
		option.Number(&o.TrainInterval, time.Second, 10*time.Millisecond, maxInterval, "Time between the starts of trains; longer where the link needs more time for one."),
		option.Number(&o.Group, 10, 1, maxTrains, "Number of trains in a group, after which there is a pause."),
		option.Number(&o.GroupPause, 10*time.Second, 0, maxInterval, "Pause after each group of trains."),
		option.Number(&o.Repeats, 30, 0, maxTrains, "Number of trains of a size that may be discarded and sent again, for example because of loss."),
		option.Number(&o.MinClean, 0, capacity.MinClean, maxTrains, "Number of clean trains that a capacity needs: with fewer, or with fewer than were discarded for "+
			"timestamps in groups, a token bucket or cross traffic (which counts twice), the result is the reason.").Unset(option.Part(cleanPart) + " of {trains}").Checked(o.checkMinClean),
		option.Switch(&o.PathMTU, true, "Search for the largest packet that passes unfragmented."),
		option.Number(&o.MaxMTU, 9000, base6, 65_535, "Largest IP packet to try for the path's MTU."),
	}
}

// DefaultOptions are the options of an empty configuration.
func DefaultOptions() Options { return option.Defaults[Options]() }

// Limits of the options.
const (
	maxSizes    = 12
	maxTrains   = 1000
	minPackets  = 5 // fewer do not detect interleaved packets
	maxInterval = time.Minute
	// cleanPart is the part of the trains that is the default of min_clean.
	cleanPart = 3
)

func (o *Options) check() error {
	if err := option.Check(o); err != nil {
		return err
	}
	if o.MinClean == 0 {
		o.MinClean = max(capacity.MinClean, o.Trains/cleanPart)
	}
	return nil
}

// checkMinClean reports a number that is out of range or above the number of trains, unless that is out of range itself.
func (o *Options) checkMinClean(key string) error {
	most := o.Trains
	if option.Between("trains", o.Trains, capacity.MinClean, maxTrains) != nil {
		most = maxTrains
	}
	return option.Between(key, o.MinClean, capacity.MinClean, most)
}
