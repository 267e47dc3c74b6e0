package metric

// Delay.
var (
	// Delay is oneway_delay_seconds.
	Delay = delayGroup.add(Desc{
		Name: "oneway_delay_seconds", Kind: Histogram, Slim: true, Labels: perDirection, Buckets: delayBuckets(), Source: "RFC 7679 section 3",
		Help: "One-way delay of received packets, in seconds, between kernel stamps; only those whose clocks are trusted. One that took longer than the waiting time is lost, and not here.",
	})
	// DelayMin is oneway_delay_min_seconds.
	DelayMin = delayGroup.add(Desc{
		Name: "oneway_delay_min_seconds", Kind: Gauge, Labels: perDirection, Source: "RFC 7679 section 5.3",
		Help:   "Smallest one-way delay of the last window, in seconds.",
		Absent: "In a window without a valid delay.",
	})
	// DelayMax is oneway_delay_max_seconds.
	DelayMax = delayGroup.add(Desc{
		Name: "oneway_delay_max_seconds", Kind: Gauge, Labels: perDirection, Source: "RFC 7679 section 3",
		Help:   "Largest one-way delay of the last window, in seconds.",
		Absent: "In a window without a valid delay.",
	})
	// DelayQuantile is oneway_delay_quantile_seconds.
	DelayQuantile = delayGroup.add(Desc{
		Name: "oneway_delay_quantile_seconds", Kind: Gauge, Slim: true, Labels: []string{Path, Probe, Direction, QuantileL},
		Help:   "Quantiles (0.5, 0.95, 0.99) of the one-way delay over the packets decided in the last window, lost ones counted as infinite, in seconds: order statistics. Packets whose replies were lost, so that their forward delay is not known, are taken to be spread as the others, overdue ones among them.",
		Absent: "In a window without a valid delay, in which so many packets were lost that the quantile is infinite, or in which round trips were lost and it is not known in which direction.",
		Source: "RFC 7679 section 5.1",
	})
	// DelayErrorBound is oneway_delay_error_bound_seconds.
	DelayErrorBound = delayGroup.add(Desc{
		Name: "oneway_delay_error_bound_seconds", Kind: Gauge, Slim: true, Labels: perDirection, Source: "RFC 7679 section 3.7",
		Help:   "The true smallest delay (of packets that were not held) and the true median of the last window's packets whose delay is known lie within this many seconds of those reported: both clocks' bounds and the stamps' errors. Forward delays of packets whose replies were lost are not known. A single delay may have a wider bound of its own: oneway_delay_tx_uncertain_total and the origins of stamps tell how many.",
		Absent: "In a window without a valid delay.",
	})
	// DelayErrorComponent is oneway_delay_error_component_seconds.
	DelayErrorComponent = delayGroup.add(Desc{
		Name: "oneway_delay_error_component_seconds", Kind: Gauge, Labels: []string{Path, Probe, "component"}, Source: "RFC 7679 section 3.7; decision 4 (exporter/doc/decisions)",
		Help:   "Largest part of the error bounds of the last window's valid delays of both directions, in seconds, by component: local_clock and remote_clock, each clock's error bound (0 if both ends read one clock), and timestamps, the errors of both timestamps. The sum is not below oneway_delay_error_bound_seconds.",
		Absent: "In a window without a valid delay.",
	})
	// DelayTXUncertainty is oneway_delay_tx_uncertain_total.
	DelayTXUncertainty = delayGroup.add(Desc{
		Name: "oneway_delay_tx_uncertain_total", Kind: Counter, Labels: perDirection, Source: "decision 4 (exporter/doc/decisions)",
		Help:   "Delays whose packet the sending host may have held for longer than 25 us after its stamp (a virtual machine that stood still): they may be too large by that.",
		Absent: "Until the first.",
	})
	// StampErrorBound is oneway_stamp_error_bound_seconds.
	StampErrorBound = delayGroup.add(Desc{
		Name: "oneway_stamp_error_bound_seconds", Kind: Gauge, Labels: []string{Path, Probe, "source"},
		Help:   "What the bound of a delay has for a receive stamp of this host's kernel, in seconds. Source calibration: measured on the path's interface; assumed: 25 us and the interrupt moderation that the driver tells (rx-usecs), a limit that was not measured there.",
		Source: "decision 4 (exporter/doc/decisions); RFC 7679 section 3.7.3; ethtool(8)",
	})
	// DelayLowConfidence is oneway_delay_low_confidence_total.
	DelayLowConfidence = delayGroup.add(Desc{
		Name: "oneway_delay_low_confidence_total", Kind: Counter, Labels: perDirection, Source: "RFC 7679 section 3.7",
		Help:   "Valid delays that are smaller than their own error bound, so that not even their sign is known: on a short path with a good clock that is all of them, and no fault. They are part of every distribution.",
		Absent: "Until the first.",
	})
	// DelayInvalid is oneway_delay_invalid_total.
	DelayInvalid = delayGroup.add(Desc{
		Name: "oneway_delay_invalid_total", Kind: Counter, Labels: []string{Path, Probe, Direction, ReasonL},
		Help:   "Delays that were measured and not reported, by the reason why no bound could be given: a clock that is not trusted or was stepped, a stamp that is missing, a bound above max_bound, above an hour or below zero (bound_too_large).",
		Absent: "Until the first, of each reason.",
		Source: "design, invariant 2",
	})
	// DelayNegative is oneway_delay_negative_total.
	DelayNegative = delayGroup.add(Desc{
		Name: "oneway_delay_negative_total", Kind: Counter, Labels: perDirection, Source: "RFC 7679 section 3.7.1",
		Help: "One-way delays of trusted clocks that are negative by more than their bound: proof of a clock fault. One that is negative within its bound proves nothing.",
	})
	// DelayVariation is oneway_delay_variation_seconds.
	DelayVariation = delayGroup.add(Desc{
		Name: "oneway_delay_variation_seconds", Kind: Histogram, Labels: perDirection, Buckets: variationBuckets(),
		Help:   "PDV: delay minus the smallest delay of the window, in seconds; free of a constant clock offset. The window of a Poisson schedule may end early, with 65,536 packets.",
		Source: "RFC 5481 section 4.2",
	})
	// IPDV is oneway_ipdv_seconds.
	IPDV = delayGroup.add(Desc{
		Name: "oneway_ipdv_seconds", Kind: Histogram, Labels: perDirection,
		Help:   "IPDV: delay minus that of the packet numbered one less, signed, in seconds; undefined if either was lost. It has native buckets only, and is not shown to scrapes that take none: oneway_jitter_seconds is there for them.",
		Source: "RFC 3393 section 2; RFC 5481 section 4.1",
	})
	// Jitter is oneway_jitter_seconds.
	Jitter = delayGroup.add(Desc{
		Name: "oneway_jitter_seconds", Kind: Gauge, Labels: perDirection, Source: "RFC 3550 section 6.4.1",
		Help:   "RTP interarrival jitter, a running mean with gain 1/16, in seconds.",
		Absent: "Before the second packet.",
	})
	// RoundTripTime is oneway_round_trip_time_seconds.
	RoundTripTime = delayGroup.add(Desc{
		Name: "oneway_round_trip_time_seconds", Kind: Histogram, Labels: perProbe, Buckets: delayBuckets(),
		Help:   "(T4-T1)-(T3-T2) in seconds: free of clock error and of the reflector's own time. Without those between whose stamps a clock was stepped.",
		Source: "RFC 8762 section 4; RFC 2681",
	})
	// RoundTripTimeMin is oneway_round_trip_time_min_seconds.
	RoundTripTimeMin = delayGroup.add(Desc{
		Name: "oneway_round_trip_time_min_seconds", Kind: Gauge, Slim: true, Labels: perProbe, Source: "RFC 2681 section 4.3",
		Help:   "Smallest round trip of the last window, in seconds.",
		Absent: "In a window without a reply.",
	})
	// RoundTripTimeMax is oneway_round_trip_time_max_seconds.
	RoundTripTimeMax = delayGroup.add(Desc{
		Name: "oneway_round_trip_time_max_seconds", Kind: Gauge, Labels: perProbe, Source: "RFC 2681",
		Help:   "Largest round trip of the last window, in seconds.",
		Absent: "In a window without a reply.",
	})
	// RoundTripTimeQuantile is oneway_round_trip_time_quantile_seconds.
	RoundTripTimeQuantile = delayGroup.add(Desc{
		Name: "oneway_round_trip_time_quantile_seconds", Kind: Gauge, Labels: []string{Path, Probe, QuantileL},
		Help:   "Quantiles (0.5, 0.95, 0.99) of the round trip over the packets decided in the last window, unanswered ones counted as infinite, in seconds: order statistics.",
		Absent: "In a window without a reply, or in which so many packets went unanswered that the quantile is infinite.",
		Source: "RFC 2681 section 4.1",
	})
	// Residence is oneway_reflector_residence_seconds.
	Residence = delayGroup.add(Desc{
		Name: "oneway_reflector_residence_seconds", Kind: Histogram, Labels: perProbe,
		Help:   "T3-T2: time spent in the reflector, in seconds, on the reflector's clock. It has native buckets only, and is not shown to scrapes that take none.",
		Source: "RFC 8762 section 4",
	})
)
