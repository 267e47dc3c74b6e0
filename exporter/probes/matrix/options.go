package matrix

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"oneway.example/exporter/heavy"
	"oneway.example/exporter/probe"
)

// Options are the probe's own keys in the configuration; an absent key keeps its default.
// Those of heavy.Options stand beside them.
type Options struct {
	// PacketBytes are the sizes of the IP packets, headers included, 60 to 9000; those too
	// small for a test packet over the path's family are left out of a run.
	PacketBytes []int `yaml:"packet_bytes"`
	// PacketRates are in packets a second, 1 to 100000.
	PacketRates []int `yaml:"packet_rates"`
	// CellDuration is how long each cell is loaded, 100 ms to 10 min.
	CellDuration time.Duration `yaml:"cell_duration"`
	// Repetitions of each cell in a run, 1 to 100. The D-ITG report took 20 in a LAN (chapter 2)
	// and 10 over GPRS and UMTS (section 2.2.2).
	Repetitions int `yaml:"repetitions"`
	// Seed of the order of the cells; zero: another one for each run.
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

// Limits of the options. maxCells bounds the series of a path: eight for each cell and
// direction. maxPackets bounds the memory of a transfer.
const (
	minBytes       = 60 // header and smallest test packet over IPv4
	maxBytes       = 9000
	maxRate        = 100_000
	minDuration    = 100 * time.Millisecond
	maxDuration    = 10 * time.Minute
	maxRepetitions = 100
	maxCells       = 48
	maxPackets     = 2_000_000
)

func (o *Options) check() error {
	if err := list("packet_bytes", o.PacketBytes, minBytes, maxBytes); err != nil {
		return err
	}
	if err := list("packet_rates", o.PacketRates, 1, maxRate); err != nil {
		return err
	}
	if n := len(o.PacketBytes) * len(o.PacketRates); n > maxCells {
		return &probe.OptionError{Key: "packet_bytes", Problem: fmt.Sprintf("times packet_rates are %d cells; %d are the most", n, maxCells)}
	}
	if d := o.CellDuration; d < minDuration || d > maxDuration {
		return &probe.OptionError{Key: "cell_duration", Problem: fmt.Sprintf("is %v; it must be between %v and %v", d, minDuration, maxDuration)}
	}
	if n := float64(slices.Max(o.PacketRates)) * o.CellDuration.Seconds(); n > maxPackets {
		return &probe.OptionError{Key: "cell_duration", Problem: fmt.Sprintf("is %v, %.0f packets at the highest rate; %d are the most", o.CellDuration, n, maxPackets)}
	}
	if o.Repetitions < 1 || o.Repetitions > maxRepetitions {
		return &probe.OptionError{Key: "repetitions", Problem: fmt.Sprintf("is %d; it must be between 1 and %d", o.Repetitions, maxRepetitions)}
	}
	return nil
}

// list checks a list of numbers: not empty, each in its range and there once.
func list(key string, values []int, lo, hi int) error {
	if len(values) == 0 {
		return &probe.OptionError{Key: key, Problem: "is empty; it needs one value at the least"}
	}
	for i, v := range values {
		at := fmt.Sprintf("%s[%d]", key, i)
		if v < lo || v > hi {
			return &probe.OptionError{Key: at, Problem: fmt.Sprintf("is %d; it must be between %d and %d", v, lo, hi)}
		}
		if slices.Contains(values[:i], v) {
			return &probe.OptionError{Key: at, Problem: fmt.Sprintf("is %d for the second time", v)}
		}
	}
	return nil
}

// seed is that of a run.
func (o *Options) seed() uint64 {
	if o.Seed != 0 {
		return o.Seed
	}
	return 1 + rand.Uint64N(1<<32) // short enough to be typed in again
}

// Type is the registry's entry. The zero value is ready.
type Type struct{}

// New returns the type.
func New() Type { return Type{} }

// Name is "matrix".
func (Type) Name() string { return "matrix" }

// New checks the options of one path. Nothing is opened.
func (Type) New(env probe.Env, target probe.Target, decode func(any) error) (probe.Prober, error) {
	shared, own := heavy.DefaultOptions(), DefaultOptions()
	if err := heavy.Decode(decode, &shared, &own); err != nil {
		return nil, err
	}
	k, err := NewKind(env, target, shared, own)
	if err != nil {
		return nil, err
	}
	return heavy.NewProber(env, target, shared, k)
}
