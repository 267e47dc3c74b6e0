package tcpshort

import (
	"errors"
	"time"

	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/exporter/net/tcpsocket"
)

// Options are the probe's own keys in the configuration; an absent key keeps its default.
// Those of loadtest.Options stand beside them.
type Options struct {
	// FlowBytes has the payload of each size of flow.
	FlowBytes []option.Bytes `yaml:"flow_bytes"`
	// Repetitions of each size in each direction in a run, 8 to 1000.
	Repetitions int `yaml:"repetitions"`
	// FlowTimeout is the limit of a flow's time, 1 s to 2 min. A flow that takes longer is unfinished.
	FlowTimeout time.Duration `yaml:"flow_timeout"`
	// CongestionControl is a name of the sending host's kernel; empty: its default.
	CongestionControl string `yaml:"congestion_control"`
	// SendBuffer and ReceiveBuffer are the sizes that an application sets; zero: auto-tuning.
	SendBuffer    option.Bytes `yaml:"send_buffer_bytes"`
	ReceiveBuffer option.Bytes `yaml:"receive_buffer_bytes"`
	// Seed of the order of the flows; zero: random for each run.
	Seed uint64 `yaml:"seed"`
}

// DefaultOptions are flows of 10 kB, 100 kB and 1 MB, 20 of each.
func DefaultOptions() Options {
	return Options{FlowBytes: []option.Bytes{10_000, 100_000, 1_000_000}, Repetitions: 20, FlowTimeout: 30 * time.Second}
}

// maxSizes limits the series of a path, and maxFlow the time and the data of a flow. The median of fewer than
// minRepetitions flows has no interval (estimate/tcp).
const (
	minRepetitions = 8

	maxSizes = 10
	maxFlow  = 100_000_000
)

func (o *Options) check() error {
	sizes := make([]int, len(o.FlowBytes))
	for i, n := range o.FlowBytes {
		sizes[i] = int(n)
	}
	if n := len(sizes); n == 0 || n > maxSizes {
		return option.Errorf("flow_bytes", "has %d values; it must have 1 to %d", n, maxSizes)
	}
	err := errors.Join(
		option.EachOnce("flow_bytes", sizes, 1, maxFlow),
		option.Between("repetitions", o.Repetitions, minRepetitions, 1000),
		option.Between("flow_timeout", o.FlowTimeout, time.Second, tcptraffic.MaxIdle),
		option.Between("send_buffer_bytes", o.SendBuffer, 0, tcpsocket.MaxBuffer),
		option.Between("receive_buffer_bytes", o.ReceiveBuffer, 0, tcpsocket.MaxBuffer),
	)
	if err != nil {
		return err
	}
	if o.CongestionControl == "" {
		return nil
	}
	return tcptraffic.CheckName("congestion_control", o.CongestionControl)
}

// group is the flows of one size in one direction.
type group struct {
	direction sample.Direction
	bytes     int64
}

func (o *Options) groups(directions []sample.Direction) (all []group) {
	for _, d := range directions {
		for _, n := range o.FlowBytes {
			all = append(all, group{d, int64(n)})
		}
	}
	return all
}

// most returns the most IP bytes of a flow. Small segments have larger headers than payload.
func most(payload int64) int64 { return 2*payload + 64<<10 }

// longestMessage limits the size of each write.
const longestMessage = 128 << 10

// plan returns the transfer of a flow.
func (o *Options) plan(g group) tcptraffic.Plan {
	return tcptraffic.Plan{
		Direction: g.direction, Duration: o.FlowTimeout, Bytes: g.bytes, Most: most(g.bytes), Idle: o.FlowTimeout, Interval: o.FlowTimeout, Short: true,
		Flows: []tcptraffic.Flow{{MessageBytes: int(min(g.bytes, longestMessage)), Options: tcpsocket.Options{
			SendBuffer: int(o.SendBuffer), ReceiveBuffer: int(o.ReceiveBuffer), CongestionControl: o.CongestionControl, NoDelay: true,
		}}},
	}
}
