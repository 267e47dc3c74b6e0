package agent

import (
	"encoding/json"
	"time"

	"oneway.example/exporter/probe"
	"oneway.example/exporter/report"
)

// Seconds is a time that JSON has as a number of seconds.
type Seconds time.Duration

// MarshalJSON is the number.
func (s Seconds) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(s).Seconds()) }

// Status answers "is it working, and if not why". Its times are UTC. Its JSON is /api/v1/status.
type Status struct {
	// Started is when Run began; zero: it does not run.
	Started time.Time    `json:"started,omitzero"`
	Config  ConfigStatus `json:"config"`
	Clock   ClockStatus  `json:"clock"`
	// Receiver and Pulse are nil if none is configured.
	Receiver *ReceiverStatus `json:"receiver,omitempty"`
	Pulse    *PulseStatus    `json:"pulse,omitempty"`
	// Reflector is nil if none is configured.
	Reflector *ReflectorStatus `json:"reflector,omitempty"`
	// LoadServer is nil if none is configured.
	LoadServer *LoadServerStatus `json:"load_server,omitempty"`
	// Links are by name.
	Links   []LinkStatus  `json:"links,omitempty"`
	Reports ReportsStatus `json:"reports"`
	// Paths are in the order of the configuration.
	Paths []PathStatus `json:"paths"`
}

// ConfigStatus is about the configuration in force.
type ConfigStatus struct {
	File string `json:"file"`
	// Loaded is when it was put in force.
	Loaded time.Time `json:"loaded,omitzero"`
	// Error is why a later reload failed; empty: none did.
	Error string `json:"error,omitempty"`
}

// PathStatus is about one path.
type PathStatus struct {
	Name string `json:"name"`
	// Peer is as configured, Host without a port.
	Peer   string        `json:"peer"`
	Host   string        `json:"-"`
	Probes []ProbeStatus `json:"probes"`
}

// Health of a probe, in one word.
type Health string

// The healths.
const (
	// Up: answers come and everything is measured.
	Up Health = "up"
	// Impaired: answers come, but something cannot be measured.
	Impaired Health = "impaired"
	// Down: no replies come.
	Down Health = "down"
	// Starting: nothing is known yet.
	Starting Health = "starting"
	// Failed: the probe itself does not run.
	Failed Health = "failed"
)

// ProbeStatus is about one probe of a path.
type ProbeStatus struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Health Health `json:"health"`
	// State, Reason, LastSuccess and Results are those of probe.Status.
	State       string    `json:"state"`
	Reason      string    `json:"reason,omitempty"`
	LastSuccess time.Time `json:"last_success,omitzero"`
	// Restarts counts how often the probe was begun again after a failure.
	Restarts int            `json:"restarts"`
	Results  []probe.Result `json:"results,omitempty"`
	// Incident is the newest report of its last minutes; nil: there is none.
	Incident *report.Header `json:"incident,omitempty"`
}

// Status may be called at any time.
func (a *Agent) Status() Status {
	a.mu.Lock()
	p := a.inForce
	s := Status{Started: a.started, Config: ConfigStatus{File: a.options.ConfigFile, Loaded: a.loaded}, Paths: []PathStatus{}}
	if a.ctx == nil {
		s.Started = time.Time{}
	}
	if a.reloadErr != nil {
		s.Config.Error = a.reloadErr.Error()
	}
	a.mu.Unlock()
	a.shared.show(&s)
	p.clock.show(&s)
	p.receiver.show(&s)
	p.pulse.show(&s)
	p.reflector.show(&s)
	p.loadServer.show(&s)
	incident := a.shared.reports.Incident()
	for _, j := range p.jobs {
		t := j.target
		if last := len(s.Paths) - 1; last < 0 || s.Paths[last].Name != t.Path {
			s.Paths = append(s.Paths, PathStatus{Name: t.Path, Peer: t.Peer, Host: t.Host()})
		}
		of := &s.Paths[len(s.Paths)-1]
		of.Probes = append(of.Probes, j.status())
		of.Probes[len(of.Probes)-1].Incident = incident[[2]string{t.Path, t.Probe}]
	}
	return s
}

func (j *job) status() ProbeStatus {
	now := j.running().(probe.Prober).Status()
	restarts, err := j.unit.state()
	s := ProbeStatus{
		Name: j.target.Probe, Type: j.kind, State: now.State, Reason: now.Reason, LastSuccess: now.LastSuccess.UTC(), Restarts: restarts, Results: now.Results,
	}
	switch {
	case err != nil:
		s.Health, s.State, s.Reason = Failed, "failed, will be tried again", err.Error()
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
