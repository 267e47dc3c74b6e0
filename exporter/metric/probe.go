package metric

// What a probe says of itself.
var (
	// ProbeUp is oneway_probe_up.
	ProbeUp = probeGroup.add(Desc{
		Name: "oneway_probe_up", Kind: Gauge, Slim: true, Labels: perProbe, Source: "design",
		Help:   "1 if a reply to a test packet was received within the last three intervals (at least 3 s) and the waiting time (loss_timeout), else 0. What is refused (packets_discarded_total), and a reply to no test packet, is none.",
		Absent: "Before the first reply, until that time is over.",
	})
	// ProbeLastSuccess is oneway_probe_last_success_timestamp_seconds.
	ProbeLastSuccess = probeGroup.add(Desc{
		Name: "oneway_probe_last_success_timestamp_seconds", Kind: Gauge, Labels: perProbe, Source: "design",
		Help:   "Unix time of the last reply to a test packet that was received.",
		Absent: "Before the first reply.",
	})
	// ProbeSkipped is oneway_probe_schedule_skipped_total.
	ProbeSkipped = probeGroup.add(Desc{
		Name: "oneway_probe_schedule_skipped_total", Kind: Counter, Labels: perReason, Source: "RFC 3432 section 4",
		Help: "Test packets that were due and not sent, by reason; they are no loss of the path.",
	})
	// ProbeLateness is oneway_probe_schedule_lateness_seconds.
	ProbeLateness = probeGroup.add(Desc{
		Name: "oneway_probe_schedule_lateness_seconds", Kind: Histogram, Labels: perProbe, Buckets: latenessBuckets(),
		Help:   "How long after its due time the sending of a test packet began, in seconds.",
		Source: "RFC 3432 section 4",
	})
	// PathInfo is oneway_path_info.
	PathInfo = probeGroup.add(Desc{
		Name: "oneway_path_info", Kind: Gauge, Labels: []string{Path, Probe, "peer", "family", "dscp", "reflector", "schedule", "payload_bytes"},
		Help:   "Always 1; the labels are facts about the path: peer address, address family, DSCP, kind of reflector (oneway, stateful, stateless), schedule and UDP payload size.",
		Absent: "While the peer's name does not resolve.",
		Source: "design",
	})
	// ProbeInterval is oneway_probe_interval_seconds.
	ProbeInterval = probeGroup.add(Desc{
		Name: "oneway_probe_interval_seconds", Kind: Gauge, Labels: perProbe, Source: "RFC 3432 section 4",
		Help: "Configured mean interval between test packets, in seconds.",
	})
	// ResolveFailures is oneway_resolve_failures_total.
	ResolveFailures = probeGroup.add(Desc{
		Name: "oneway_resolve_failures_total", Kind: Counter, Labels: perProbe, Source: "design",
		Help: "Failed look-ups of the peer's name.",
	})
)
