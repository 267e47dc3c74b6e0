package message

import (
	"errors"
	"time"

	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/exporter/net/tcpsocket"
)

// Options are the probe's own keys in the configuration; an absent key keeps its default.
// Those of loadtest.Options stand beside them.
type Options struct {
	// MessageBytes is the payload of each message, 32 to 1452: a UDP packet of one IP packet on most paths.
	MessageBytes option.Bytes `yaml:"message_bytes"`
	// MessageRate is the number of messages a second, 1 to 10,000.
	MessageRate int `yaml:"message_rate"`
	// Duration of each transport in each direction, 1 s to 10 min.
	Duration time.Duration `yaml:"duration"`
	// CongestionControl is a name of the sending host's kernel; empty: its default.
	CongestionControl string `yaml:"congestion_control"`
}

// DefaultOptions are 100 messages of 512 bytes a second, for 10 s.
func DefaultOptions() Options {
	return Options{MessageBytes: 512, MessageRate: 100, Duration: 10 * time.Second}
}

const (
	maxBytes = 1500 - 48
	// maxMessages limits the records of a stream.
	maxMessages = 1_000_000
)

func (o *Options) check() error {
	err := errors.Join(
		option.Between("message_bytes", o.MessageBytes, stream.HeaderBytes, maxBytes),
		option.Between("message_rate", o.MessageRate, 1, 10_000),
		option.Between("duration", o.Duration, time.Second, 10*time.Minute),
	)
	if err != nil {
		return err
	}
	if n := o.messages(); n > maxMessages {
		return option.Errorf("message_rate", "times duration is %d messages; at most %d are allowed", n, maxMessages)
	}
	if o.CongestionControl == "" {
		return nil
	}
	return tcptraffic.CheckName("congestion_control", o.CongestionControl)
}

func (o *Options) interval() time.Duration { return time.Second / time.Duration(o.MessageRate) }

// messages returns their number in one direction with one transport.
func (o *Options) messages() int { return int(o.Duration / o.interval()) }

// Most IP bytes of headers of a message: UDP over IPv6, and TCP over IPv6 with timestamps, in each direction for the
// acknowledgment.
const (
	headersUDP = 48
	headersTCP = 2 * 72
)

// mostTCP returns the most IP bytes of TCP in one direction: each message may take two segments, and half of them may be sent
// again.
func (o *Options) mostTCP() int64 {
	return int64(o.messages())*(int64(o.MessageBytes)+2*headersTCP)*3/2 + 64<<10
}

// most returns the most IP bytes of one direction with all transports.
func (o *Options) most() int64 {
	return int64(o.messages())*(int64(o.MessageBytes)+headersUDP) + 2*o.mostTCP()
}

// segment returns the stream of UDP packets.
func (o *Options) segment() stream.Segment {
	return stream.Segment{PayloadBytes: int(o.MessageBytes), Interval: o.interval(), Burst: 1, Bursts: o.messages()}
}

// Times of TCP: of samples, and without progress.
const (
	sampleInterval = 100 * time.Millisecond
	idleTimeout    = 10 * time.Second
)

// plan returns the TCP transfer.
func (o *Options) plan(d sample.Direction, noDelay bool) tcptraffic.Plan {
	return tcptraffic.Plan{
		Direction: d, Duration: time.Duration(o.messages()) * o.interval(), Most: o.mostTCP(), Interval: sampleInterval, Idle: idleTimeout,
		Flows: []tcptraffic.Flow{{
			MessageBytes: int(o.MessageBytes), MessageInterval: o.interval(),
			Options: tcpsocket.Options{CongestionControl: o.CongestionControl, NoDelay: noDelay},
		}},
	}
}
