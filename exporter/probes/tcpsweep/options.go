package tcpsweep

import (
	"errors"
	"fmt"
	"time"

	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/sample"
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

// String is "64KiB", "1500" or "auto".
func (s Size) String() string {
	switch {
	case s == 0:
		return auto
	case s%1024 == 0:
		return fmt.Sprintf("%dKiB", s/1024)
	}
	return fmt.Sprint(int64(s))
}

// Options are the probe's own keys in the configuration; an absent key keeps its default.
// Those of loadtest.Options stand beside them.
type Options struct {
	// SendBuffers and ReceiveBuffers are each combined with each; no ReceiveBuffers: that of a cell is as large as its send
	// buffer.
	SendBuffers    []Size `yaml:"send_buffer_bytes"`
	ReceiveBuffers []Size `yaml:"receive_buffer_bytes"`
	// CongestionControl has names of the sending host's kernel; none: its default.
	CongestionControl []string `yaml:"congestion_control"`
	// CellDuration is the time of sending of each measurement of a cell, 1 s to 10 min.
	CellDuration time.Duration `yaml:"cell_duration"`
	// Omit is the time at the beginning of each, with the slow start, that the results leave out.
	Omit time.Duration `yaml:"omit"`
	// Repetitions of each cell in a run, 1 to 100.
	Repetitions int `yaml:"repetitions"`
	// MaxBytes limits the IP bytes of each measurement of a cell: it then ends.
	MaxBytes option.Bytes `yaml:"max_bytes"`
	// IdleTimeout ends a measurement without progress.
	IdleTimeout time.Duration `yaml:"idle_timeout"`
	// Seed of the order of the cells; zero: random for each run.
	Seed uint64 `yaml:"seed"`
}

// DefaultOptions are the buffers of the papers, and auto-tuning, with three repetitions.
func DefaultOptions() Options {
	return Options{
		SendBuffers:  []Size{17 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 0},
		CellDuration: 10 * time.Second, Omit: 2 * time.Second, Repetitions: 3, MaxBytes: 200_000_000, IdleTimeout: 10 * time.Second,
	}
}

// maxCells limits the series of a probe: each cell has up to 11 in each direction (176 by default, at most 1056).
const maxCells = 48

func (o *Options) check() error {
	if len(o.SendBuffers) == 0 {
		return option.Errorf("send_buffer_bytes", "is empty; it must have at least one value")
	}
	err := errors.Join(
		sizes("send_buffer_bytes", o.SendBuffers),
		sizes("receive_buffer_bytes", o.ReceiveBuffers),
		option.Between("cell_duration", o.CellDuration, time.Second, 10*time.Minute),
		option.Between("repetitions", o.Repetitions, 1, 100),
		option.Between("max_bytes", o.MaxBytes, 100_000, 1<<45),
		option.Between("idle_timeout", o.IdleTimeout, tcptraffic.MinIdle, tcptraffic.MaxIdle),
	)
	if err == nil {
		err = option.Between("omit", o.Omit, 0, o.CellDuration/2)
	}
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for i, name := range o.CongestionControl {
		key := fmt.Sprintf("congestion_control[%d]", i)
		if err := tcptraffic.CheckName(key, name); err != nil {
			return err
		}
		if seen[name] {
			return option.Errorf(key, "is %s for the second time", name)
		}
		seen[name] = true
	}
	if n := len(o.cells(sample.Forward)); n > maxCells {
		return option.Errorf("send_buffer_bytes", "times receive_buffer_bytes times congestion_control are %d cells; at most %d are allowed", n, maxCells)
	}
	return nil
}

func sizes(key string, list []Size) error {
	values := make([]int, len(list))
	for i, s := range list {
		values[i] = int(s)
	}
	return option.EachOnce(key, values, 0, tcpsocket.MaxBuffer)
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
		Direction: c.Direction, Duration: o.CellDuration, Most: int64(o.MaxBytes), Idle: o.IdleTimeout, Interval: sampleInterval,
		Flows: []tcptraffic.Flow{{MessageBytes: messageBytes, Options: tcpsocket.Options{
			SendBuffer: int(c.SendBuffer), ReceiveBuffer: int(c.ReceiveBuffer), CongestionControl: c.CongestionControl,
		}}},
	}
}
