package metric

// Labels of load tests.
const (
	// linkL names what load tests share and must not use at once, by its name in the
	// configuration.
	linkL = "link"
	// ElapsedL is a time since the beginning of a run, in seconds, the end of a bin.
	ElapsedL = "elapsed"
	// OfferedL is a step's offered rate in bytes a second, as configured.
	OfferedL = "offered"
	// PacketBytesL is a configured packet size: IP packet, header included.
	PacketBytesL = "packet_bytes"
	// PacketRateL is a configured packet rate, packets a second.
	PacketRateL = "packet_rate"
	// tokenL names a load server's token.
	tokenL = "token"
	// StateL is a member of a fixed set of states.
	StateL = "state"
	// kindL is a member of a fixed set of kinds.
	kindL = "kind"
)

// Runs of load tests, and what they may use.
var (
	// TestRunning is oneway_test_running.
	TestRunning = runGroup.add(Desc{
		Name: "oneway_test_running", Kind: Gauge, Slim: true, Labels: []string{Path, Probe, linkL}, Source: "design, invariant 6",
		Help: "1 while a load test of this probe fills its link, else 0: delay and loss beside it are its own doing. A test from this host's terminal (oneway test) counts for the probe of its kind to the same remote end; without one, for the path to that host, or for the path terminal, with its kind as probe, and those series end 7 minutes after it.",
	})
	// Runs is oneway_probe_runs_total.
	Runs = runGroup.add(Desc{
		Name: "oneway_probe_runs_total", Kind: Counter, Slim: true, Labels: []string{Path, Probe, ResultL, ReasonL},
		Help:   "Runs of a load test that were due, by result (completed, incomplete, refused, failed, skipped) and reason.",
		Absent: "Until the first of that result and reason.",
		Source: "design, invariant 6",
	})
	// RunLast is oneway_run_timestamp_seconds.
	RunLast = runGroup.add(Desc{
		Name: "oneway_run_timestamp_seconds", Kind: Gauge, Slim: true, Labels: perProbe, Source: "design",
		Help:   "Unix time of the end of the last completed run; the probe's other values are of that run.",
		Absent: "Before the first completed run.",
	})
	// RunDuration is oneway_run_duration_seconds.
	RunDuration = runGroup.add(Desc{
		Name: "oneway_run_duration_seconds", Kind: Gauge, Labels: perProbe, Source: "design",
		Help:   "How long the last completed run took, in seconds.",
		Absent: "Before the first completed run.",
	})
	// RunInterval is oneway_run_interval_seconds.
	RunInterval = runGroup.add(Desc{
		Name: "oneway_run_interval_seconds", Kind: Gauge, Slim: true, Labels: perProbe, Source: "design",
		Help: "Configured time between runs, in seconds.",
	})
	// RunNext is oneway_run_next_timestamp_seconds.
	RunNext = runGroup.add(Desc{
		Name: "oneway_run_next_timestamp_seconds", Kind: Gauge, Labels: perProbe, Source: "design",
		Help:   "Unix time at which the next run is due, windows of the day and jitter included; in the past while the run that was due then waits for its link or is under way.",
		Absent: "Where no run is planned: no window ever opens, or the test runs once.",
	})
	// RunBytes is oneway_run_sent_bytes_total.
	RunBytes = runGroup.add(Desc{
		Name: "oneway_run_sent_bytes_total", Kind: Counter, Labels: perDirection, Source: "design, invariant 6",
		Help: "IP bytes that load tests have sent, those from this host's terminal, which the agent has leased its link, included when they have ended.",
	})
	// QuotaLimit is oneway_data_quota_limit_bytes.
	QuotaLimit = runGroup.add(Desc{
		Name: "oneway_data_quota_limit_bytes", Kind: Gauge, Labels: []string{linkL}, Source: "design, invariant 6",
		Help:   "IP bytes that load tests may move over the link each day, both directions.",
		Absent: "For a link without a quota.",
	})
	// QuotaUsed is oneway_data_quota_used_bytes.
	QuotaUsed = runGroup.add(Desc{
		Name: "oneway_data_quota_used_bytes", Kind: Gauge, Labels: []string{linkL}, Source: "design, invariant 6",
		Help: "IP bytes that load tests have moved over the link since local midnight.",
	})
	// QuotaLeft is oneway_data_quota_left_bytes.
	QuotaLeft = runGroup.add(Desc{
		Name: "oneway_data_quota_left_bytes", Kind: Gauge, Labels: []string{linkL}, Source: "design, invariant 6",
		Help:   "IP bytes of the link's quota that are left until local midnight, those set aside for the run under way taken off.",
		Absent: "For a link without a quota.",
	})
	// QuotaSaved is oneway_data_quota_saved.
	QuotaSaved = runGroup.add(Desc{
		Name: "oneway_data_quota_saved", Kind: Gauge, Labels: []string{kindL}, Source: "design, invariant 6",
		Help:   "1 while the day's use of data quotas, and what is set aside of them, is saved in state_dir, else 0: then nothing that has a quota is begun, until a try every 10 s succeeds. 0, too, while the day's use is not known, since the file was damaged: until tomorrow, or until what the log says is removed; what quotas are then said to have used and left is no more than is known. By kind: links (quotas of this agent's links), tokens (per-day limits of the load server's tokens).",
		Absent: "Without state_dir; of tokens, while no load server runs.",
	})
	// Damaged is oneway_packets_damaged_total.
	Damaged = runGroup.add(Desc{
		Name: "oneway_packets_damaged_total", Kind: Counter, Labels: []string{Path, Probe, Direction, kindL},
		Help:   "Packets of load tests that arrived damaged, by kind (truncated, overwritten, bit_errors, bad_header).",
		Absent: "Until the first of that kind.",
		Source: "Woo 2010 figure 5.5",
	})
	// KernelChecksumErrors is oneway_kernel_checksum_errors_total.
	KernelChecksumErrors = runGroup.add(Desc{
		Name: "oneway_kernel_checksum_errors_total", Kind: Counter, Labels: perDirection,
		Help:   "Datagrams that the receiving host's kernel dropped for a wrong UDP checksum while load tests ran; of all its traffic.",
		Source: "Linux /proc/net/snmp, Udp: InCsumErrors",
	})
)

// Load server: the remote end of load tests.
var (
	// LoadServerSessions is oneway_load_server_sessions.
	LoadServerSessions = loadServerGroup.add(Desc{
		Name: "oneway_load_server_sessions", Kind: Gauge, Source: "design",
		Help:   "Load test sessions of others that are open now.",
		Absent: "While no load server runs.",
	})
	// LoadServerConnections is oneway_load_server_connections.
	LoadServerConnections = loadServerGroup.add(Desc{
		Name: "oneway_load_server_connections", Kind: Gauge, Source: "design",
		Help:   "Control connections that are open now, authorized or not.",
		Absent: "While no load server runs.",
	})
	// LoadServerRequests is oneway_load_server_requests_total.
	LoadServerRequests = loadServerGroup.add(Desc{
		Name: "oneway_load_server_requests_total", Kind: Counter, Labels: []string{ResultL}, Source: "design",
		Help:   "Sessions and transfers that were asked for, by result: opened, started, or why they were refused.",
		Absent: "While no load server runs.",
	})
	// LoadServerEnded is oneway_load_server_sessions_ended_total.
	LoadServerEnded = loadServerGroup.add(Desc{
		Name: "oneway_load_server_sessions_ended_total", Kind: Counter, Labels: []string{ReasonL}, Source: "design",
		Help:   "Sessions that have ended, by reason (closed, lost, silent, protocol, shutting_down).",
		Absent: "While no load server runs.",
	})
	// LoadServerBytes is oneway_load_server_bytes_total.
	LoadServerBytes = loadServerGroup.add(Desc{
		Name: "oneway_load_server_bytes_total", Kind: Counter, Labels: []string{tokenL, Direction}, Source: "design, invariant 6",
		Help:   "UDP payload of load tests by token, forward received and reverse sent, in bytes.",
		Absent: "While no load server runs.",
	})
	// LoadServerDiscarded is oneway_load_server_packets_discarded_total.
	LoadServerDiscarded = loadServerGroup.add(Desc{
		Name: "oneway_load_server_packets_discarded_total", Kind: Counter, Labels: []string{ReasonL}, Source: "design",
		Help:   "Packets that reached the test port and belong to no session or transfer, by reason; none is answered.",
		Absent: "While no load server runs.",
	})
)
