package metric

// Labels of load tests.
const (
	// linkL is the configured name of a link, which load tests share and use one at a time.
	linkL = "link"
	// ElapsedL is the end of a bin, in seconds since the beginning of a run.
	ElapsedL = "elapsed"
	// OfferedL is the configured offered rate of a step, in bytes per second.
	OfferedL = "offered"
	// PacketBytesL is a configured packet size: IP packet, header included, in bytes.
	PacketBytesL = "packet_bytes"
	// PacketRateL is a configured packet rate, in packets per second.
	PacketRateL = "packet_rate"
	// tokenL is the name of a token of the load server.
	tokenL = "token"
	// StateL is a member of a fixed set of states.
	StateL = "state"
	// kindL is a member of a fixed set of kinds.
	kindL = "kind"
)

// Runs of load tests and their quotas.
var (
	// TestRunning is oneway_test_running.
	TestRunning = runGroup.add(Desc{
		Name: "oneway_test_running", Kind: Gauge, Slim: true, Labels: []string{Path, Probe, linkL}, Source: "design, invariant 6",
		Help: "1 while a load test of this probe fills its link, else 0: it causes the delay and loss on the link at that time. A test from this host's terminal (oneway test) counts for the probe of its type to the same remote end; without such a probe, for the path to that host or for the path terminal, with its type as probe, and that series ends 7 minutes after the test.",
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
		Help:   "Unix time of the end of the last completed run; the other values of the probe are from that run.",
		Absent: "Before the first completed run.",
	})
	// RunDuration is oneway_run_duration_seconds.
	RunDuration = runGroup.add(Desc{
		Name: "oneway_run_duration_seconds", Kind: Gauge, Labels: perProbe, Source: "design",
		Help:   "Duration of the last completed run, in seconds.",
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
		Help:   "Unix time at which the next run is due, with windows of the day and jitter; in the past while a due run waits for its link or is under way.",
		Absent: "Where no run is planned: no window ever opens, or the test runs once.",
	})
	// RunBytes is oneway_run_sent_bytes_total.
	RunBytes = runGroup.add(Desc{
		Name: "oneway_run_sent_bytes_total", Kind: Counter, Labels: perDirection, Source: "design, invariant 6",
		Help: "IP bytes that load tests have sent. Tests from this host's terminal on a link that the agent leased to them are included when they end.",
	})
	// QuotaLimit is oneway_data_quota_limit_bytes.
	QuotaLimit = runGroup.add(Desc{
		Name: "oneway_data_quota_limit_bytes", Kind: Gauge, Labels: []string{linkL}, Source: "design, invariant 6",
		Help:   "IP bytes that load tests may transfer over the link each day, both directions together.",
		Absent: "For a link without a quota.",
	})
	// QuotaUsed is oneway_data_quota_used_bytes.
	QuotaUsed = runGroup.add(Desc{
		Name: "oneway_data_quota_used_bytes", Kind: Gauge, Labels: []string{linkL}, Source: "design, invariant 6",
		Help: "IP bytes that load tests have transferred over the link since local midnight.",
	})
	// QuotaLeft is oneway_data_quota_left_bytes.
	QuotaLeft = runGroup.add(Desc{
		Name: "oneway_data_quota_left_bytes", Kind: Gauge, Labels: []string{linkL}, Source: "design, invariant 6",
		Help:   "IP bytes of the link's quota that are left until local midnight, without those reserved for the run under way.",
		Absent: "For a link without a quota.",
	})
	// QuotaSaved is oneway_data_quota_saved.
	QuotaSaved = runGroup.add(Desc{
		Name: "oneway_data_quota_saved", Kind: Gauge, Labels: []string{kindL}, Source: "design, invariant 6",
		Help:   "1 while the day's use of data quotas, reservations included, is saved in state_dir, else 0. While it is 0 no test with a quota starts; saving is tried again every 10 s. It is also 0 while the day's use is not known because the file was damaged: until the next day, or until the file that the log names is removed; the used and remaining quotas are then incomplete. kind is links (quotas of this agent's links) or tokens (per-day limits of the load server's tokens).",
		Absent: "Without state_dir; kind tokens, while no load server runs.",
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
		Help:   "Datagrams that the receiving host's kernel dropped for a wrong UDP checksum while load tests ran, over all traffic of the host.",
		Source: "Linux /proc/net/snmp, Udp: InCsumErrors",
	})
)

// Load server.
var (
	// LoadServerSessions is oneway_load_server_sessions.
	LoadServerSessions = loadServerGroup.add(Desc{
		Name: "oneway_load_server_sessions", Kind: Gauge, Source: "design",
		Help:   "Open sessions of load tests on the load server.",
		Absent: "While no load server runs.",
	})
	// LoadServerConnections is oneway_load_server_connections.
	LoadServerConnections = loadServerGroup.add(Desc{
		Name: "oneway_load_server_connections", Kind: Gauge, Source: "design",
		Help:   "Open control connections, authorized or not.",
		Absent: "While no load server runs.",
	})
	// LoadServerRequests is oneway_load_server_requests_total.
	LoadServerRequests = loadServerGroup.add(Desc{
		Name: "oneway_load_server_requests_total", Kind: Counter, Labels: []string{ResultL}, Source: "design",
		Help:   "Requests for sessions and transfers, by result: opened, started, or the reason of the refusal.",
		Absent: "While no load server runs.",
	})
	// LoadServerEnded is oneway_load_server_sessions_ended_total.
	LoadServerEnded = loadServerGroup.add(Desc{
		Name: "oneway_load_server_sessions_ended_total", Kind: Counter, Labels: []string{ReasonL}, Source: "design",
		Help:   "Ended sessions, by reason (closed, lost, silent, protocol, shutting_down).",
		Absent: "While no load server runs.",
	})
	// LoadServerBytes is oneway_load_server_bytes_total.
	LoadServerBytes = loadServerGroup.add(Desc{
		Name: "oneway_load_server_bytes_total", Kind: Counter, Labels: []string{tokenL, Direction}, Source: "design, invariant 6",
		Help:   "UDP payload bytes of load tests, by token: forward received, reverse sent.",
		Absent: "While no load server runs.",
	})
	// LoadServerDiscarded is oneway_load_server_packets_discarded_total.
	LoadServerDiscarded = loadServerGroup.add(Desc{
		Name: "oneway_load_server_packets_discarded_total", Kind: Counter, Labels: []string{ReasonL}, Source: "design",
		Help:   "Packets that reached the test port and belong to no session or transfer, by reason; they get no reply.",
		Absent: "While no load server runs.",
	})
)
