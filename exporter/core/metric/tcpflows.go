package metric

// partL is the label with the part of a two-way run.
const partL = "part"

// Flows that share a path.
var (
	TCPFairness = family(Desc{
		Name: "oneway_tcp_flow_fairness_ratio", Kind: Gauge, Labels: perDirection,
		Help:   "Jain's index of the mean rates of all flows of the last run: 1 if all are equal, 1/n if one of n flows has all.",
		Absent: "Before the first completed run, and in runs of a single flow.",
		Source: "Halepovic 2008 section 4.4 and figure 13; RFC 5166 section 2.3",
	})
	TCPFlowThroughput = family(Desc{
		Name: "oneway_tcp_flow_throughput_bytes_per_second", Kind: Gauge, Labels: []string{Path, Probe, Direction, congestionControlL, QuantileL},
		Help:   "Least (quantile_rank 0), median (0.5) and largest (1) throughput of the flows with this congestion control in the last run, in payload bytes per second.",
		Absent: "Before the first completed run, and in runs of a single flow.",
		Source: "Halepovic 2008 figure 13; RFC 5166 section 2.3",
	})
	TCPTwoWayThroughput = family(Desc{
		Name: "oneway_tcp_two_way_throughput_bytes_per_second", Kind: Gauge, Labels: []string{Path, Probe, Direction, partL},
		Values: Values{partL: {"before: before the other direction sent", "during: while both directions sent", "after: after the other direction had sent"}},
		Help:   "Mean payload bytes per second of a direction in a part of the last two-way run; the direction that sends in the middle has part during only.",
		Absent: "Before the first completed run, in runs without overlap_duration, and where a part has no whole second.",
		Source: "Halepovic 2008 section 5.3, figure 17 and table 3",
	})
	TCPTwoWayCorrelation = family(Desc{
		Name: "oneway_tcp_two_way_correlation_ratio", Kind: Gauge, Labels: perProbe,
		Help:   "Correlation coefficient (Pearson), -1..1, of the throughput of both directions in the seconds in which both sent; near -1: one takes what the other loses.",
		Absent: "Before the first completed run, in runs without overlap_duration, and where a direction did not vary or had too few seconds.",
		Source: "Halepovic 2008 section 5.3",
	})
)

// Short flows.
var (
	TCPCompletion = family(Desc{
		Name: "oneway_tcp_completion_seconds", Kind: Histogram, Labels: []string{Path, Probe, Direction, flowBytesL}, Buckets: completionBuckets(),
		Help:   "Completion times of short flows of all completed runs, in seconds, from the beginning of the handshake to the arrival of the last byte, as the client of the flow sees it.",
		Absent: "Before the first completed run.",
		Source: "RFC 5166 section 2.1; RFC 6349 section 4.1",
	})
	TCPCompletionQuantile = family(Desc{
		Name: "oneway_tcp_completion_quantile_seconds", Kind: Gauge, Labels: []string{Path, Probe, Direction, flowBytesL, QuantileL},
		Help:   "Quantile (0.5, 0.95) of the completion times of the short flows of the last run, in seconds; a flow that did not end is longer than all others.",
		Absent: "Before the first completed run, and where too few flows ended.",
		Source: "RFC 5166 section 2.1; design",
	})
	TCPUnfinished = family(Desc{
		Name: "oneway_tcp_unfinished_flows_total", Kind: Counter, Labels: []string{Path, Probe, Direction, flowBytesL},
		Help:   "Short flows of all completed runs that did not end within their limit of time.",
		Absent: "Before the first completed run.",
		Source: "design, invariant 2",
	})
	MessageThroughput = family(Desc{
		Name: "oneway_message_throughput_bytes_per_second", Kind: Gauge, Labels: perMessage, Values: transports,
		Help:   "Payload bytes per second that arrived in the last run of messages of one size at one rate, by transport.",
		Absent: "Before the first completed run, and where the part of this transport did not complete.",
		Source: "D-ITG report section 2.2",
	})
	MessageOffered = family(Desc{
		Name: "oneway_message_offered_bytes_per_second", Kind: Gauge, Labels: perMessage, Values: transports,
		Help:   "Payload bytes per second that the sender gave to the transport in the last run; TCP holds a sender back, UDP does not.",
		Absent: "Where oneway_message_throughput_bytes_per_second is absent.",
		Source: "D-ITG report section 2.2",
	})
	MessageLoss = family(Desc{
		Name: "oneway_message_loss_ratio", Kind: Gauge, Labels: perMessage, Values: transports,
		Help:   "Share of the last run's UDP packets that were lost, 0..1.",
		Absent: "For TCP, and where oneway_message_throughput_bytes_per_second is absent.",
		Source: "RFC 7680 section 4.1; D-ITG report section 2.2",
	})
	MessageRetransmitted = family(Desc{
		Name: "oneway_message_retransmitted_ratio", Kind: Gauge, Labels: perMessage, Values: transports,
		Help:   "Share of the TCP payload bytes sent in the last run that were retransmissions, 0..1.",
		Absent: "For UDP, and where oneway_message_throughput_bytes_per_second is absent.",
		Source: "RFC 6349 section 4.2",
	})
)

const (
	flowBytesL    = "flow_bytes"
	messageBytesL = "message_bytes"
	transportL    = "transport"
)

var (
	perMessage = []string{Path, Probe, Direction, messageBytesL, transportL}
	transports = Values{transportL: {"udp", "tcp: with Nagle's algorithm", "tcp_no_delay: without Nagle's algorithm"}}
)

// completionBuckets range from 10 kB over a LAN to 1 MB over a slow cellular link.
func completionBuckets() []float64 {
	return []float64{0.01, 0.05, 0.1, 0.2, 0.4, 0.8, 1.25, 2.5, 5.5, 20.5}
}
