package metric

// Labels of heavy tests.
const (
	// linkL names what heavy tests share and must not use at once, by its name in the
	// configuration.
	linkL = "link"
	// ElapsedL is a time since the beginning of a run, in seconds, the end of a bin.
	ElapsedL = "elapsed"
	// OfferedL is a step's offered rate in octets a second, as configured.
	OfferedL = "offered"
	// PacketBytesL is a configured packet size: IP packet, header included.
	PacketBytesL = "packet_bytes"
	// PacketRateL is a configured packet rate, packets a second.
	PacketRateL = "packet_rate"
	// tokenL names a responder's token.
	tokenL = "token"
	// StateL is a member of a fixed set of states.
	StateL = "state"
	// kindL is a member of a fixed set of kinds.
	kindL = "kind"
)

// Runs of heavy tests, and what they may use.
var (
	// TestRunning is oneway_test_running.
	TestRunning = runGroup.add(Desc{
		Name: "oneway_test_running", Kind: Gauge, Slim: true, Labels: []string{Path, Probe, linkL}, Source: "design, invariant 6",
		Help: "1 while a heavy test of this probe fills its link, else 0: delay and loss beside it are its own doing. A test from this host's terminal (oneway test) counts for the probe of its kind to the same far end; without one, for the path to that host, or for the path terminal, with its kind as probe, and those series end 7 minutes after it.",
	})
	// Runs is oneway_probe_runs_total.
	Runs = runGroup.add(Desc{
		Name: "oneway_probe_runs_total", Kind: Counter, Slim: true, Labels: []string{Path, Probe, ResultL, ReasonL},
		Help:   "Runs of a heavy test that were due, by result (completed, incomplete, refused, failed, skipped) and reason.",
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
		Help: "IP octets that heavy tests have sent, those from this host's terminal, which the agent has lent its link, included when they have ended.",
	})
	// BudgetLimit is oneway_data_budget_limit_bytes.
	BudgetLimit = runGroup.add(Desc{
		Name: "oneway_data_budget_limit_bytes", Kind: Gauge, Labels: []string{linkL}, Source: "design, invariant 6",
		Help:   "IP octets that heavy tests may move over the link each day, both directions.",
		Absent: "For a link without a budget.",
	})
	// BudgetUsed is oneway_data_budget_used_bytes.
	BudgetUsed = runGroup.add(Desc{
		Name: "oneway_data_budget_used_bytes", Kind: Gauge, Labels: []string{linkL}, Source: "design, invariant 6",
		Help: "IP octets that heavy tests have moved over the link since local midnight.",
	})
	// BudgetLeft is oneway_data_budget_left_bytes.
	BudgetLeft = runGroup.add(Desc{
		Name: "oneway_data_budget_left_bytes", Kind: Gauge, Labels: []string{linkL}, Source: "design, invariant 6",
		Help:   "IP octets of the link's budget that are left until local midnight, those set aside for the run under way taken off.",
		Absent: "For a link without a budget.",
	})
	// BudgetSaved is oneway_data_budget_saved.
	BudgetSaved = runGroup.add(Desc{
		Name: "oneway_data_budget_saved", Kind: Gauge, Labels: []string{kindL}, Source: "design, invariant 6",
		Help:   "1 while the day's use of data budgets, and what is set aside of them, is saved in state_dir, else 0: then nothing that has a budget is begun, until a try every 10 s succeeds. 0, too, while the day's use is not known, since the file was damaged: until tomorrow, or until what the log says is removed; what budgets are then said to have used and left is no more than is known. By kind: links (budgets of this agent's links), tokens (per-day limits of the responder's tokens).",
		Absent: "Without state_dir; of tokens, while no responder runs.",
	})
	// Damaged is oneway_packets_damaged_total.
	Damaged = runGroup.add(Desc{
		Name: "oneway_packets_damaged_total", Kind: Counter, Labels: []string{Path, Probe, Direction, kindL},
		Help:   "Packets of heavy tests that arrived damaged, by kind (truncated, overwritten, bit_errors, bad_header).",
		Absent: "Until the first of that kind.",
		Source: "Woo 2010 figure 5.5",
	})
	// KernelChecksumErrors is oneway_kernel_checksum_errors_total.
	KernelChecksumErrors = runGroup.add(Desc{
		Name: "oneway_kernel_checksum_errors_total", Kind: Counter, Labels: perDirection,
		Help:   "Datagrams that the receiving host's kernel dropped for a wrong UDP checksum while heavy tests ran; of all its traffic.",
		Source: "Linux /proc/net/snmp, Udp: InCsumErrors",
	})
)

// Responder: the far end of heavy tests.
var (
	// ResponderSessions is oneway_responder_sessions.
	ResponderSessions = responderGroup.add(Desc{
		Name: "oneway_responder_sessions", Kind: Gauge, Source: "design",
		Help:   "Heavy test sessions of others that are open now.",
		Absent: "While no responder runs.",
	})
	// ResponderConnections is oneway_responder_connections.
	ResponderConnections = responderGroup.add(Desc{
		Name: "oneway_responder_connections", Kind: Gauge, Source: "design",
		Help:   "Control connections that are open now, authorised or not.",
		Absent: "While no responder runs.",
	})
	// ResponderRequests is oneway_responder_requests_total.
	ResponderRequests = responderGroup.add(Desc{
		Name: "oneway_responder_requests_total", Kind: Counter, Labels: []string{ResultL}, Source: "design",
		Help:   "Sessions and transfers that were asked for, by result: opened, started, or why they were refused.",
		Absent: "While no responder runs.",
	})
	// ResponderEnded is oneway_responder_sessions_ended_total.
	ResponderEnded = responderGroup.add(Desc{
		Name: "oneway_responder_sessions_ended_total", Kind: Counter, Labels: []string{ReasonL}, Source: "design",
		Help:   "Sessions that have ended, by reason (closed, lost, silent, protocol, shutting_down).",
		Absent: "While no responder runs.",
	})
	// ResponderBytes is oneway_responder_bytes_total.
	ResponderBytes = responderGroup.add(Desc{
		Name: "oneway_responder_bytes_total", Kind: Counter, Labels: []string{tokenL, Direction}, Source: "design, invariant 6",
		Help:   "UDP payload of heavy tests by token, forward received and reverse sent, in octets.",
		Absent: "While no responder runs.",
	})
	// ResponderDiscarded is oneway_responder_packets_discarded_total.
	ResponderDiscarded = responderGroup.add(Desc{
		Name: "oneway_responder_packets_discarded_total", Kind: Counter, Labels: []string{ReasonL}, Source: "design",
		Help:   "Packets that reached the test port and belong to no session or transfer, by reason; none is answered.",
		Absent: "While no responder runs.",
	})
)
