package metric

// partL is the label with the part of a two-way run.
const partL = "part"

// Flows that share a path.
var (
	TCPFairness = Family(Desc{
		Name: "oneway_tcp_flow_fairness_ratio", Kind: Gauge, Labels: perDirection,
		Help:   "Jain's index of the mean rates of all flows of the last run: 1 if all are equal, 1/n if one of n flows has all.",
		Absent: "Before the first completed run, and in runs of a single flow.",
		Source: "Halepovic 2008 section 4.4 and figure 13; RFC 5166 section 2.3",
	})
	TCPFlowThroughput = Family(Desc{
		Name: "oneway_tcp_flow_throughput_bytes_per_second", Kind: Gauge, Labels: []string{Path, Probe, Direction, CongestionControlL, QuantileL},
		Help:   "Least (quantile_rank 0), median (0.5) and largest (1) throughput of the flows with this congestion control in the last run, in payload bytes per second.",
		Absent: "Before the first completed run, and in runs of a single flow.",
		Source: "Halepovic 2008 figure 13; RFC 5166 section 2.3",
	})
	TCPTwoWayThroughput = Family(Desc{
		Name: "oneway_tcp_two_way_throughput_bytes_per_second", Kind: Gauge, Labels: []string{Path, Probe, Direction, partL},
		Values: Values{partL: {"before: before the other direction sent", "during: while both directions sent", "after: after the other direction had sent"}},
		Help:   "Mean payload bytes per second of a direction in a part of the last two-way run; the direction that sends in the middle has part during only.",
		Absent: "Before the first completed run, in runs without overlap_duration, and where a part has no whole second.",
		Source: "Halepovic 2008 section 5.3, figure 17 and table 3",
	})
	TCPTwoWayCorrelation = Family(Desc{
		Name: "oneway_tcp_two_way_correlation_ratio", Kind: Gauge, Labels: perProbe,
		Help:   "Correlation coefficient (Pearson), -1..1, of the throughput of both directions in the seconds in which both sent; near -1: one takes what the other loses.",
		Absent: "Before the first completed run, in runs without overlap_duration, and where a direction did not vary or had too few seconds.",
		Source: "Halepovic 2008 section 5.3",
	})
)

// Short flows.
var (
	TCPCompletion = Family(Desc{
		Name: "oneway_tcp_completion_seconds", Kind: Histogram, Labels: []string{Path, Probe, Direction, FlowBytesL}, Buckets: completionBuckets(),
		Help:   "Completion times of short flows of all completed runs, in seconds, from the beginning of the handshake to the arrival of the last byte, as the client of the flow sees it. Flows that did not end are not counted here, but in oneway_tcp_unfinished_flows_total.",
		Absent: "For probes of another type than `tcp_short`.",
		Source: "RFC 5166 section 2.1; RFC 6349 section 4.1",
	})
	TCPCompletionQuantile = Family(Desc{
		Name: "oneway_tcp_completion_quantile_seconds", Kind: Gauge, Labels: []string{Path, Probe, Direction, FlowBytesL, QuantileL},
		Help:   "Quantile (0.5, 0.95) of the completion times of the short flows of the last run, in seconds; a flow that did not end is longer than all others.",
		Absent: "Before the first completed run, and where too few flows ended.",
		Source: "RFC 5166 section 2.1; design",
	})
	TCPUnfinished = Family(Desc{
		Name: "oneway_tcp_unfinished_flows_total", Kind: Counter, Labels: []string{Path, Probe, Direction, FlowBytesL},
		Help:   "Short flows of all completed runs that did not end within their limit of time.",
		Absent: "For probes of another type than `tcp_short`.",
		Source: "design, invariant 2",
	})
)

// FlowBytesL is a configured size of a short flow, in payload bytes.
const FlowBytesL = "flow_bytes"

// completionBuckets range from 10 kB over a LAN to 1 MB over a slow cellular link.
func completionBuckets() []float64 {
	return []float64{0.01, 0.05, 0.1, 0.2, 0.4, 0.8, 1.25, 2.5, 5.5, 20.5}
}
