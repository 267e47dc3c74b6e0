package metric

// What a probe says of itself.
var (
	// ProbeUp is oneway_probe_up.
	ProbeUp = &Desc{
		Name: "oneway_probe_up", Kind: Gauge, Labels: perProbe,
		Help:   "1 if an answer to a test packet was received within the last three intervals (at least 3 s) and the waiting time (loss_timeout), else 0. What is refused (packets_discarded_total), and an answer to no test packet, is none.",
		Absent: "Before the first answer, until that time is over.",
		Source: "design",
	}
	// ProbeLastSuccess is oneway_probe_last_success_timestamp_seconds.
	ProbeLastSuccess = &Desc{
		Name: "oneway_probe_last_success_timestamp_seconds", Kind: Gauge, Labels: perProbe,
		Help:   "Unix time of the last answer to a test packet that was received.",
		Absent: "Before the first answer.",
		Source: "design",
	}
	// ProbeSkipped is oneway_probe_schedule_skipped_total.
	ProbeSkipped = &Desc{
		Name: "oneway_probe_schedule_skipped_total", Kind: Counter, Labels: perReason,
		Help:   "Test packets that were due and not sent, by reason; they are no loss of the path.",
		Source: "RFC 3432 section 4",
	}
	// ProbeLateness is oneway_probe_schedule_lateness_seconds.
	ProbeLateness = &Desc{
		Name: "oneway_probe_schedule_lateness_seconds", Kind: Histogram, Labels: perProbe, Buckets: latenessBuckets(),
		Help:   "How long after its due time the sending of a test packet began, in seconds.",
		Source: "RFC 3432 section 4",
	}
	// PathInfo is oneway_path_info.
	PathInfo = &Desc{
		Name: "oneway_path_info", Kind: Gauge, Labels: []string{Path, Probe, "peer", "family", "dscp", "reflector", "schedule", "packet_bytes"},
		Help:   "Always 1; the labels are facts about the path: peer address, address family, DSCP, kind of reflector (oneway, stateful, stateless), schedule and UDP payload size.",
		Absent: "While the peer's name does not resolve.",
		Source: "design",
	}
	// ProbeInterval is oneway_probe_interval_seconds.
	ProbeInterval = &Desc{
		Name: "oneway_probe_interval_seconds", Kind: Gauge, Labels: perProbe,
		Help:   "Configured mean interval between test packets, in seconds.",
		Source: "RFC 3432 section 4",
	}
	// ResolveFailures is oneway_resolve_failures_total.
	ResolveFailures = &Desc{
		Name: "oneway_resolve_failures_total", Kind: Counter, Labels: perProbe,
		Help:   "Failed look-ups of the peer's name.",
		Source: "design",
	}
)
