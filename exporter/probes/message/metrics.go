package message

import "oneway.example/exporter/core/metric"

const (
	messageBytesL = "message_bytes"
	transportL    = "transport"
)

var (
	perMessage      = []string{metric.Path, metric.Probe, metric.Direction, messageBytesL, transportL}
	transportValues = metric.Values{transportL: {"udp", "tcp: with Nagle's algorithm", "tcp_no_delay: without Nagle's algorithm"}}
)

// The families of the test.
var (
	ThroughputDesc = metric.Family(metric.Desc{
		Name: "oneway_message_throughput_bytes_per_second", Kind: metric.Gauge, Labels: perMessage, Values: transportValues,
		Help:   "Payload bytes per second that arrived in the last run of messages of one size at one rate, by transport.",
		Absent: "Before the first completed run, and where the part of this transport did not complete.",
		Source: "D-ITG report section 2.2",
	})
	OfferedDesc = metric.Family(metric.Desc{
		Name: "oneway_message_offered_bytes_per_second", Kind: metric.Gauge, Labels: perMessage, Values: transportValues,
		Help:   "Payload bytes per second that the sender gave to the transport in the last run; TCP holds a sender back, UDP does not.",
		Absent: "Where oneway_message_throughput_bytes_per_second is absent.",
		Source: "D-ITG report section 2.2",
	})
	LossDesc = metric.Family(metric.Desc{
		Name: "oneway_message_loss_ratio", Kind: metric.Gauge, Labels: perMessage, Values: transportValues,
		Help:   "Share of the last run's UDP packets that were lost, 0..1.",
		Absent: "For TCP, and where oneway_message_throughput_bytes_per_second is absent.",
		Source: "RFC 7680 section 4.1; D-ITG report section 2.2",
	})
	RetransmittedDesc = metric.Family(metric.Desc{
		Name: "oneway_message_retransmitted_ratio", Kind: metric.Gauge, Labels: perMessage, Values: transportValues,
		Help:   "Share of the TCP payload bytes sent in the last run that were retransmissions, 0..1.",
		Absent: "For UDP, and where oneway_message_throughput_bytes_per_second is absent.",
		Source: "RFC 6349 section 4.2",
	})
)

// families are the groups of the families.
func families() []metric.Group {
	return []metric.Group{{
		Title:        metric.TitleTCP,
		Descs:        []*metric.Desc{LossDesc, OfferedDesc, RetransmittedDesc, ThroughputDesc},
		Measurements: []metric.Measurement{{Name: "oneway_message", Labels: perMessage}},
	}}
}
