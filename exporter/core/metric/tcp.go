package metric

// TCP. All values are of the last completed run, and those of the sending end are from its kernel (TCP_INFO).
var (
	TCPThroughput = Family(Desc{
		Name: "oneway_tcp_throughput_bytes_per_second", Kind: Gauge, Slim: true, Labels: perDirection,
		Help:   "Payload bytes per second that arrived in order over all flows, each byte once, without the omitted first part. Bytes behind a lost one count when it arrives: after losses in the omitted part the value may exceed the rate of the link, by at most a window of data in the time. Unlike other rates it counts no headers.",
		Absent: "Before the first completed run.",
		Source: "RFC 6349 section 4.1; Woo 2010 figure 6.5; Halepovic 2008 figure 4",
	})
	TCPRunThroughput = Family(Desc{
		Name: "oneway_tcp_run_throughput_bytes_per_second", Kind: Histogram, NativeOnly: true, Fine: true, Slim: true, Labels: perDirection,
		Help:   "Values of oneway_tcp_throughput_bytes_per_second, one of each completed run: a run counts once, however long its gauge stands. Native buckets of 2.2 %.",
		Absent: "In a scrape that accepts no native histograms.",
		Source: "WPI 2006 figure 2; Halepovic 2008 figure 15",
	})
	TCPLinkRate = Family(Desc{
		Name: "oneway_tcp_link_rate_bytes_per_second", Kind: Gauge, Labels: perDirection,
		Help:   "Configured rate of the link (link_rate), in IP bytes per second, header included: a line beside the throughput, which counts payload.",
		Absent: "Before the first completed run, and without link_rate for the direction.",
		Source: "RFC 6349 section 3.3",
	})
	TCPModel = Family(Desc{
		Name: "oneway_tcp_model_throughput_bytes_per_second", Kind: Gauge, Labels: []string{Path, Probe, Direction, ModelL},
		Help: "Payload bytes per second of all flows that a model predicts from the window, round-trip time, timeout and retransmissions of the last run.",
		Values: Values{ModelL: {
			"mathis: by losses alone", "padhye: by losses, timeouts and the window",
			"window: the mean outstanding bytes in each round trip", "sawtooth: 0.75 of the largest outstanding bytes in each round trip",
		}},
		Absent: "Before the first completed run, and where a condition of the model is unknown; mathis: in runs without a retransmission.",
		Source: "Halepovic 2008 sections 4.5 and 5.2, figures 14 and 16; Mathis et al. 1997; Padhye et al. 1998",
	})
	TCPRTT = Family(Desc{
		Name: "oneway_tcp_rtt_seconds", Kind: Gauge, Labels: perQuantile,
		Help:   "Quantile (0.25, 0.5, 0.75) of the sender's smoothed round-trip time while it sent, in seconds, over all flows and samples after the omitted first part.",
		Absent: "Before the first completed run, and where a run was too short for a sample.",
		Source: "RFC 6298 section 2; Halepovic 2008 figures 5 and 6",
	})
	TCPRTTMin = Family(Desc{
		Name: "oneway_tcp_rtt_min_seconds", Kind: Gauge, Labels: perDirection, Source: "RFC 6349 section 3.2; Linux tcp_info, tcpi_min_rtt",
		Help:   "Least round-trip time of the last run, in seconds.",
		Absent: "Before the first completed run.",
	})
	TCPRetransmitted = Family(Desc{
		Name: "oneway_tcp_retransmitted_ratio", Kind: Gauge, Slim: true, Labels: perDirection,
		Help:   "Share of the payload bytes sent in the last run that were retransmissions.",
		Absent: "Before the first completed run.",
		Source: "RFC 6349 section 4.2; Halepovic 2008 figure 7 and table 2",
	})
	TCPTimeouts = Family(Desc{
		Name: "oneway_tcp_retransmission_timeouts_total", Kind: Counter, Labels: perDirection, Source: "RFC 6298 section 5; Linux tcp_info, tcpi_total_rto",
		Help:   "Expired retransmission timeouts of the sender, of all completed runs.",
		Absent: "Before the first completed run, which tells whether the sender's kernel counts them: since 6.7.",
	})
	TCPLimited = Family(Desc{
		Name: "oneway_tcp_limited_ratio", Kind: Gauge, Labels: []string{Path, Probe, Direction, StateL},
		Help:   "Share of the last run by what limited the sender.",
		Values: Values{StateL: {"network: the congestion window or the pacing", "receive_window", "send_buffer", "application: nothing to send"}},
		Absent: "Before the first completed run.",
		Source: "Linux tcp_info, tcpi_busy_time, tcpi_rwnd_limited and tcpi_sndbuf_limited",
	})
	TCPConnect = Family(Desc{
		Name: "oneway_tcp_connect_seconds", Kind: Gauge, Labels: perDirection,
		Help:   "Median time of the handshakes of the last run, in seconds; the client opens the connections of both directions.",
		Absent: "Before the first completed run.",
		Source: "RFC 9293 section 3.5",
	})
	TCPMarked = Family(Desc{
		Name: "oneway_tcp_marked_ratio", Kind: Gauge, Labels: perDirection,
		Help:   "Share of the segments that arrived in the last run whose packets a router has marked (ECN CE).",
		Absent: "Before the first completed run, where the ends did not negotiate ECN, and where the receiver's kernel is older than 6.18.",
		Source: "RFC 3168 section 5; Linux tcp_info, tcpi_received_ce",
	})
)

// SendBufferL is the label of a buffer sweep with the size that an application sets, in bytes, or "auto"; CongestionControlL has the
// kernel's name of the algorithm.
const (
	SendBufferL        = "send_buffer_bytes"
	CongestionControlL = "congestion_control"
)

// tcpGroup has the families of TitleTCP.
func tcpGroup() Group {
	return Group{
		Title: TitleTCP, Experimental: true,
		Descs: []*Desc{
			TCPAckCompressed, TCPAckInterarrival, TCPCompletionQuantile, TCPCompletion, TCPConnect, TCPDelayErrorBound,
			TCPDelayQuantile, TCPDelayQuantileBound, TCPDelaySamples, TCPDelayWithheld, TCPDelay, TCPFairness, TCPFlowThroughput, TCPHostQueue, TCPLimited, TCPLinkRate,
			TCPMarked, TCPModel, TCPRecovery, TCPTimeouts, TCPRetransmitted, TCPRTTMin, TCPRTT, TCPRunThroughput, TCPSplit, TCPSplitLead,
			TCPSplitUndecided, TCPThroughput, TCPTwoWayCorrelation, TCPTwoWayThroughput, TCPUDPRoundTrip, TCPUnfinished,
		},
		Measurements: []Measurement{
			{Name: "oneway_tcp", Labels: perDirection},
			{Name: "oneway_tcp_round_trip", Labels: perProbe},
			{Name: "oneway_tcp_state", Labels: []string{Path, Probe, Direction, StateL}},
			{Name: "oneway_tcp_result", Labels: []string{Path, Probe, Direction, ResultL}},
			{Name: "oneway_tcp_reason", Labels: []string{Path, Probe, Direction, ReasonL}},
			{Name: "oneway_tcp_model", Labels: []string{Path, Probe, Direction, ModelL}},
			{Name: "oneway_tcp_two_way", Labels: []string{Path, Probe, Direction, partL}},
			{Name: "oneway_tcp_short", Labels: []string{Path, Probe, Direction, FlowBytesL}},
			{Name: "oneway_tcp_congestion_control", Labels: []string{Path, Probe, Direction, CongestionControlL}},
		},
	}
}
