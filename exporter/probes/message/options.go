package message

import (
	"time"

	"oneway.example/exporter/core/ipheader"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/exporter/net/tcpsocket"
)

// Options are the probe's own keys in the configuration, beside those of loadtest.Options. Describe has their meanings, defaults and
// bounds.
type Options struct {
	MessageBytes      option.Bytes  `yaml:"message_bytes"`
	MessageRate       int           `yaml:"message_rate"`
	Duration          time.Duration `yaml:"duration"`
	CongestionControl string        `yaml:"congestion_control"`
}

// Describe returns the descriptions of the probe's own keys.
func (o *Options) Describe() []option.Description {
	return []option.Description{
		option.Number(&o.MessageBytes, 512, stream.HeaderBytes, maxBytes, "Payload of each message: one IP packet of UDP on most paths."),
		option.Number(&o.MessageRate, 100, 1, 10_000, "Messages per second.").In("messages/s"),
		option.Number(&o.Duration, 10*time.Second, time.Second, 10*time.Minute, "Duration of each transport in each direction."),
		tcptraffic.DescribeCongestionControl(&o.CongestionControl),
	}
}

// DefaultOptions are the options of an empty configuration.
func DefaultOptions() Options { return option.Defaults[Options]() }

const (
	maxBytes = 1500 - ipheader.MaxUDP
	// maxMessages limits the records of a stream.
	maxMessages = 1_000_000
)

func (o *Options) check() error {
	if err := option.Check(o); err != nil {
		return err
	}
	if n := o.messages(); n > maxMessages {
		return option.Errorf("message_rate", "times %s is %d messages; at most %d are allowed", option.Key("duration"), n, maxMessages)
	}
	return nil
}

func (o *Options) interval() time.Duration { return time.Second / time.Duration(o.MessageRate) }

// messages returns their number in one direction with one transport.
func (o *Options) messages() int { return int(o.Duration / o.interval()) }

// headersTCP are the most IP bytes of headers of a message over TCP, and of its acknowledgment.
const headersTCP = 2 * (ipheader.IPv6 + ipheader.TCP + ipheader.TCPTimestamps)

// mostTCP returns the most IP bytes of TCP in one direction: each message may take two segments, and half of them may be sent
// again.
func (o *Options) mostTCP() int64 {
	return int64(o.messages())*(int64(o.MessageBytes)+2*headersTCP)*3/2 + 64<<10
}

// most returns the most IP bytes of one direction with all transports.
func (o *Options) most() int64 {
	return int64(o.messages())*(int64(o.MessageBytes)+ipheader.MaxUDP) + 2*o.mostTCP()
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
