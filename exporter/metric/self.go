package metric

// Self.
var (
	// Timestamps is oneway_timestamps_total.
	Timestamps = selfGroup.add(Desc{
		Name: "oneway_timestamps_total", Kind: Counter, Labels: []string{Path, Probe, EventL, originL},
		Help:   "Timestamps used in samples, by event (t1, t2, t3, t4) and origin.",
		Source: "design, invariant 4",
	})
	// TimestampsMissing is oneway_timestamps_missing_total.
	TimestampsMissing = selfGroup.add(Desc{
		Name: "oneway_timestamps_missing_total", Kind: Counter, Labels: []string{Path, Probe, EventL},
		Help:   "Timestamps that a sample needed but that were not reported.",
		Absent: "Until the first of that event.",
		Source: "design, invariant 4",
	})
	// HostDelay is oneway_host_delay_seconds.
	HostDelay = selfGroup.add(Desc{
		Name: "oneway_host_delay_seconds", Kind: Histogram, Labels: []string{EventL}, Buckets: hostBuckets(),
		Help:   "Time between user space and the kernel timestamp, in seconds: event tx from user space to the timestamp, rx from the timestamp to user space. Delays between kernel timestamps do not include it.",
		Source: "RFC 7679 section 3.7.2",
	})
	// SocketDrops is oneway_socket_drops_total.
	SocketDrops = selfGroup.add(Desc{
		Name: "oneway_socket_drops_total", Kind: Counter, Labels: []string{"socket"},
		Help:   "Datagrams that the kernel dropped at this process's socket because its buffer was full; they are not loss of the path. Datagrams with a wrong UDP checksum are excluded as far as the counters of the host allow.",
		Source: "Linux SO_MEMINFO, RcvbufErrors and MemErrors of /proc/net/snmp",
	})
	// SocketDiscarded is oneway_socket_packets_discarded_total.
	SocketDiscarded = selfGroup.add(Desc{
		Name: "oneway_socket_packets_discarded_total", Kind: Counter, Labels: []string{"socket", ReasonL}, Source: "design",
		Help:   "Packets that arrived at a sender's socket and belong to none of its sessions, by reason.",
		Absent: "Until the first of that reason.",
	})
	// SendErrors is oneway_send_errors_total.
	SendErrors = selfGroup.add(Desc{
		Name: "oneway_send_errors_total", Kind: Counter, Labels: []string{"socket", ReasonL}, Source: "sendmmsg(2)",
		Help:   "Failed sends, by reason; such a packet counts as skipped, not as lost.",
		Absent: "Until the first of that reason.",
	})
	// ReflectorPackets is oneway_reflector_packets_total.
	ReflectorPackets = selfGroup.add(Desc{
		Name: "oneway_reflector_packets_total", Kind: Counter, Labels: []string{ResultL}, Source: "RFC 8762 section 4",
		Help:   "Packets received by the reflector, by result. new_session_limited and sessions_full: refused packets of unknown peers; rate_limited: packets above the rate limit of their source; repeated: copies of authenticated test packets, which get no reply, and old test packets from another address than their session's; corrupted and bad_hmac: damaged or forged.",
		Absent: "While no reflector runs.",
	})
	// ReflectorSessions is oneway_reflector_sessions.
	ReflectorSessions = selfGroup.add(Desc{
		Name: "oneway_reflector_sessions", Kind: Gauge, Source: "RFC 8762 section 4",
		Help:   "Sessions that the stateful reflector has state for.",
		Absent: "While no reflector runs.",
	})
	// IncidentReports is oneway_incident_reports_total.
	IncidentReports = selfGroup.add(Desc{
		Name: "oneway_incident_reports_total", Kind: Counter, Labels: []string{Path, Probe, triggerL}, Source: "design",
		Help:   "Stored reports of the packets of the last minutes, by trigger (delay, loss, request).",
		Absent: "Until the first of that trigger.",
	})
	// SamplesDropped is oneway_samples_dropped_total.
	SamplesDropped = selfGroup.add(Desc{
		Name: "oneway_samples_dropped_total", Kind: Counter, Labels: []string{listenerL}, Source: "design, invariant 5",
		Help: "Raw samples that a listener (incident) did not receive because its queue was full. Metrics do not depend on listeners.",
	})
	// ConfigReloadSuccess is oneway_config_last_reload_successful.
	ConfigReloadSuccess = selfGroup.add(Desc{
		Name: "oneway_config_last_reload_successful", Kind: Gauge, Source: "Prometheus convention",
		Help: "1 if the last load of the configuration succeeded.",
	})
	// ConfigReloadTime is oneway_config_last_reload_success_timestamp_seconds.
	ConfigReloadTime = selfGroup.add(Desc{
		Name: "oneway_config_last_reload_success_timestamp_seconds", Kind: Gauge, Source: "Prometheus convention",
		Help: "Unix time of the last successful load of the configuration.",
	})
)
