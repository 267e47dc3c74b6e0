package metric

// TCP. All values are of the last completed run, and those of the sending end are from its kernel (TCP_INFO).
var (
	TCPThroughput = family(Desc{
		Name: "oneway_tcp_throughput_bytes_per_second", Kind: Gauge, Slim: true, Labels: perDirection,
		Help:   "Payload bytes per second that arrived over all flows, each byte once, without the omitted first part. Unlike other rates it counts no headers.",
		Absent: "Before the first completed run.",
		Source: "RFC 6349 section 4.1; Woo 2010 figure 6.5; Halepovic 2008 figure 4",
	})
	TCPLinkRate = family(Desc{
		Name: "oneway_tcp_link_rate_bytes_per_second", Kind: Gauge, Labels: perDirection,
		Help:   "Configured rate of the link (link_rate), in IP bytes per second, header included: a line beside the throughput, which counts payload.",
		Absent: "Before the first completed run, and without link_rate for the direction.",
		Source: "RFC 6349 section 3.3",
	})
	TCPModel = family(Desc{
		Name: "oneway_tcp_model_throughput_bytes_per_second", Kind: Gauge, Labels: []string{Path, Probe, Direction, ModelL},
		Help:   "Payload bytes per second of all flows that a model predicts from the window, round-trip time, timeout and retransmissions of the last run.",
		Values: tcpModels,
		Absent: "Before the first completed run, and where a condition of the model is unknown; mathis: in runs without a retransmission.",
		Source: "Halepovic 2008 sections 4.5 and 5.2, figures 14 and 16; Mathis et al. 1997; Padhye et al. 1998",
	})
	TCPRTT = family(Desc{
		Name: "oneway_tcp_rtt_seconds", Kind: Gauge, Labels: perQuantile,
		Help:   "Quantile (0.25, 0.5, 0.75) of the sender's smoothed round-trip time while it sent, in seconds, over all flows and samples after the omitted first part.",
		Absent: "Before the first completed run, and where a run was too short for a sample.",
		Source: "RFC 6298 section 2; Halepovic 2008 figures 5 and 6",
	})
	TCPRTTMin = family(Desc{
		Name: "oneway_tcp_rtt_min_seconds", Kind: Gauge, Labels: perDirection, Source: "RFC 6349 section 3.2; Linux tcp_info, tcpi_min_rtt",
		Help:   "Least round-trip time of the last run, in seconds.",
		Absent: "Before the first completed run.",
	})
	TCPRetransmitted = family(Desc{
		Name: "oneway_tcp_retransmitted_ratio", Kind: Gauge, Slim: true, Labels: perDirection,
		Help:   "Share of the payload bytes sent in the last run that were retransmissions.",
		Absent: "Before the first completed run.",
		Source: "RFC 6349 section 4.2; Halepovic 2008 figure 7 and table 2",
	})
	TCPTimeouts = family(Desc{
		Name: "oneway_tcp_retransmission_timeouts_total", Kind: Counter, Labels: perDirection, Source: "RFC 6298 section 5; Linux tcp_info, tcpi_total_rto",
		Help:   "Expired retransmission timeouts of the sender, of all completed runs.",
		Absent: "Before the first completed run, and where the sender's kernel is older than 6.7.",
	})
	TCPLimited = family(Desc{
		Name: "oneway_tcp_limited_ratio", Kind: Gauge, Labels: []string{Path, Probe, Direction, StateL},
		Help:   "Share of the last run by what limited the sender.",
		Values: Values{StateL: {"network: the congestion window or the pacing", "receive_window", "send_buffer", "application: nothing to send"}},
		Absent: "Before the first completed run.",
		Source: "Linux tcp_info, tcpi_busy_time, tcpi_rwnd_limited and tcpi_sndbuf_limited",
	})
	TCPConnect = family(Desc{
		Name: "oneway_tcp_connect_seconds", Kind: Gauge, Labels: perDirection,
		Help:   "Median time of the handshakes of the last run, in seconds; the client opens the connections of both directions.",
		Absent: "Before the first completed run.",
		Source: "RFC 9293 section 3.5",
	})
	TCPMarked = family(Desc{
		Name: "oneway_tcp_marked_ratio", Kind: Gauge, Labels: perDirection,
		Help:   "Share of the segments that arrived in the last run whose packets a router has marked (ECN CE).",
		Absent: "Before the first completed run, where the ends did not negotiate ECN, and where the receiver's kernel is older than 6.18.",
		Source: "RFC 3168 section 5; Linux tcp_info, tcpi_received_ce",
	})
)

// Labels of a buffer sweep: sizes as an application sets them, in bytes, or "auto"; and the kernel's name of the algorithm.
const (
	SendBufferL        = "send_buffer_bytes"
	receiveBufferL     = "receive_buffer_bytes"
	congestionControlL = "congestion_control"
)

// tcpModels are the models of estimate/tcp.
var tcpModels = Values{ModelL: {
	"mathis: by losses alone", "padhye: by losses, timeouts and the window",
	"window: the mean outstanding bytes in each round trip", "sawtooth: 0.75 of the largest outstanding bytes in each round trip",
}}

// The buffer sweep: at most 11 series per cell, that is 3 of throughput, 3 of round-trip time, 4 of models, 1 of
// retransmissions.
var (
	perBuffers         = []string{Path, Probe, Direction, SendBufferL, receiveBufferL, congestionControlL}
	perBuffersQuantile = []string{Path, Probe, Direction, SendBufferL, receiveBufferL, congestionControlL, QuantileL}
	perBuffersModel    = []string{Path, Probe, Direction, SendBufferL, receiveBufferL, congestionControlL, ModelL}
	perVariant         = []string{Path, Probe, Direction, congestionControlL}

	TCPSweepThroughput = family(Desc{
		Name: "oneway_tcp_sweep_throughput_bytes_per_second", Kind: Gauge, Labels: perBuffersQuantile,
		Help:   "Payload bytes per second that arrived with these buffers (bytes as an application sets them, or auto), quantile (0.25, 0.5, 0.75) of the repetitions in the last run, without the omitted first part.",
		Absent: "Before the first completed run, and where no measurement of the cell was complete.",
		Source: "RFC 6349 section 4.1; Woo 2010 figures 6.5 and 6.7 (a); Halepovic 2008 figure 4",
	})
	TCPSweepRTT = family(Desc{
		Name: "oneway_tcp_sweep_rtt_seconds", Kind: Gauge, Labels: perBuffersQuantile,
		Help:   "Quantile (0.25, 0.5, 0.75) of the sender's smoothed round-trip time with these buffers, in seconds, median of the repetitions in the last run.",
		Absent: "Where oneway_tcp_sweep_throughput_bytes_per_second is absent.",
		Source: "RFC 6298 section 2; Woo 2010 figure 6.7 (b); Halepovic 2008 figures 5 and 6",
	})
	TCPSweepRetransmitted = family(Desc{
		Name: "oneway_tcp_sweep_retransmitted_ratio", Kind: Gauge, Labels: perBuffers,
		Help:   "Share of the payload bytes sent with these buffers that were retransmissions, median of the repetitions in the last run.",
		Absent: "Where oneway_tcp_sweep_throughput_bytes_per_second is absent.",
		Source: "RFC 6349 section 4.2; Halepovic 2008 figure 7 and table 2",
	})
	TCPSweepModel = family(Desc{
		Name: "oneway_tcp_sweep_model_throughput_bytes_per_second", Kind: Gauge, Labels: perBuffersModel, Values: tcpModels,
		Help:   "Payload bytes per second that a model predicts with these buffers from the window, round-trip time, timeout and retransmissions of each repetition, median of the repetitions in the last run.",
		Absent: "Where oneway_tcp_sweep_throughput_bytes_per_second is absent or a condition of the model is unknown; mathis: without a retransmission.",
		Source: "Halepovic 2008 figures 14 and 16; Mathis et al. 1997 equation 3; Padhye et al. 1998 section 2.3",
	})
	TCPSweepKnee = family(Desc{
		Name: "oneway_tcp_sweep_knee_bytes", Kind: Gauge, Labels: perVariant,
		Help:   "Smallest buffer of the last run whose median throughput reaches 95 % of the best, in bytes: the smaller of both buffers, as the kernel limits them.",
		Absent: "Before the first completed run, where auto-tuning alone reaches it, with fewer than 3 repetitions, and where those of neighboring sizes overlap.",
		Source: "Woo 2010 section 6.3; design",
	})
	TCPSweepBDP = family(Desc{
		Name: "oneway_tcp_sweep_bandwidth_delay_product_bytes", Kind: Gauge, Labels: perVariant,
		Help:   "Best median throughput of the last run times the least round-trip time of all its cells, in payload bytes: what a window needs to fill the path.",
		Absent: "Before the first completed run.",
		Source: "RFC 6349 section 3.3",
	})
)
