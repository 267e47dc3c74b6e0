package sizesweep

import (
	"slices"
	"time"

	"oneway.example/exporter/core/option"
	"oneway.example/exporter/load/loadtest"
)

// Options are the probe's own keys in the configuration, beside those of loadtest.Options. Describe has their meanings, defaults and
// bounds.
type Options struct {
	PacketBytes  []int         `yaml:"packet_bytes"`
	PacketRates  []int         `yaml:"packet_rates"`
	CellDuration time.Duration `yaml:"cell_duration"`
	Repetitions  int           `yaml:"repetitions"`
	Seed         uint64        `yaml:"seed"`
}

// Describe returns the descriptions of the probe's own keys. The defaults are the sizes and rates of the D-ITG report, which repeated
// each cell 20 times in a LAN (chapter 2) and 10 times over GPRS and UMTS (section 2.2.2).
func (o *Options) Describe() []option.Description {
	return []option.Description{
		option.Numbers(&o.PacketBytes, []int{64, 128, 256, 512, 1024, 1500}, minBytes, 9000, "Sizes of the IP packets, headers included. "+
			"A run leaves out those too small for a test packet of the path's address family.").Count(1, maxCells),
		option.Numbers(&o.PacketRates, []int{100, 1000, 10_000}, 1, 100_000, "Packet rates, each combined with each size.").Count(1, maxCells).In("packets/s"),
		option.Number(&o.CellDuration, 10*time.Second, 100*time.Millisecond, 10*time.Minute, "Duration of each cell."),
		loadtest.DescribeRepetitions(&o.Repetitions, 1),
		loadtest.DescribeSeed(&o.Seed, "cells"),
	}
}

// DefaultOptions are the options of an empty configuration.
func DefaultOptions() Options { return option.Defaults[Options]() }

// Limits of the options. maxCells limits the series of a path: eight for each cell and direction. maxPackets limits
// the memory of a transfer.
const (
	minBytes   = 60 // header and smallest test packet over IPv4
	maxCells   = 48
	maxPackets = 2_000_000
)

func (o *Options) check() error {
	if err := option.Check(o); err != nil {
		return err
	}
	if n := len(o.PacketBytes) * len(o.PacketRates); n > maxCells {
		return option.Errorf("packet_bytes", "times %s are %d cells; at most %d are allowed", option.Key("packet_rates"), n, maxCells)
	}
	if n := float64(slices.Max(o.PacketRates)) * o.CellDuration.Seconds(); n > maxPackets {
		return option.Errorf("cell_duration", "is %v, %.0f packets at the highest rate; at most %d are allowed", o.CellDuration, n, maxPackets)
	}
	return nil
}
