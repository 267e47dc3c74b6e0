package agent

import (
	"fmt"
	"math"
	"strings"
	"time"

	"oneway.example/exporter/agent/config"
	"oneway.example/exporter/agent/mesh"
	"oneway.example/exporter/agent/ondemand"
	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/load/loadserver"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/report"
	"oneway.example/exporter/reflector"
	"oneway.example/exporter/watcher"
)

// Sections are the options of the sections of a configuration, by key; for a list, the options of each item. Modules has the keys
// that a module of on_demand has besides the keys of a probe. The options of clocks are in clock, with the names of watchers by default; probes, outputs and watchers describe theirs.
func Sections(clocks []clock.Type, probes []probe.Type, watchers []watcher.Type) map[string][]option.Described {
	all := map[string][]option.Described{
		"clock":       {&clockSection{types: clocks, watchers: watchers}},
		"calendar":    {&calendarOptions{}},
		"maintenance": {&maintenanceOptions{}},
		"links":       {&linkOptions{}},
		"reports":     {&reportOptions{}},
		"reflector":   {&reflector.Section{}, &reflector.Options{}},
		"load_server": {&loadserver.Section{}, &loadserver.Options{}},
		"on_demand":   {&onDemandSection{probes: probes}},
		"modules":     {&moduleOptions{}},
		"mesh":        {&mesh.Options{}},
	}
	for _, one := range clocks {
		_, options := one.Document()
		all["clock"] = append(all["clock"], options...)
	}
	return all
}

// Describe returns the descriptions of the keys of the clock that do not belong to a source.
func (s *clockSection) Describe() []option.Description {
	of := ClockWatchers(s.watchers)
	return []option.Description{
		clock.Choice(&s.Source, s.types),
		clockWatcher(&s.GPSD, of[0]),
		clockWatcher(&s.PPS, of[1]),
	}
}

// clockWatcher describes the key of a watcher in the section clock.
func clockWatcher(at *config.Section, w ClockWatcher) option.Description {
	return option.Value(at, config.Section{}, fmt.Sprintf("%s of this clock: a watcher of type %s, with the options that {watchers} has for it. Its name is %s by default.", w.Doc, w.Type, w.Name)).
		WithExample("{name: " + w.Name + "}")
}

// Describe returns the descriptions of the keys of a link.
func (l *linkOptions) Describe() []option.Description {
	return []option.Description{
		option.Text(&l.Name, "The name of the link.").WithExample("uplink").Required("every link needs one").
			Checked(func(key string) error { return option.Name(key, l.Name) }),
		option.Number(&l.Quota, 0, 1, math.MaxInt64, "The quota of a day.").Unset("no limit").WithExample("500MB"),
	}
}

// Describe returns the descriptions of the keys of reports.
func (r *reportOptions) Describe() []option.Description {
	return []option.Description{
		option.Text(&r.Dir, "The directory.").Unset("reports in {state_dir}").WithExample("/var/lib/oneway/reports"),
		option.Number(&r.MaxBytes, report.DefaultMaxBytes, minReportBytes, math.MaxInt64, "Limit of the size of all reports."),
		option.Number(&r.MaxRuns, report.DefaultMaxRuns, 1, maxReportRuns, "Limit of their number."),
	}
}

// Describe returns the descriptions of the keys of on-demand probes.
func (s *onDemandSection) Describe() []option.Description {
	return []option.Description{
		option.Value(&s.Targets, nil, "What may be measured: names, \"*.\" and the end of names, addresses and networks. A name is measured only at an address that the list has too. Loopback "+
			"addresses and link-local ones of IPv4 need a network of their own range; link-local ones of IPv6 need an interface, which a client may not choose, and are never measured.").WithExample(`["*.example.net", 192.0.2.0/24, "2001:db8::/32"]`).
			Required(`list the names and networks that may be measured, such as ["*.example.net", 192.0.2.0/24]`),
		option.Value(&s.Ports, []int{stampfmt.Port}, "The UDP ports that may be measured; a target without a port has the first one."),
		option.Value(&s.Modules, nil, "Sets of options: the keys of a light probe, and the number of test packets, count. scrape_timeout must be "+ondemand.ReplyTime.String()+
			" longer than the measurement."+strings.Join(s.onceDocs(), "")).
			WithExample("[{name: reachable, type: stamp, count: 5}, {name: voice, type: stamp, count: 100, interval: 20ms, dscp: 46, loss_timeout: 1s}]").
			Required("list at least one, such as {name: voice, type: stamp, count: 20, interval: 20ms}"),
		option.Number(&s.MaxConcurrent, 4, 1, maxOnDemandRunning, "Measurements at the same time, of one client one fewer; others wait while their scrape_timeout allows it."),
		option.Number(&s.TargetPause, time.Second, 0, time.Minute, "Least time between the begins of two measurements of one address."),
	}
}

// onceDocs are what the types say of single measurements.
func (s *onDemandSection) onceDocs() (docs []string) {
	for _, t := range s.probes {
		if once, ok := t.(probe.OnDemand); ok {
			docs = append(docs, " Type "+t.Name()+": "+once.OnceDoc())
		}
	}
	return docs
}

// Describe returns the description of the key of a module.
func (o *moduleOptions) Describe() []option.Description {
	return []option.Description{option.Number(&o.Count, defaultOnDemandCount, 1, maxOnDemandCount, "Number of test packets.")}
}
