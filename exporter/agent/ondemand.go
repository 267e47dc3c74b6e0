package agent

import (
	"errors"
	"log/slog"
	"slices"
	"time"

	"oneway.example/exporter/agent/config"
	"oneway.example/exporter/agent/ondemand"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/probe"
)

// Limits of on-demand probes.
const (
	defaultOnDemandCount = 10
	maxOnDemandCount     = 1000
	maxOnDemandRunning   = 256
)

// onDemandSection has what clients of the web server may measure.
type onDemandSection struct {
	Modules       []config.Probe `yaml:"modules"`
	Targets       []string       `yaml:"targets"`
	Ports         []int          `yaml:"ports"`
	MaxConcurrent int            `yaml:"max_concurrent"`
	TargetPause   time.Duration  `yaml:"target_pause"`

	probes []probe.Type     // that describe their single measurements
	config *ondemand.Config // nil: not configured
}

// moduleOptions are the keys of a module beside those of its probe.
type moduleOptions struct {
	Count uint64 `yaml:"count"`
}

func (s *onDemandSection) decode(c *config.Config) error {
	option.SetDefaults(s)
	return c.OnDemand.Decode(s)
}

func (s *onDemandSection) plan(c *config.Config, m *maker) config.Problems {
	if !c.OnDemand.Given() {
		return nil
	}
	targets, err := ondemand.NewTargets(s.Targets, s.Ports)
	found := slices.Concat(config.CheckModules(s.Modules), c.OnDemand.Problems(errors.Join(err, option.Check(s))))
	if len(found) > 0 {
		return found
	}
	s.config = &ondemand.Config{Targets: targets, Port: uint16(s.Ports[0]), MaxConcurrent: s.MaxConcurrent, TargetPause: s.TargetPause}
	for i := range s.Modules {
		one, err := m.module(&s.Modules[i])
		found = append(found, s.Modules[i].Options.Problems(err)...)
		s.config.Modules = append(s.config.Modules, one)
	}
	return found
}

// module makes a module, and checks its options.
func (m *maker) module(p *config.Probe) (out ondemand.Module, err error) {
	selected, err := option.Select("type", p.Type, m.options.Types.Probes)
	if err != nil {
		return out, err
	}
	kind, onDemand := selected.(probe.OnDemand)
	if _, loadTest := selected.(probe.LoadTest); !onDemand && !loadTest {
		return out, option.Errorf("type", "is %q, which measures continuously only; it must be a light probe that measures on demand, such as stamp", p.Type)
	}
	if !onDemand {
		return out, option.Errorf("type", "is %q, a load test; on-demand probes are light, since every client of the web server could fill the link. "+
			"Give the load test a path and a schedule, or use \"oneway test\"", p.Type)
	}
	profile, wrong := profileOf(p.Options, p.Profile, metric.Full)
	if wrong != nil {
		return out, wrong
	}
	options, plan := p.Options, m.plan
	construct := func(sink metric.Sink, log *slog.Logger, t probe.Target, own *moduleOptions) (probe.Once, error) {
		env := probe.Env{
			Sink: sink, Log: log, Profile: profile, Clock: m.clock, Pacer: m.pacer, Calibration: plan.calibration,
			Links: m.shared.links, Reports: m.shared.reports, HelperGroup: m.helperGroup,
		}
		return kind.NewOnce(env, t, func(into ...any) error { return options.DecodeAll(append(into, own)...) })
	}
	own := option.Defaults[moduleOptions]()
	once, err := construct(metric.Discard{}, m.log, probe.Target{Path: p.Name, Probe: p.Name, Peer: ondemand.Placeholder}, &own)
	if err != nil {
		return out, err
	}
	if err := option.Check(&own); err != nil {
		return out, err
	}
	if longest := once.Longest(own.Count); longest > ondemand.MaxTime {
		return out, option.Errorf("count", "is %d; with the interval and the loss_timeout of this module a measurement would take up to %v, and it must end within %v",
			own.Count, longest.Round(time.Second), ondemand.MaxTime)
	}
	return ondemand.Module{Name: p.Name, Type: p.Type, Count: own.Count, New: func(sink metric.Sink, log *slog.Logger, t probe.Target) (probe.Once, error) {
		return construct(sink, log, t, &moduleOptions{})
	}}, nil
}

// OnDemand measures what clients request. It refuses all requests without the section on_demand, and while the agent does
// not run.
func (a *Agent) OnDemand() *ondemand.Service { return a.onDemand }

// OnDemandStatus is the status of on-demand probes.
type OnDemandStatus struct {
	ondemand.Status
	// Targets are the configured ones.
	Targets []string `json:"targets"`
}

func (s *onDemandSection) show(of *ondemand.Service, into *Status) {
	if now := of.Status(); s.config != nil && now != nil {
		into.OnDemand = &OnDemandStatus{*now, s.Targets}
	}
}
