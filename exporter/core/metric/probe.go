package metric

import (
	"fmt"

	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/event"
	"oneway.example/exporter/core/pathstate"
)

// Probes.
var (
	ProbeUp = Family(Desc{
		Name: "oneway_probe_up", Kind: Gauge, Slim: true, Labels: perProbe, Source: "design",
		Help:   "1 if a reply to a test packet was received within the last three intervals (at least 3 s) and the waiting time (loss_timeout), else 0. Discarded replies (oneway_packets_discarded_total) and replies that match no test packet do not count.",
		Absent: "Before the first reply, until that time has passed. 0 at once while the path cannot be measured: the peer's name has given no address, or this host cannot use its address. In a reply of /probe it equals probe_success.",
	})
	PathState = Family(Desc{
		Name: "oneway_path_state", Kind: Gauge, Slim: true, Labels: perProbe, Source: "design",
		Help:   "State of the path, the worse the larger: " + pathstate.StateNumbers() + ". The agent decides it once a second, by what is certain of the packets of " + fmt.Sprintf("%.0f minutes", pathstate.Recent.Minutes()) + " within the error bounds of the delays; a better state is said after a minute, the end of an outage at once. The agent's page and /api/v1/status have the same.",
		Absent: "Of load tests, and while the agent does not run: a path without a current value is unknown, not up.",
	})
	PathStateReason = Family(Desc{
		Name: "oneway_path_state_reason", Kind: Gauge, Slim: true, Labels: perProbe, Source: "design",
		Help:   "Why the path has its state; the tens are the state: " + pathstate.ReasonNumbers() + ". METRICS.md has what each means.",
		Absent: "As oneway_path_state.",
	})
	PathMaintenance = Family(Desc{
		Name: "oneway_path_maintenance_end_timestamp_seconds", Kind: Gauge, Slim: true, Labels: perProbe, Source: "design",
		Help:   "Unix time of the planned end of the maintenance of the path that is under way (section maintenance, or oneway maintenance): its alerts are quiet until then, also if the agent is no longer scraped. The path is measured as always.",
		Absent: "While the path is not under maintenance: a path without planned work has no series of it.",
	})
	PathEvent = Family(Desc{
		Name: "oneway_path_event_timestamp_seconds", Kind: Gauge, Slim: true, Labels: []string{Path, kindL}, Source: "design",
		Help:   "Unix time of the last event of the path, by kind. Outputs deliver each event as a point of oneway_event, too, with its text. The series of events come in addition to the numbers of series of a profile.",
		Absent: "Until the first event of that kind since the agent started: a path to which nothing happened has no series of it.",
		Values: Values{kindL: event.Entries(event.OfPaths())},
	})
	ProbeLastSuccess = Family(Desc{
		Name: "oneway_probe_last_success_timestamp_seconds", Kind: Gauge, Labels: perProbe, Source: "design",
		Help:   "Unix time of the last received reply to a test packet.",
		Absent: "Before the first reply.",
	})
	ProbeSkipped = Family(Desc{
		Name: "oneway_probe_schedule_skipped_total", Kind: Counter, Labels: perReason, Source: "RFC 3432 section 4",
		Help:   "Test packets that were due but not sent, by reason; they are not loss of the path.",
		Absent: "Until the first of that reason.",
		Values: Values{
			ReasonL: {
				"late: the process got the CPU too late",
				"send_buffer_full: no space in the socket's send buffer or the interface's queue",
				"unreachable: no route, or the interface is down",
				"not_permitted: this host refuses it: " + errtext.Forbidden + ", or its security policy",
				"no_address: this host had no address that replies reach",
				"send_error: any other error, see oneway_send_errors_total",
			},
		},
	})
	ProbeLateness = Family(Desc{
		Name: "oneway_probe_schedule_lateness_seconds", Kind: Histogram, Labels: perProbe, Buckets: latenessBuckets(),
		Help:   "Time from when a test packet was due until its sending began, in seconds.",
		Source: "RFC 3432 section 4",
	})
	PathInfo = Family(Desc{
		Name: "oneway_path_info", Kind: Gauge, Labels: []string{Path, Probe, "peer", "family", "dscp", "reflector", "schedule", "payload_bytes"},
		Help:   "Always 1; the labels describe the path: peer address, address family, DSCP, kind of reflector (oneway, stateful, stateless), schedule and UDP payload size.",
		Absent: "While the peer's name does not resolve.",
		Source: "design",
	})
	PathLabels = Family(Desc{
		Name: "oneway_path_labels_info", Kind: Gauge, Slim: true, Labels: []string{Path}, More: true, Source: "design",
		Help:   "Always 1; the further labels are those that the configuration gives to paths, such as site and region, to be joined with other series: * on (instance, path) group_left (site) oneway_path_labels_info. A label that other paths have and this one has not is empty. A path to another site has a label site_pair, too: the site of the agent (key site, or its labels in the file of hosts of a mesh) and the one of the path in alphabetical order, such as berlin - hamburg, the same for both directions. Outputs deliver no point of it: the labels are tags of the points of paths.",
		Absent: "If no path of the configuration has labels.",
	})
	ProbeInterval = Family(Desc{
		Name: "oneway_probe_interval_seconds", Kind: Gauge, Labels: perProbe, Source: "RFC 3432 section 4",
		Help: "Configured mean interval between test packets, in seconds.",
	})
	ResolveFailures = Family(Desc{
		Name: "oneway_resolve_failures_total", Kind: Counter, Labels: perProbe, Source: "design",
		Help: "Failed lookups of the peer's name.",
	})
)

// probesGroup has the families of TitleProbes.
func probesGroup() Group {
	return Group{
		Title: TitleProbes,
		Descs: []*Desc{
			PathEvent, PathInfo, PathLabels, PathMaintenance, PathState, PathStateReason, ProbeInterval, ProbeLastSuccess, ProbeLateness, ProbeSkipped, ProbeUp, ResolveFailures,
		},
		Measurements: []Measurement{
			{Name: "oneway_probe", Labels: perProbe},
			{Name: "oneway_probe_reason", Labels: perReason},
			{Name: "oneway_path_event", Labels: []string{Path, kindL}},
			{Name: "oneway_path", Labels: []string{Path, Probe, "peer", "family", "dscp", "reflector", "schedule", "payload_bytes"}, Facts: []string{"peer", "family", "reflector", "schedule", "payload_bytes:int"}},
		},
	}
}
