package config

import (
	"fmt"
	"strconv"

	"oneway.example/exporter/agent/linklease"
	"oneway.example/exporter/agent/pathlabel"
	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/load/loadserver"
	"oneway.example/exporter/probe/link"
	"oneway.example/exporter/probe/report"
)

// Describe returns the descriptions of the sections of a file, in the order of documents; their owners describe the keys of each. An
// example is what a commented configuration shows of a section without descriptions of its own.
func (c *Config) Describe() []option.Description {
	section := func(at *Section, doc string) option.Description { return option.Value(at, Section{}, doc) }
	return []option.Description{
		option.Value(&c.Version, 1, "The version of this file's format. An agent rejects other versions."),
		section(&c.Include, "Further files: names, directories (their *.yml and *.yaml, in the order of names) and patterns, relative to this file. Paths, meshes, outputs and watchers "+
			"of all files are joined; any other section is in one file only. A directory may be empty; a file must exist, and have a key or a comment. Files that a file names are relative to its own directory. "+
			"A reload sees new files.").WithExample("[conf.d]"),
		section(&c.Clock, "The source of this host's clock error bound. A one-way delay is reported only while both clocks are synchronized, and always with its bound."),
		option.Value(&c.Watchers, nil, "Watchers observe something beside the packets, and have a state at / and in /api/v1/status. The receiver and the pulse of {clock} are watchers too; "+
			"here there can be several of a type. The name is the label of the metrics, by default the type; names must differ."),
		section(&c.CalibrationFile, "The errors of this host's timestamps, measured by \"oneway calibrate\"; by default general limits are used.").WithExample("calibration.json"),
		section(&c.StateDir, "Directory of the data that must survive a restart: the daily usage of each link's quota, the reports of load tests, and of a load server "+loadserver.StateDoc+". A relative path "+
			"begins at this file's directory. Without it, nothing is stored.").WithExample("/var/lib/oneway"),
		section(&c.Site, "The site of this host, as in the label site of paths to it: with it, paths of both directions between two sites have the label site_pair in oneway_path_labels_info, and a fault of "+
			"many of them is one alert (OnewaySitePairDegraded). Without it, the label site of this host in the file of hosts of its mesh.").WithExample("berlin"),
		section(&c.Calendar, "The local time of windows of load tests, of the days of quotas, and of the hours and kinds of days (weekday, weekend, holiday) by which trends are grouped. Daylight saving time follows "+
			"the zone. A reload changes it at once."),
		section(&c.Maintenance, "Planned work: its alerts are quiet, reports leave the time out, and pages and dashboards say so. Measurements go on, load tests too. A window selects paths by any of its keys paths, "+
			"peers, links, sites and all, and is open once (from, to) or every week (weekly). \"oneway maintenance\" adds windows to a running agent. A reload changes it at once."),
		section(&c.Links, "Links, which load tests share: one test at a time on each. Once there are any, each \"link\" elsewhere must be one of them. A link that is not listed has no quota; a "+
			"load test without the option \"link\" uses "+link.FilledDoc+". While a test fills a link, and "+fmt.Sprintf("%.0f minutes", metric.TestedRecent.Minutes())+" after, no alert begins "+
			"for the loss and delay of any path over it. The quota is the number of bytes of IP packets that load tests may move over the link between two local midnights, both "+
			"directions; a run that could need more than the rest is skipped. A reload changes it at once. \"oneway test\" on this host leases links and uses quotas through the agent's socket, "+linklease.DefaultSocket+" (systemd: "+
			"RuntimeDirectory=oneway).").WithExample("[{name: uplink, quota_bytes: 500MB}, {name: branch-to-core, quota_bytes: 10GB}, {name: load_server}, {name: lab}]"),
		section(&c.Reports, "Reports of load test runs, and incident reports (at most "+option.Part(report.IncidentShare)+"), one gzip file of JSON each, shown at /runs; the oldest are deleted when a limit is reached."),
		option.Value(&c.Outputs, nil, "Outputs deliver all measurements to stores that do not scrape this agent: its series at an interval, and what a scrape cannot hold (packets of runs, "+
			"samples of TCP connections, packets around an incident, the track). An output never blocks the agent. What the store has not accepted yet waits in a spool on disk; above "+
			"its limit the oldest is dropped. Without {state_dir} the spool is in memory."),
		section(&c.Reflector, "Replies to the test packets of other agents and of any STAMP or TWAMP-Light sender. Without this section the agent has no reflector."),
		section(&c.LoadServer, "The remote end of load tests: lets clients fill this host's link on purpose, within the limits of their tokens. Off without this section."),
		section(&c.OnDemand, "Single measurements on request, for users of blackbox_exporter: GET /probe?target=HOST[:PORT]&module=NAME returns the metrics of one measurement, and "+
			"probe_success. Off without this section; deploy/prometheus/README.md has the scrape configuration. Every client of the web server may use it: with --web.config.file it needs "+
			"a password or a certificate."),
		section(&c.Profile, fmt.Sprintf("The series of each probe; a path or probe may override it (key profile). full: at most %d without faults. slim: at most %d, for a thousand paths: native ", metric.MaxFull, metric.MaxSlim)+
			"histograms of the delay, its quantiles, sent, lost, error bound, round trip; without voice quality and incident reports. A key of a probe that concerns what slim leaves out, such as codecs, is an error.").WithExample("full"),
		option.Value(&c.Defaults, nil, "Options of all probes of a type; a key that a probe of a path or a mesh has itself replaces the one of its type as a whole.").WithExample("{stamp: {interval: 1s}}"),
		option.Value(&c.Meshes, nil, "Paths to the other hosts of a mesh, from one file that is the same on all hosts; see exporter/doc/mesh.md. One mesh, or a list of them. The name of a "+
			"path is SELF-to-PEER, after the prefix; its labels are those of the peer."),
		option.Value(&c.Paths, nil, "The measured paths."),
	}
}

// HostRequired completes the error of a missing address of a path or of a host of a mesh, with the default port.
const HostRequired = "it must be a host, such as reflector.example.net or 192.0.2.1:%d"

// Describe returns the descriptions of the keys of a path.
func (p *Path) Describe() []option.Description {
	return []option.Description{
		option.Text(&p.Name, fmt.Sprintf("The label \"path\" of every metric: unique, a letter or digit and up to %d more letters, digits and _ . : / -", option.MaxName-1)).WithExample("office-to-core").
			Required("every path needs one").Checked(func(key string) error { return option.Name(key, p.Name) }),
		option.Text(&p.Peer, fmt.Sprintf("A name or address, with :port if it is not %d; it must run \"oneway agent\", \"oneway reflect\" or any STAMP or TWAMP-Light reflector.", hostport.Reflector)).
			WithExample(fmt.Sprintf(`"[2001:db8::7]:%d"`, hostport.Reflector)).
			Required(HostRequired, hostport.Reflector),
		option.Text(&p.Profile, "The profile of its probes.").Unset("the one of the file").WithExample("full"),
		option.Value(&p.Links, nil, "The links that its packets pass and that load tests fill, one name or a list: a test of any path over one of them affects this path.").
			Unset("those of its load tests, or " + link.NamelessDoc).WithExample("[uplink, lab]"),
		option.Value(&p.Labels, nil, "Labels of the path, to group by: in oneway_path_labels_info, and tags of points of outputs. At most "+strconv.Itoa(pathlabel.MaxLabels)+".").WithExample("{site: seoul, region: asia}"),
		option.Value(&p.Probes, nil, "The measurements of the path.").Required("a path needs at least one, such as {type: stamp}"),
	}
}

// Describe returns the descriptions of the keys that all probes have.
func (p *Probe) Describe() []option.Description {
	return []option.Description{
		option.Text(&p.Type, "The type of the probe.").WithExample("stamp"),
		option.Text(&p.Name, "The label \"probe\". Needed where a path has two of one type.").Unset("the type").WithExample("stamp"),
		option.Text(&p.Profile, "full or slim, see {profile} of the file; a path may have the key, too.").WithExample("full"),
	}
}
