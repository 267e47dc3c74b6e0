package tcpshort

import (
	"time"

	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/exporter/net/tcpsocket"
)

// Options are the probe's own keys in the configuration, beside those of loadtest.Options. Describe has their meanings, defaults and
// bounds.
type Options struct {
	FlowBytes         []option.Bytes `yaml:"flow_bytes"`
	Repetitions       int            `yaml:"repetitions"`
	FlowTimeout       time.Duration  `yaml:"flow_timeout"`
	CongestionControl string         `yaml:"congestion_control"`
	SendBuffer        option.Bytes   `yaml:"send_buffer_bytes"`
	ReceiveBuffer     option.Bytes   `yaml:"receive_buffer_bytes"`
	Seed              uint64         `yaml:"seed"`
}

// Describe returns the descriptions of the probe's own keys.
func (o *Options) Describe() []option.Description {
	return []option.Description{
		option.Numbers(&o.FlowBytes, []option.Bytes{10_000, 100_000, 1_000_000}, 1, maxFlow, "Payload of the flows.").Count(1, maxSizes),
		option.Number(&o.Repetitions, 20, minRepetitions, 1000, "Number of flows of each size in each direction."),
		option.Number(&o.FlowTimeout, 30*time.Second, time.Second, tcptraffic.MaxIdle,
			"Limit of a flow's time. A flow that takes longer is unfinished, and counts as longer than all others."),
		tcptraffic.DescribeCongestionControl(&o.CongestionControl),
		tcptraffic.DescribeBuffer(&o.SendBuffer, "Send"),
		tcptraffic.DescribeBuffer(&o.ReceiveBuffer, "Receive"),
		loadtest.DescribeSeed(&o.Seed, "flows"),
	}
}

// DefaultOptions are the options of an empty configuration.
func DefaultOptions() Options { return option.Defaults[Options]() }

// maxSizes limits the series of a path, and maxFlow the time and the data of a flow. The median of fewer than
// minRepetitions flows has no interval (estimate/tcp).
const (
	minRepetitions = 8

	maxSizes = 10
	maxFlow  = 100_000_000
)

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
