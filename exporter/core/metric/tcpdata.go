package metric

// Delay of TCP data, by timestamps of the kernels of both ends.
var (
	// splitReasons are those of estimate/tcpdelay.
	splitReasons = Values{ReasonL: {
		"no_stamps: an end has no timestamps of the stream, or stamps are off",
		"clocks: the clocks of the ends are not synchronized, so that no early acknowledgment can be seen",
		"few_samples: too few sampled bytes have an acknowledgment and an arrival",
		"no_timestamps: the SYN that arrived is not known, or the connection has no timestamp option",
		"no_udp: the SYN was rewritten, and UDP gave no round trip to compare with",
		"contradiction: the SYN, the acknowledgments and the round trips of TCP and of UDP say different things",
	}}

	TCPDelay = Family(Desc{
		Name: "oneway_tcp_delay_seconds", Kind: Histogram, Labels: perDirection, Buckets: loadedBuckets(),
		Help:   "One-way delay of sampled bytes of TCP streams, in seconds, of all completed runs from their first byte on, slow start included, which the throughput leaves out (omit): from the time at which the sender's host sent the byte until the receiver's host received it, by timestamps of both kernels. Only bytes that were sent once, that arrived in order, and whose delay has a bound, at the same distance in all parts of a stream. The other bytes, which were mostly sent after a loss and while the queue was full, are missing: see oneway_tcp_delay_withheld_ratio.",
		Absent: "In runs without stamps, and in runs whose oneway_tcp_delay_withheld_ratio exceeds 0.3.",
		Source: "RFC 7679 section 3; Linux SO_TIMESTAMPING; Woo 2010 figure 5.4",
	})
	TCPDelayQuantile = Family(Desc{
		Name: "oneway_tcp_delay_quantile_seconds", Kind: Gauge, Labels: perQuantile,
		Help:   "Quantile (0.05, 0.5, 0.95, 0.99) of the one-way delays of sampled bytes of the last run, slow start included, that were sent once, in seconds: the middle of the interval from the quantile of all lower ends to the quantile of all upper ends. Withheld bytes have the interval that the bytes around them leave.",
		Absent: "Before the first completed run with stamps, where no delay has a bound, or too few have one for the quantile, where the withheld bytes leave no upper end, and where oneway_tcp_delay_withheld_ratio exceeds 0.3.",
		Source: "RFC 7679 section 5.1; Woo 2010 figure 5.4",
	})
	TCPDelayQuantileBound = Family(Desc{
		Name: "oneway_tcp_delay_quantile_error_bound_seconds", Kind: Gauge, Labels: perQuantile,
		Help:   "Error bound of oneway_tcp_delay_quantile_seconds, in seconds: both clocks, timestamps, how much earlier a byte may have arrived than the data that the kernel joined it with, the intervals of withheld bytes, and that the samples are one byte in some 32 KiB.",
		Absent: "Where oneway_tcp_delay_quantile_seconds is absent.",
		Source: "RFC 7679 section 3.7; design, invariant 1",
	})
	TCPDelayWithheld = Family(Desc{
		Name: "oneway_tcp_delay_withheld_ratio", Kind: Gauge, Labels: perDirection,
		Help:   "Share of the sampled bytes of the last run that were sent once, whose delay is only known as an interval: data arrived out of order about then, a timestamp is missing, or the byte was on its way at the end of the run.",
		Absent: "Before the first completed run with stamps, and where no delay has a bound.",
		Source: "design, invariant 2",
	})
	TCPDelayErrorBound = Family(Desc{
		Name: "oneway_tcp_delay_error_bound_seconds", Kind: Gauge, Labels: perDirection,
		Help:   "Largest error bound of the one-way delays of the last run, in seconds: both clocks, timestamps, and how much earlier a byte may have arrived than the data that the kernel joined it with.",
		Absent: "Before the first completed run with stamps, and where no delay has a bound.",
		Source: "RFC 7679 section 3.7; design, invariant 1",
	})
	TCPHostQueue = Family(Desc{
		Name: "oneway_tcp_host_queue_seconds", Kind: Gauge, Labels: perQuantile,
		Help:   "Quantile (0.5, 0.95, 0.99) of the time that sampled bytes of the last run waited in the sending host's packet scheduler before their first transmission, in seconds. It is not a part of oneway_tcp_delay_seconds.",
		Absent: "Before the first completed run with stamps, and where too few bytes have both timestamps.",
		Source: "Linux SO_TIMESTAMPING, SCM_TSTAMP_SCHED and SCM_TSTAMP_SND",
	})
	TCPRecovery = Family(Desc{
		Name: "oneway_tcp_recovery_seconds", Kind: Gauge, Labels: perQuantile,
		Help:   "Quantile (0.5, 0.95) of the time from the first transmission of retransmitted sampled bytes of the last run until their arrival, in seconds.",
		Absent: "Before the first completed run with stamps, where too few sampled bytes were retransmitted, and where the quantile is among those that had not arrived at the end.",
		Source: "RFC 9293 section 3.8.1; Halepovic 2008 section 4.3",
	})
	TCPDelaySamples = Family(Desc{
		Name: "oneway_tcp_delay_samples_total", Kind: Counter, Labels: []string{Path, Probe, Direction, ResultL},
		Help:   "Sampled bytes of TCP streams of all completed runs, at the same distance in all parts of a stream, by what is known of their delay.",
		Absent: "In runs without stamps.",
		Values: Values{ResultL: {
			"delay: it is known, with its bound",
			"retransmitted: the byte was sent more than once, so that its time is that of a recovery",
			"reordered: data arrived out of order about then, and the kernel may have joined the byte with data that arrived at another time",
			"no_stamp: a timestamp of either end is missing, also of bytes on their way at the end of the run",
			"clocks: it has no bound, since a clock is not synchronized",
		}},
		Source: "design, invariant 2",
	})
	TCPAckInterarrival = Family(Desc{
		Name: "oneway_tcp_ack_interarrival_seconds", Kind: Histogram, Labels: perDirection, Buckets: ackBuckets(),
		Help:   "Times between acknowledgments that arrived at the sender of this direction and advanced, in seconds, in bursts of consecutive sampled segments, of all completed runs.",
		Absent: "In runs without stamps.",
		Source: "Halepovic 2008 section 5.3 and figure 18; Linux SO_TIMESTAMPING, SCM_TSTAMP_ACK",
	})
	TCPAckCompressed = Family(Desc{
		Name: "oneway_tcp_ack_compressed_ratio", Kind: Gauge, Labels: perDirection,
		Help:   "Share of the pairs of acknowledgments of the last run's bursts that arrived compressed: in less than 0.75 of the time between the arrivals of the data that they acknowledge. A pair counts only if 0.75 of that time exceeds the error of the comparison, which is at least 0.2 ms.",
		Absent: "Before the first completed run with stamps, and where fewer than 20 pairs count: their data's arrivals are not known, or are too close, as above some 120 Mb/s.",
		Source: "Paxson 1997 section 6.1; Mogul 1992; Halepovic 2008 section 5.3",
	})
	TCPSplit = Family(Desc{
		Name: "oneway_tcp_split_detected", Kind: Gauge, Slim: true, Labels: perDirection,
		Help:   "1 if a host between both ends ended the TCP connections of the last run and opened others (split TCP: a proxy), 0 if none did.",
		Absent: "Before the first completed run with stamps, and where the run cannot tell: see oneway_tcp_split_undecided.",
		Source: "RFC 3135 section 2.4; Woo 2010 section 6.2; design",
	})
	TCPSplitUndecided = Family(Desc{
		Name: "oneway_tcp_split_undecided", Kind: Gauge, Labels: []string{Path, Probe, Direction, ReasonL}, Values: splitReasons,
		Help:   "Always 1: the last run cannot tell whether its connections were split, for this reason.",
		Absent: "Before the first completed run with stamps, and where oneway_tcp_split_detected is known.",
		Source: "design, invariant 2",
	})
	TCPSplitLead = Family(Desc{
		Name: "oneway_tcp_split_lead_seconds", Kind: Gauge, Labels: perDirection,
		Help:   "Largest time of the last run by which the acknowledgment of a byte came to its sender before its receiver had the byte, in seconds, beyond the error bound of both clocks: the least that a proxy was ahead.",
		Absent: "Before the first completed run with stamps, and without such an acknowledgment.",
		Source: "RFC 3135 section 2.4; design",
	})
	TCPUDPRoundTrip = Family(Desc{
		Name: "oneway_tcp_udp_round_trip_seconds", Kind: Gauge, Labels: perProbe,
		Help:   "Sum of the least one-way delays of small UDP packets in both directions over the idle path before the last run's first transfer, in seconds. The error of the clocks is not in it. A connection end to end has no shorter round trip.",
		Absent: "Before the first completed run with stamps, and where UDP packets did not pass in both directions.",
		Source: "RFC 2681 section 2; RFC 7679 section 3",
	})
)

// ackBuckets range from the times of segments on a fast link to those of a stalled one.
func ackBuckets() []float64 {
	return []float64{0.00001, 0.00002, 0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.25}
}
