package sizesweep

import (
	"errors"
	"slices"
	"time"

	"oneway.example/exporter/core/option"
)

// Options are the probe's own keys in the configuration; an absent key keeps its default.
// Those of loadtest.Options stand beside them.
type Options struct {
	// PacketBytes are the sizes of the IP packets, headers included, 60 to 9000; a run leaves out those too small
	// for a test packet of the path's address family.
	PacketBytes []int `yaml:"packet_bytes"`
	// PacketRates are in packets a second, 1 to 100000.
	PacketRates []int `yaml:"packet_rates"`
	// CellDuration is the time of load of each cell, 100 ms to 10 min.
	CellDuration time.Duration `yaml:"cell_duration"`
	// Repetitions of each cell in a run, 1 to 100. The D-ITG report took 20 in a LAN (chapter 2)
	// and 10 over GPRS and UMTS (section 2.2.2).
	Repetitions int `yaml:"repetitions"`
	// Seed of the order of the cells; zero: random for each run.
	Seed uint64 `yaml:"seed"`
}

// DefaultOptions are the sizes and rates of the D-ITG report, once.
func DefaultOptions() Options {
	return Options{
		PacketBytes:  []int{64, 128, 256, 512, 1024, 1500},
		PacketRates:  []int{100, 1000, 10_000},
		CellDuration: 10 * time.Second,
		Repetitions:  1,
	}
}

// Limits of the options. maxCells limits the series of a path: eight for each cell and direction. maxPackets limits
// the memory of a transfer.
const (
	minBytes   = 60 // header and smallest test packet over IPv4
	maxCells   = 48
	maxPackets = 2_000_000
)

func (o *Options) check() error {
	err := errors.Join(list("packet_bytes", o.PacketBytes, minBytes, 9000), list("packet_rates", o.PacketRates, 1, 100_000),
		option.Between("cell_duration", o.CellDuration, 100*time.Millisecond, 10*time.Minute), option.Between("repetitions", o.Repetitions, 1, 100))
	if err != nil {
		return err
	}
	if n := len(o.PacketBytes) * len(o.PacketRates); n > maxCells {
		return option.Errorf("packet_bytes", "times packet_rates are %d cells; at most %d are allowed", n, maxCells)
	}
	if n := float64(slices.Max(o.PacketRates)) * o.CellDuration.Seconds(); n > maxPackets {
		return option.Errorf("cell_duration", "is %v, %.0f packets at the highest rate; at most %d are allowed", o.CellDuration, n, maxPackets)
	}
	return nil
}

// list checks a list of numbers: not empty, each in its range, without duplicates.
func list(key string, values []int, lo, hi int) error {
	if len(values) == 0 {
		return option.Errorf(key, "is empty; it must have at least one value")
	}
	return option.EachOnce(key, values, lo, hi)
}
