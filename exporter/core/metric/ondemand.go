package metric

import "oneway.example/exporter/core/lightreason"

// On-demand probes.
var (
	OnDemandRequests = Family(Desc{
		Name: "oneway_on_demand_requests_total", Kind: Counter, Labels: []string{ResultL}, Source: "design",
		Help:   "Requests of /probe, by result.",
		Absent: "Without a section on_demand, and until the first of that result.",
		Values: Values{ResultL: {
			"success: a reply to a test packet was received",
			"failure: measured without a reply, see probe_failure_info",
			"canceled: the client ended the request",
			"malformed: no valid target or parameter",
			"not_allowed: module, target, port or address are not in the configuration",
			"too_short: the scrape's timeout is shorter than what the module needs",
			"paused: the target was measured a moment ago, or other requests wait for it",
			"busy: too many measurements ran",
			"unusable: the options of the module have become wrong, for example because its key file is gone",
			"stopped: the agent was ending",
			"unconfigured: the section on_demand was just removed",
		}},
	})
	OnDemandRunning = Family(Desc{
		Name: "oneway_on_demand_probes_running", Kind: Gauge, Source: "design",
		Help:   "Measurements of /probe that run now.",
		Absent: "Without a section on_demand.",
	})
)

// Families of a reply, beside those of a path. The names are those of blackbox_exporter, whose users' rules and dashboards read
// them. They are in no sink but the request's own: neither in /metrics nor in an output.
var (
	// OnDemandSuccess is probe_success.
	OnDemandSuccess = Family(Desc{
		Name: "probe_success", Kind: Gauge, Source: "blackbox_exporter",
		Help:   "1 if a valid reply to at least one test packet was received, else 0. Only in the replies of /probe.",
		Absent: "In /metrics.",
	})
	// OnDemandDuration is probe_duration_seconds.
	OnDemandDuration = Family(Desc{
		Name: "probe_duration_seconds", Kind: Gauge, Source: "blackbox_exporter",
		Help:   "Duration of the request, in seconds: waiting, name resolution and measuring. Only in the replies of /probe.",
		Absent: "In /metrics.",
	})
	// OnDemandLoss is probe_loss_ratio.
	OnDemandLoss = Family(Desc{
		Name: "probe_loss_ratio", Kind: Gauge, Source: "RFC 7680 section 4.1",
		Help:   "Lost round trips by all with a known outcome; 1 if there are none, for example because the name does not resolve. Only in the replies of /probe.",
		Absent: "In /metrics.",
	})
	// OnDemandFailure is probe_failure_info.
	OnDemandFailure = Family(Desc{
		Name: "probe_failure_info", Kind: Gauge, Labels: []string{ReasonL}, Source: "design, invariant 2",
		Help:   "Always 1; why probe_success is 0. Only in the replies of /probe.",
		Absent: "In /metrics, and if probe_success is 1.",
		Values: Values{ReasonL: lightreason.Values()},
	})
)

// onDemandGroup has the families of TitleOnDemand.
func onDemandGroup() Group {
	return Group{
		Title: TitleOnDemand,
		Descs: []*Desc{
			OnDemandRunning, OnDemandRequests,
		},
		Measurements: []Measurement{
			{Name: "oneway_on_demand"},
			{Name: "oneway_on_demand_result", Labels: []string{ResultL}},
		},
	}
}

// repliesGroup has the families of TitleReplies.
func repliesGroup() Group {
	return Group{
		Title: TitleReplies,
		Descs: []*Desc{
			OnDemandDuration, OnDemandFailure, OnDemandLoss, OnDemandSuccess,
		},
	}
}
