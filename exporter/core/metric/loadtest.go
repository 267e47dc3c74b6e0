package metric

import (
	"fmt"
	"slices"
	"time"

	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/unit"
)

// Labels of load tests.
const (
	// linkL is the configured name of a link, which load tests share and use one at a time.
	linkL = "link"
	// ElapsedL is the end of a bin, since the beginning of a run.
	ElapsedL = "elapsed_seconds"
	// OfferedL is the configured offered rate of a step.
	OfferedL = "offered_bytes_per_second"
	// PacketBytesL is a configured packet size: IP packet, header included, in bytes.
	PacketBytesL = "packet_bytes"
	// PacketRateL is a configured packet rate, in packets per second.
	PacketRateL = "packet_rate"
	// tokenL is the name of a token of the load server.
	tokenL = "token"
	// StateL is a member of a fixed set of states.
	StateL = "state"
	// DayTypeL is the kind of a local day; HourL is the local hour of recorded series, and LocalHourL of points.
	DayTypeL   = "day_type"
	HourL      = "hour"
	LocalHourL = "local_hour"
	// SiteL is the label of paths with the site of the host at their other end, if the configuration gives it. SitePairL has the site of the agent, too.
	SiteL     = "site"
	SitePairL = "site_pair"
	// SitePairSeparator is between the two sites of a pair, which are in alphabetical order.
	SitePairSeparator = " - "
	// kindL is a member of a fixed set of kinds.
	kindL = "kind"
)

// QuotaSaveInterval is the interval at which a failed save of the day's use of quotas is tried again.
const QuotaSaveInterval = 10 * time.Second

// Times after a load test.
const (
	// TestedRecent is the time in which the paths of the test have no alerts of loss and delay: the 5 min that alerts look back, and a
	// minute.
	TestedRecent = 6 * time.Minute
	// TerminalRetention is the time after which the series of a test from the terminal end.
	TerminalRetention = TestedRecent + time.Minute
	// QuietTime is the time between runs on a link that is recommended: the alerts of its paths have more than half of it.
	QuietTime = 30 * time.Minute
	// SilencedRatio is the share of the time above which load tests keep the alerts of a path silent.
	SilencedRatio = 0.75
)

// Runs of load tests and their quotas.
var (
	TestRunning = Family(Desc{
		Name: "oneway_test_running", Kind: Gauge, Slim: true, Labels: []string{Path, Probe, linkL}, Source: "design, invariant 6",
		Help: "1 while a load test of this probe fills its link, else 0: it causes the delay and loss on the link at that time. A test from this host's terminal (oneway test) counts for the probe of its type to the same remote end; without such a probe, for the path to that host or for the path terminal, with its type as probe, and that series ends " + fmt.Sprintf("%.0f minutes", TerminalRetention.Minutes()) + " after the test.",
	})
	// PathTested is recent for TestedRecent.
	PathTested = Family(Desc{
		Name: "oneway_path_test_timestamp_seconds", Kind: Gauge, Slim: true, Labels: []string{Path}, Source: "design, invariant 6",
		Help:   "Unix time at which a load test last filled a link of the path: now, while one does. It may be a test of any path of this agent, one from this host's terminal (oneway test), or a session of the agent's load server, which also affects the paths to its client.",
		Absent: "Until the first since the agent started.",
	})
	PathLinkInfo = Family(Desc{
		Name: "oneway_path_link_info", Kind: Gauge, Slim: true, Labels: []string{Path, linkL}, Source: "design",
		Help:   "Always 1; the link is one of the path: configured (link), or that of one of its load tests.",
		Absent: "For a path with neither.",
	})
	Runs = Family(Desc{
		Name: "oneway_probe_runs_total", Kind: Counter, Slim: true, Labels: []string{Path, Probe, ResultL, ReasonL},
		Help:   "Runs of a load test that were due, by result and reason.",
		Absent: "Until the first of that result and reason, except completed with ok, which begins with 0: a probe meets few of the combinations.",
		Source: "design, invariant 6",
		Values: Values{
			ResultL: runreason.Results(),
			ReasonL: runreason.Values(),
		},
	})
	RunResults = Family(Desc{
		Name: "oneway_probe_run_results_total", Kind: Counter, Slim: true, Labels: []string{Path, Probe, ResultL},
		Help:   "Runs of a load test that were due, by result: oneway_probe_runs_total without its reasons. Each result begins with 0, so that increase() counts the runs of an agent that restarts between them.",
		Source: "design, invariant 6",
		Values: Values{ResultL: runreason.Results()},
	})
	RunLast = Family(Desc{
		Name: "oneway_run_timestamp_seconds", Kind: Gauge, Slim: true, Labels: perProbe, Source: "design",
		Help:   "Unix time of the end of the last completed run; the other values of the probe are from that run.",
		Absent: "Before the first completed run.",
	})
	RunUTCOffset = Family(Desc{
		Name: "oneway_run_utc_offset_seconds", Kind: Gauge, Slim: true, Labels: perProbe, Source: "tzset(3)",
		Help:   "Local time minus UTC at the end of the last completed run, by the time zone of the agent (calendar.zone, else TZ, else /etc/localtime): the labels hour and day_type of recorded series of a run are in local time.",
		Absent: "Before the first completed run.",
	})
	RunHoliday = Family(Desc{
		Name: "oneway_run_holiday", Kind: Gauge, Slim: true, Labels: perProbe, Source: "design",
		Help:   "1 if the last completed run ended on a local day of the list of holidays (calendar.holidays_file), else 0.",
		Absent: "Before the first completed run, and without a list of holidays.",
	})
	RunDuration = Family(Desc{
		Name: "oneway_run_duration_seconds", Kind: Gauge, Labels: perProbe, Source: "design",
		Help:   "Duration of the last completed run, in seconds.",
		Absent: "Before the first completed run.",
	})
	RunRequired = Family(Desc{
		Name: "oneway_run_required_bytes", Kind: Gauge, Slim: true, Labels: []string{Path, Probe, linkL}, Source: "design, invariant 6",
		Help: "IP bytes that the quota of the link must have left for a run, both directions together: the most that the run may move, or the least to which it can adapt.",
	})
	RunInterval = Family(Desc{
		Name: "oneway_run_interval_seconds", Kind: Gauge, Slim: true, Labels: perProbe, Source: "design",
		Help: "Configured time between runs, in seconds.",
	})
	RunNext = Family(Desc{
		Name: "oneway_run_next_timestamp_seconds", Kind: Gauge, Labels: perProbe, Source: "design",
		Help:   "Unix time at which the next run is due, with windows of the day and jitter; in the past while a due run waits for its link or is under way.",
		Absent: "Where no run is planned: no window ever opens, or the test runs once.",
	})
	RunBytes = Family(Desc{
		Name: "oneway_run_sent_bytes_total", Kind: Counter, Labels: perDirection, Source: "design, invariant 6",
		Help: "IP bytes that load tests have sent, with the light test packets beside them and their replies, which go in both directions. Tests from this host's terminal on a link that the agent leased to them are included when they end.",
	})
	QuotaLimit = Family(Desc{
		Name: "oneway_data_quota_limit_bytes", Kind: Gauge, Labels: []string{linkL}, Source: "design, invariant 6",
		Help:   "IP bytes that load tests may transfer over the link each day, both directions together.",
		Absent: "For a link without a quota.",
	})
	QuotaUsed = Family(Desc{
		Name: "oneway_data_quota_used_bytes", Kind: Gauge, Labels: []string{linkL}, Source: "design, invariant 6",
		Help: "IP bytes that load tests have transferred over the link since local midnight.",
	})
	QuotaLeft = Family(Desc{
		Name: "oneway_data_quota_left_bytes", Kind: Gauge, Labels: []string{linkL}, Source: "design, invariant 6",
		Help:   "IP bytes of the link's quota that are left until local midnight, without those reserved for the run under way.",
		Absent: "For a link without a quota.",
	})
	QuotaSaved = Family(Desc{
		Name: "oneway_data_quota_saved", Kind: Gauge, Labels: []string{kindL}, Source: "design, invariant 6",
		Help:   "1 while the day's use of data quotas, reservations included, is saved in state_dir, else 0. While it is 0 no test with a quota starts; saving is tried again every " + unit.Duration(QuotaSaveInterval) + ". It is also 0 while the day's use is not known because the file was damaged: until the next day, or until the file that the log names is removed; the used and remaining quotas are then incomplete. kind is links (quotas of this agent's links) or tokens (per-day limits of the load server's tokens).",
		Absent: "Without state_dir; kind tokens, while no load server runs.",
	})
	RunPacketsCorrupted = Family(Desc{
		Name: "oneway_run_packets_corrupted_total", Kind: Counter, Labels: []string{Path, Probe, Direction, kindL},
		Help:   "Packets of load tests that arrived corrupted, by kind.",
		Absent: "For a test that sends no UDP packets.",
		Source: "Woo 2010 figure 5.5",
		Values: Values{
			kindL: {
				"truncated: shorter than sent",
				"overwritten: from some byte to the end",
				"bit_errors: single bytes",
				"bad_header: the test header, so that nothing else is known",
			},
		},
	})
	KernelChecksumErrors = Family(Desc{
		Name: "oneway_kernel_checksum_errors_total", Kind: Counter, Labels: perDirection,
		Help:   "Datagrams that the receiving host's kernel dropped for a wrong UDP checksum while load tests ran, over all traffic of the host.",
		Absent: "For a test that sends no UDP packets.",
		Source: "Linux /proc/net/snmp, Udp: InCsumErrors",
	})
)

// Load server.
var (
	LoadServerSessions = Family(Desc{
		Name: "oneway_load_server_sessions", Kind: Gauge, Source: "design",
		Help:   "Open sessions of load tests on the load server.",
		Absent: "While no load server runs.",
	})
	LoadServerConnections = Family(Desc{
		Name: "oneway_load_server_connections", Kind: Gauge, Source: "design",
		Help:   "Open control connections, authorized or not.",
		Absent: "While no load server runs.",
	})
	LoadServerRequests = Family(Desc{
		Name: "oneway_load_server_requests_total", Kind: Counter, Labels: []string{ResultL}, Source: "design",
		Help:   "Requests for sessions and transfers, by result: opened, started, or the reason of the refusal.",
		Absent: "While no load server runs.",
		Values: Values{
			ResultL: slices.Concat([]string{
				"opened: a session",
				"started: a transfer",
			}, runreason.Refusals()),
		},
	})
	LoadServerEnded = Family(Desc{
		Name: "oneway_load_server_sessions_ended_total", Kind: Counter, Labels: []string{ReasonL}, Source: "design",
		Help:   "Ended sessions, by reason.",
		Absent: "While no load server runs.",
		Values: Values{
			ReasonL: runreason.Ends(),
		},
	})
	LoadServerBytes = Family(Desc{
		Name: "oneway_load_server_bytes_total", Kind: Counter, Labels: []string{tokenL, Direction}, Source: "design, invariant 6",
		Help:   "Payload bytes of load tests, by token: forward received, reverse sent.",
		Absent: "While no load server runs.",
	})
	LoadServerDiscarded = Family(Desc{
		Name: "oneway_load_server_packets_discarded_total", Kind: Counter, Labels: []string{ReasonL}, Source: "design",
		Help:   "Packets that reached the test port and belong to no session or transfer, by reason; they get no reply.",
		Absent: "While no load server runs.",
		Values: Values{
			ReasonL: {
				"too_short: shorter than a test header",
				"foreign: another format or version",
				"corrupted_header: its session is unknown",
				"unknown_session",
				"unknown_transfer",
				"beyond_plan: a number that the plan does not have",
				"hello_too_often: hellos above their rate",
				"bad_hello: too short, from an invalid source, or an echo of a cookie",
				"unknown_type",
				"bad_feedback: a report or an order that is old or malformed",
			},
		},
	})
)

// runsGroup has the families of TitleRuns.
func runsGroup() Group {
	return Group{
		Title: TitleRuns,
		Descs: []*Desc{
			QuotaLeft, QuotaLimit, QuotaSaved, QuotaUsed, KernelChecksumErrors, PathLinkInfo, PathTested, RunResults, Runs, RunDuration, RunHoliday,
			RunInterval, RunNext, RunPacketsCorrupted, RunRequired, RunBytes, RunLast, RunUTCOffset, TestRunning,
		},
		Measurements: []Measurement{
			{Name: "oneway_test", Labels: perProbe},
			{Name: "oneway_test_direction", Labels: perDirection},
			{Name: "oneway_test_result", Labels: []string{Path, Probe, ResultL, ReasonL}},
			{Name: "oneway_test_outcome", Labels: []string{Path, Probe, ResultL}},
			{Name: "oneway_test_corruption", Labels: []string{Path, Probe, Direction, kindL}},
			{Name: "oneway_test_link", Labels: []string{Path, Probe, linkL}},
			{Name: "oneway_test_path", Labels: []string{Path}},
			{Name: "oneway_test_path_link", Labels: []string{Path, linkL}},
			{Name: "oneway_quota", Labels: []string{linkL}},
			{Name: "oneway_quota_kind", Labels: []string{kindL}},
		},
	}
}

// loadServerGroup has the families of TitleLoadServer.
func loadServerGroup() Group {
	return Group{
		Title: TitleLoadServer,
		Descs: []*Desc{
			LoadServerBytes, LoadServerConnections, LoadServerDiscarded, LoadServerRequests, LoadServerSessions,
			LoadServerEnded,
		},
		Measurements: []Measurement{
			{Name: "oneway_load_server"},
			{Name: "oneway_load_server_token", Labels: []string{tokenL, Direction}},
			{Name: "oneway_load_server_reason", Labels: []string{ReasonL}},
			{Name: "oneway_load_server_result", Labels: []string{ResultL}},
		},
	}
}
