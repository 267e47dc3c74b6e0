package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"oneway.example/exporter/calibration"
	"oneway.example/exporter/clock"
	"oneway.example/exporter/clock/none"
	"oneway.example/exporter/config"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/responder"
	"oneway.example/exporter/sched"
)

// plan is a checked configuration, ready to be put in force.
type plan struct {
	config    *config.Config
	jobs      []*job
	clock     config.Clock
	reflector *reflectorPlan     // nil: none is wanted
	responder *responder.Options // nil: none is wanted
	// calibration is nil if no file is configured.
	calibration *calibration.Table
}

// Summary counts what a configuration holds.
type Summary struct{ Paths, Probes int }

// Check does all the checks that the start of an agent does. It opens nothing but
// the configuration and the files that it names.
func Check(file string, types []probe.Type) (Summary, error) {
	_, p, err := load(file, types)
	if err != nil {
		return Summary{}, err
	}
	return Summary{Paths: len(p.config.Paths), Probes: len(p.jobs)}, nil
}

// load reads and checks a file, with probers that never run.
func load(file string, types []probe.Type) (*config.Config, *plan, error) {
	c, err := config.Load(file)
	if err != nil {
		return nil, nil, err
	}
	pacer, err := sched.NewPacer()
	if err != nil {
		return nil, nil, fmt.Errorf("agent: %w", err)
	}
	ended, end := context.WithCancel(context.Background())
	end()
	defer func() { _ = pacer.Run(ended) }() // that is how a pacer's timer is freed; it cannot fail
	log := slog.New(slog.DiscardHandler)
	shared, err := newSharedKeeper(metric.Discard{}, log)
	if err != nil {
		return nil, nil, err
	}
	m := &maker{
		types: types,
		env: probe.Env{
			Log: log, Sink: metric.Discard{}, Clock: none.New(metric.Discard{}), Pacer: pacer,
			Links: shared.links, Reports: shared.reports,
		},
	}
	p, err := m.plan(c)
	return c, p, err
}

// plan makes a plan of c that keeps the jobs that are running.
func (a *Agent) plan(c *config.Config) (*plan, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := &maker{
		types: a.options.Types, running: map[string]*job{},
		env: probe.Env{
			Log: a.log, Sink: a.sink, Clock: a.clock, Pacer: a.pacer,
			Links: a.shared.links, Reports: a.shared.reports,
		},
	}
	for _, j := range a.jobs {
		m.running[j.key()] = j
	}
	return m.plan(c)
}

// maker makes probers of configurations.
type maker struct {
	types   []probe.Type
	env     probe.Env
	running map[string]*job
}

func (m *maker) plan(c *config.Config) (*plan, error) {
	p := &plan{config: c, clock: c.Clock}
	var problems config.Problems
	if c.CalibrationFile != "" {
		var err error
		if p.calibration, err = calibration.Load(c.CalibrationFile); err != nil {
			problems = append(problems, c.Problem("calibration_file", "cannot be used: "+err.Error()))
		}
		m.env.Calibration = p.calibration
	}
	for i := range c.Paths {
		for j := range c.Paths[i].Probes {
			one, err := m.job(&c.Paths[i], &c.Paths[i].Probes[j])
			if err != nil {
				problems = append(problems, problemsOf(&c.Paths[i].Probes[j], err)...)
				continue
			}
			p.jobs = append(p.jobs, one)
		}
	}
	if _, err := newMonitor(c.Clock, metric.Discard{}, m.env.Log); err != nil {
		problems = append(problems, c.Problem("clock", "cannot be used: "+err.Error()))
	}
	problems = append(problems, checkWatchers(c, m.env.Log)...)
	var problem *config.Problem
	if p.reflector, problem = planReflector(c, m.env.Clock); problem != nil {
		problems = append(problems, problem)
	}
	if p.responder, problem = planResponder(c, m.env.Clock, m.env.Links); problem != nil {
		problems = append(problems, problem)
	}
	if len(problems) > 0 {
		return nil, problems.Sort()
	}
	return p, nil
}

// job makes the job of a probe, or takes the one that is running already.
func (m *maker) job(path *config.Path, p *config.Probe) (*job, error) {
	i := slices.IndexFunc(m.types, func(t probe.Type) bool { return t.Name() == p.Type })
	if i < 0 {
		return nil, &probe.OptionError{Key: "type", Problem: fmt.Sprintf("is %q; it must be one of %q", p.Type, names(m.types))}
	}
	j := &job{
		kind:     m.types[i],
		target:   probe.Target{Path: path.Name, Probe: p.Name, Peer: path.Peer},
		options:  p.Options,
		identity: p.Type + "\x00" + path.Peer + "\x00" + p.Options.Fingerprint() + "\x00" + m.env.Calibration.Fingerprint(),
		env:      m.env,
	}
	if old := m.running[j.key()]; old != nil && old.identity == j.identity {
		return old, nil
	}
	return j, j.make()
}

func names(types []probe.Type) (all []string) {
	for _, t := range types {
		all = append(all, t.Name())
	}
	return all
}

// problemsOf says where in the file the option stands that a probe refused.
func problemsOf(p *config.Probe, err error) config.Problems {
	var found config.Problems
	var option *probe.OptionError
	switch {
	case errors.As(err, &found):
		return found
	case errors.As(err, &option):
		return config.Problems{p.Options.Problem(option.Key, option.Problem)}
	}
	return config.Problems{p.Options.Problem("", "cannot be used: "+err.Error())}
}

var _ clock.Monitor = (*clockKeeper)(nil)
