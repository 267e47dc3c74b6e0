package metric

import (
	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/event"
)

// Self.
var (
	Timestamps = Family(Desc{
		Name: "oneway_timestamps_total", Kind: Counter, Labels: []string{Path, Probe, EventL, originL},
		Help:   "Timestamps used in samples, by event (t1, t2, t3, t4) and origin.",
		Source: "design, invariant 4",
		Values: Values{
			originL: {
				"kernel: a software timestamp of the kernel",
				"hardware: of the network card",
				"user: read in user space",
				"packet: written by a foreign remote end, origin unknown",
				"follow_up: the true transmit timestamp, which the remote end sent later",
				"absent",
			},
		},
	})
	TimestampsMissing = Family(Desc{
		Name: "oneway_timestamps_missing_total", Kind: Counter, Labels: []string{Path, Probe, EventL},
		Help:   "Timestamps that a sample needed but that were not reported.",
		Absent: "Until the first of that event.",
		Source: "design, invariant 4",
	})
	HostDelay = Family(Desc{
		Name: "oneway_host_delay_seconds", Kind: Histogram, Labels: []string{EventL}, Buckets: hostBuckets(),
		Help:   "Time between user space and the kernel timestamp, in seconds: event tx from user space to the timestamp, rx from the timestamp to user space. Delays between kernel timestamps do not include it.",
		Source: "RFC 7679 section 3.7.2",
	})
	SocketDrops = Family(Desc{
		Name: "oneway_socket_drops_total", Kind: Counter, Labels: []string{"socket"},
		Help:   "Datagrams that the kernel dropped at this process's socket because its buffer was full; they are not loss of the path. Datagrams with a wrong UDP checksum are excluded as far as the counters of the host allow.",
		Source: "Linux SO_MEMINFO, RcvbufErrors and MemErrors of /proc/net/snmp",
	})
	SocketDiscarded = Family(Desc{
		Name: "oneway_socket_packets_discarded_total", Kind: Counter, Labels: []string{"socket", ReasonL}, Source: "design",
		Help:   "Packets that arrived at a sender's socket and belong to none of its sessions, by reason.",
		Absent: "Until the first of that reason.",
		Values: Values{
			ReasonL: {
				"short: shorter than a reply",
				"unknown_session: of no session of the socket",
				"wrong_peer: from another address than the session's peer",
			},
		},
	})
	SendErrors = Family(Desc{
		Name: "oneway_send_errors_total", Kind: Counter, Labels: []string{"socket", ReasonL}, Source: "sendmmsg(2)",
		Help:   "Failed sends, by reason; such a packet counts as skipped, not as lost.",
		Absent: "Until the first of that reason.",
		Values: Values{
			ReasonL: {
				"not_permitted: EPERM, this host refuses it: " + errtext.Forbidden,
				"permission_denied: EACCES",
				"port_unreachable: ECONNREFUSED, an ICMP error of the peer",
				"host_unreachable: EHOSTUNREACH",
				"network_unreachable: ENETUNREACH",
				"network_down: ENETDOWN",
				"address_not_available: EADDRNOTAVAIL",
				"no_such_device: ENODEV, the interface is gone",
				"packet_too_large: EMSGSIZE",
				"send_buffer_full: EAGAIN",
				"interface_queue_full: ENOBUFS",
				"out_of_memory: ENOMEM",
				"invalid_argument: EINVAL",
				"socket_closed: ESHUTDOWN",
				"other",
			},
		},
	})
	ReflectorPackets = Family(Desc{
		Name: "oneway_reflector_packets_total", Kind: Counter, Labels: []string{ResultL}, Source: "RFC 8762 section 4",
		Help:   "Packets received by the reflector, by result. Those with a result reflected, or one that begins with reflected_, got a reply.",
		Absent: "While no reflector runs.",
		Values: Values{
			ResultL: {
				"reflected: a test packet",
				"reflected_statistics_query: a request for the reflector's counts, not counted as a test packet",
				"reflected_malformed: a TLV is malformed, the reply has its M flag",
				"reflected_unverified: the TLVs fail verification, the reply has their I flag",
				"reflected_without_key: in authenticated mode, while the reflector has no key: the sender discards the reply",
				"send_failed: the kernel did not send the reply, see oneway_send_errors_total",
				"short: shorter than a test packet, which has at least 41 bytes, 14 with short_requests, and 112 with require_key",
				"oversized: longer than the reflector supports",
				"corrupted: corrupted on the path",
				"bad_hmac: of another key, without the key that is required, corrupted, or forged",
				"hmac_limited: not verified after too many invalid HMACs",
				"repeated: a copy of an authenticated test packet, or an old test packet from another address than its session's",
				"not_allowed: the source is not in allow",
				"bad_address: the source cannot get a reply",
				"loop: from a reflector",
				"rate_limited: above rate_limit of the source",
				"sessions_full: from an unknown peer, and max_sessions is reached",
				"new_session_limited: from an unknown peer, and too many sessions began recently",
			},
		},
	})
	ReflectorSessions = Family(Desc{
		Name: "oneway_reflector_sessions", Kind: Gauge, Source: "RFC 8762 section 4",
		Help:   "Sessions that the stateful reflector has state for.",
		Absent: "While no reflector runs.",
	})
	IncidentReports = Family(Desc{
		Name: "oneway_incident_reports_total", Kind: Counter, Labels: []string{Path, Probe, triggerL}, Source: "design",
		Help:   "Stored reports of the packets of the last minutes, by trigger.",
		Absent: "Until the first of that trigger.",
		Values: Values{
			triggerL: {
				"delay: it left the path's baseline",
				"loss: the same",
				"request: POST /-/incident",
			},
		},
	})
	SamplesDropped = Family(Desc{
		Name: "oneway_samples_dropped_total", Kind: Counter, Labels: []string{listenerL}, Source: "design, invariant 5",
		Help: "Raw samples that a listener (incident, or the name of an output) did not receive because its queue was full. Of an output, a transfer of a run, an end of a connection, the values of a run and the packets of a report are one sample each, and are no points of oneway_output_points_total. Metrics do not depend on listeners.",
	})
	ConfigReloadSuccess = Family(Desc{
		Name: "oneway_config_last_reload_successful", Kind: Gauge, Source: "Prometheus convention",
		Help: "1 if the last load of the configuration succeeded.",
	})
	ConfigReloadTime = Family(Desc{
		Name: "oneway_config_last_reload_success_timestamp_seconds", Kind: Gauge, Source: "Prometheus convention",
		Help: "Unix time of the last successful load of the configuration.",
	})
	AgentMaintenance = Family(Desc{
		Name: "oneway_agent_maintenance_end_timestamp_seconds", Kind: Gauge, Source: "design",
		Help:   "Unix time of the planned end of the maintenance of this agent and all of its paths that is under way (a window with all): the alerts of the agent are quiet until then, also if it is no longer scraped.",
		Absent: "While there is no such maintenance.",
	})
	AgentEvent = Family(Desc{
		Name: "oneway_agent_event_timestamp_seconds", Kind: Gauge, Labels: []string{kindL}, Source: "design",
		Help:   "Unix time of the last event of the agent, by kind. Outputs deliver each event as a point of oneway_event, too, with its text.",
		Absent: "Until the first event of that kind since the agent started.",
		Values: Values{kindL: event.Entries(event.OfAgents())},
	})
	UTCOffset = Family(Desc{
		Name: "oneway_utc_offset_seconds", Kind: Gauge, Labels: []string{Zone}, Source: "IANA time zone database",
		Help: "Local time minus UTC at present, by the time zone of the agent (calendar.zone, else TZ, else /etc/localtime): windows of load tests, days of quotas, and the labels hour and day_type of recorded series are in local time. Daylight saving time changes it. zone is the name of the zone; /etc/localtime if that file is a copy without a name.",
	})
	Holiday = Family(Desc{
		Name: "oneway_holiday", Kind: Gauge, Labels: []string{Zone}, Source: "design",
		Help:   "1 on a local day of the list of holidays (calendar.holidays_file), else 0.",
		Absent: "Without a list of holidays.",
	})
	HolidaysEnd = Family(Desc{
		Name: "oneway_holidays_end_timestamp_seconds", Kind: Gauge, Source: "design",
		Help:   "Unix time of the end of the last listed holiday (calendar.holidays_file): later holidays are not known, and count as other days.",
		Absent: "Without a list of holidays.",
	})
)

// selfGroup has the families of TitleSelf.
func selfGroup() Group {
	return Group{
		Title: TitleSelf,
		Descs: []*Desc{
			AgentEvent, AgentMaintenance, ConfigReloadTime, ConfigReloadSuccess, Holiday, HolidaysEnd, HostDelay, IncidentReports, ReflectorPackets, ReflectorSessions,
			SamplesDropped, SendErrors, SocketDrops, SocketDiscarded, TimestampsMissing, Timestamps, UTCOffset,
		},
		Measurements: []Measurement{
			{Name: "oneway_agent"},
			{Name: "oneway_agent_event", Labels: []string{kindL}},
			{Name: "oneway_agent_host", Labels: []string{EventL}},
			{Name: "oneway_agent_listener", Labels: []string{listenerL}},
			{Name: "oneway_agent_calendar", Labels: []string{Zone}},
			{Name: "oneway_agent_socket", Labels: []string{"socket"}},
			{Name: "oneway_agent_socket_reason", Labels: []string{"socket", ReasonL}},
			{Name: "oneway_agent_reflector", Labels: []string{ResultL}},
			{Name: "oneway_timestamp", Labels: []string{Path, Probe, EventL}},
			{Name: "oneway_timestamp_origin", Labels: []string{Path, Probe, EventL, originL}},
			{Name: "oneway_incident", Labels: []string{Path, Probe, triggerL}},
		},
	}
}
