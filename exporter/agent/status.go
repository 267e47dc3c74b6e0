package agent

import (
	"slices"
	"time"

	"oneway.example/exporter/agent/maintenance"
	"oneway.example/exporter/core/document"
	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/report"
)

// Status is the state of all parts of the agent, with the reason of each failure. Its times are UTC. Its JSON is
// /api/v1/status.
type Status struct {
	document.Envelope
	// Started is when Run began; zero: not running.
	Started time.Time    `json:"started,omitzero"`
	Config  ConfigStatus `json:"config"`
	Clock   ClockStatus  `json:"clock"`
	// Watchers are in the order of the configuration; Receiver has the details of the watcher of clock.gpsd, and Pulse of the one of
	// clock.pps.
	Watchers []WatcherStatus `json:"watchers,omitempty"`
	Receiver any             `json:"receiver,omitempty"`
	Pulse    any             `json:"pulse,omitempty"`
	// Reflector is nil if none is configured.
	Reflector *ReflectorStatus `json:"reflector,omitempty"`
	// LoadServer is nil if none is configured.
	LoadServer *LoadServerStatus `json:"load_server,omitempty"`
	// OnDemand is nil if nothing is measured on demand.
	OnDemand *OnDemandStatus `json:"on_demand,omitempty"`
	// Maintenance are the windows of planned work that are open or will be.
	Maintenance []maintenance.Entry `json:"maintenance,omitempty"`
	// Links are sorted by name.
	Links   []LinkStatus  `json:"links,omitempty"`
	Reports ReportsStatus `json:"reports"`
	// Outputs are in the order of the configuration.
	Outputs []OutputStatus `json:"outputs,omitempty"`
	// Paths are in the order of the configuration.
	Paths []PathStatus `json:"paths"`
}

// ConfigStatus is the status of the configuration in use.
type ConfigStatus struct {
	File string `json:"file"`
	// Loaded is when the agent began to use it.
	Loaded time.Time `json:"loaded,omitzero"`
	// Error is the error of the last reload; empty: it succeeded.
	Error string `json:"error,omitempty"`
}

// PathStatus is the status of a path.
type PathStatus struct {
	Name string `json:"name"`
	// Peer is the configured peer, Host the peer without its port.
	Peer string `json:"peer"`
	Host string `json:"-"`
	// Labels are those of the configuration.
	Labels map[string]string `json:"labels,omitempty"`
	// Maintenance is the planned work on the path that is under way; nil: there is none. What is measured, and the state, go on as always.
	Maintenance *maintenance.State `json:"maintenance,omitempty"`
	Probes      []ProbeStatus      `json:"probes"`
}

// ProbeStatus is the status of one probe of a path.
type ProbeStatus struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Health Health `json:"health"`
	// PathState is the state of the path by a light probe, as oneway_path_state, and PathStateReason why, as oneway_path_state_reason; empty: a load test.
	PathState       string `json:"path_state,omitempty"`
	PathStateReason string `json:"path_state_reason,omitempty"`
	// Cause is why it is not up, in one word: a reason of METRICS.md, or another one. Empty: it is up, or has just started. Reason is
	// the same in a sentence.
	Cause  string `json:"reason,omitempty"`
	Reason string `json:"error,omitempty"`
	// LastSuccess is when the last reply arrived, or the last run completed.
	LastSuccess time.Time `json:"last_success,omitzero"`
	// Next is when a load test is due.
	Next time.Time `json:"next_run,omitzero"`
	// Restarts is the number of restarts after a failure.
	Restarts int `json:"restarts"`
	// State and Results are for display.
	State   string         `json:"-"`
	Results []probe.Result `json:"-"`
	probe.LightValues
	// Values has what the type measures besides the values that light probes share.
	Values any `json:"values,omitempty"`
	// LastRun is the newest run of a load test that had a session, since when reports are stored.
	LastRun *report.Header `json:"last_run,omitempty"`
	// Incident is the newest report of its last minutes; nil: none.
	Incident *report.Header `json:"incident,omitempty"`
	// StoresIncidents: its last packets can be stored, for display.
	StoresIncidents bool `json:"-"`
	// LoadTest: it fills a link, for display.
	LoadTest bool `json:"-"`
}

// Status returns the current status. It may be called at any time.
func (a *Agent) Status() Status {
	a.mu.Lock()
	p := a.inForce
	s := Status{Envelope: document.New(document.Status), Started: a.started, Config: ConfigStatus{File: a.options.ConfigFile, Loaded: a.loaded}, Paths: []PathStatus{}}
	if a.ctx == nil {
		s.Started = time.Time{}
	}
	if a.reloadErr != nil {
		s.Config.Error = a.reloadErr.Error()
	}
	a.mu.Unlock()
	a.shared.show(&s)
	p.clock.show(&s)
	p.watchers.show(&s)
	p.reflector.show(&s)
	p.loadServer.show(&s)
	p.outputs.show(&s)
	p.onDemand.show(a.onDemand, &s)
	labels := map[string]map[string]string{}
	for _, path := range p.paths {
		labels[path.Name] = path.Labels
	}
	runs, incidents := a.shared.reports.Newest()
	s.Maintenance = a.shared.work.book.List()
	work, facts := a.shared.work.book.Now(), map[string]maintenance.Path(nil)
	if !work.None() {
		facts = p.selectable()
	}
	for _, j := range p.jobs {
		t := j.target
		if last := len(s.Paths) - 1; last < 0 || s.Paths[last].Name != t.Path {
			s.Paths = append(s.Paths, PathStatus{Name: t.Path, Peer: t.Peer, Host: t.Host(), Labels: labels[t.Path], Maintenance: work.OfPath(facts[t.Path])})
		}
		of := &s.Paths[len(s.Paths)-1]
		one := j.status()
		if why, known := a.shared.states.reasonOf(j.task); known {
			one.judged(why)
		}
		if wrong := a.shared.misnamed.reason(t.Path); wrong != "" && (one.Reason == "" || one.Cause == probe.CauseOtherHost) {
			one.Cause, one.Reason = probe.CauseOtherHost, wrong
		} else if wrong != "" {
			one.Reason += "; " + wrong
		}
		key := report.Probe{Path: t.Path, Probe: t.Probe}
		one.LastRun, one.Incident = runs[key], incidents[key]
		if one.LoadTest {
			one.Health = loadTestHealth(one.Health, one.LastRun)
		}
		of.Probes = append(of.Probes, one)
	}
	return s
}

func (j *job) status() ProbeStatus {
	prober := j.running().(probe.Prober)
	now := prober.Status()
	restarts, err := j.unit.state()
	s := ProbeStatus{
		Name: j.target.Probe, Type: j.kind, State: now.State, Reason: now.Reason, LastSuccess: now.LastSuccess.UTC(), Restarts: restarts, Results: now.Results,
		Cause: now.Cause, Next: now.Next.UTC(), LightValues: now.Light, Values: now.Values,
	}
	_, s.LoadTest = prober.(probe.LinkUser)
	s.StoresIncidents = j.storesIncidents()
	switch {
	case err != nil:
		s.Health, s.State, s.Cause, s.Reason = Failed, failed, probe.CauseFailed, errtext.Words(err)
	case now.Up && s.Reason == "":
		s.Health = Up
	case now.Up:
		s.Health = Impaired
	case s.LastSuccess.IsZero() && s.Reason == "":
		s.Health = Starting
	default:
		s.Health = Down
	}
	return s
}

// loadTestHealth is the health of a load test, which has no replies: it fails, and before the first run of this agent it has the health
// of the last one.
func loadTestHealth(h Health, last *report.Header) Health {
	switch {
	case h == Starting && last != nil:
		return RunHealth(*last)
	case h == Down:
		return Failed
	}
	return h
}

// RunHealth is the health that represents the result of a run. A run without values has the same as a load test whose last run it was.
func RunHealth(h report.Header) Health {
	switch {
	case slices.Contains(runreason.Failures(), h.Result):
		return Failed
	case h.Result == runreason.Skipped:
		return Starting
	case h.Result == report.Completed && h.Kind != report.Incident:
		return Up
	}
	return Impaired
}
