package tcpsweep

import (
	"fmt"
	"time"

	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/exporter/net/tcpsocket"
)

// Size is the size of a buffer as an application sets it, in bytes; zero: auto-tuning.
type Size int64

// UnmarshalText reads an amount of data, or "auto".
func (s *Size) UnmarshalText(text []byte) error {
	if string(text) == auto {
		*s = 0
		return nil
	}
	return (*option.Bytes)(s).UnmarshalText(text)
}

const auto = "auto"

// Pattern matches the texts of UnmarshalText.
func (Size) Pattern() string { return "^" + auto + "$|" + option.Bytes(0).Pattern() }

// String is "64KiB", "1500" or "auto".
func (s Size) String() string {
	if s == 0 {
		return auto
	}
	return option.String(option.Bytes(s))
}

// Options are the probe's own keys in the configuration, beside those of loadtest.Options. Describe has their meanings, defaults and
// bounds.
type Options struct {
	SendBuffers       []Size        `yaml:"send_buffer_bytes"`
	ReceiveBuffers    []Size        `yaml:"receive_buffer_bytes"`
	CongestionControl []string      `yaml:"congestion_control"`
	CellDuration      time.Duration `yaml:"cell_duration"`
	Omit              time.Duration `yaml:"omit"`
	Repetitions       int           `yaml:"repetitions"`
	MaxBytes          option.Bytes  `yaml:"max_bytes"`
	IdleTimeout       time.Duration `yaml:"idle_timeout"`
	Seed              uint64        `yaml:"seed"`
}

// Describe returns the descriptions of the probe's own keys.
func (o *Options) Describe() []option.Description {
	return []option.Description{
		option.Numbers(&o.SendBuffers, []Size{17 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 0}, 0, tcpsocket.MaxBuffer,
			"Send buffers, as an application sets them; auto: auto-tuning.").Limited("1 to "+option.String(option.Bytes(tcpsocket.MaxBuffer))+", or auto").Count(1, maxCells),
		option.Numbers(&o.ReceiveBuffers, nil, 0, tcpsocket.MaxBuffer, "Receive buffers, each combined with each send buffer.").
			Limited("1 to " + option.String(option.Bytes(tcpsocket.MaxBuffer)) + ", or auto").Unset("as large as the send buffer").WithExample("[64KiB, auto]"),
		option.Value(&o.CongestionControl, nil, "Congestion control algorithms of the sending host's kernel, each combined with each buffer.").Unset("the host's default").WithExample("[cubic]").WithPlaceholder("NAME").
			Checked(func(key string) error { return tcptraffic.CheckNames(key, o.CongestionControl) }),
		option.Number(&o.CellDuration, 10*time.Second, time.Second, maxCell, "Duration of sending of each measurement of a cell."),
		option.Number(&o.Omit, 2*time.Second, 0, maxCell/2, "Time at the beginning of each measurement that is left out of the results."),
		loadtest.DescribeRepetitions(&o.Repetitions, 3),
		tcptraffic.DescribeLimit(&o.MaxBytes, 200_000_000, "each measurement"),
		tcptraffic.DescribeIdle(&o.IdleTimeout, "measurement"),
		loadtest.DescribeSeed(&o.Seed, "cells"),
	}
}

// DefaultOptions are the options of an empty configuration: the buffers of the papers, and auto-tuning.
func DefaultOptions() Options { return option.Defaults[Options]() }

// maxCell limits the time of a measurement.
const maxCell = 10 * time.Minute

// maxCells limits the series of a probe: each cell has up to 11 in each direction (176 by default, at most 1056).
const maxCells = 48

func (o *Options) check() error {
	err := option.Check(o)
	if err == nil {
		err = tcptraffic.CheckOmit(o.Omit, DefaultOptions().Omit, "cell_duration", o.CellDuration)
	}
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for i, name := range o.CongestionControl {
		key := fmt.Sprintf("congestion_control[%d]", i)
		if seen[name] {
			return option.Errorf(key, "is %s for the second time", name)
		}
		seen[name] = true
	}
	if n := len(o.cells(sample.Forward)); n > maxCells {
		return option.Errorf("send_buffer_bytes", "times %s times %s are %d cells; at most %d are allowed",
			option.Key("receive_buffer_bytes"), option.Key("congestion_control"), n, maxCells)
	}
	return nil
}

// cells returns the configured cells of a direction.
func (o *Options) cells(d sample.Direction) (all []Cell) {
	names := o.CongestionControl
	if len(names) == 0 {
		names = []string{""}
	}
	for _, name := range names {
		for _, send := range o.SendBuffers {
			receivers := o.ReceiveBuffers
			if len(receivers) == 0 {
				receivers = []Size{send}
			}
			for _, receive := range receivers {
				all = append(all, Cell{d, int64(send), int64(receive), name})
			}
		}
	}
	return all
}

// sampleInterval is that of the kernel's state.
const sampleInterval = 100 * time.Millisecond

// messageBytes is the size of each write.
const messageBytes = 128 << 10

// plan returns the transfer that measures a cell.
func (o *Options) plan(c Cell) tcptraffic.Plan {
	return tcptraffic.Plan{
		Direction: c.Direction, Duration: o.CellDuration, Most: int64(o.MaxBytes), Idle: o.IdleTimeout, Outage: o.IdleTimeout, Interval: sampleInterval,
		Flows: []tcptraffic.Flow{{MessageBytes: messageBytes, Options: tcpsocket.Options{
			SendBuffer: int(c.SendBuffer), ReceiveBuffer: int(c.ReceiveBuffer), CongestionControl: c.CongestionControl,
		}}},
	}
}
