package agent

import (
	"time"

	"oneway.example/exporter/probe"
)

// Status answers "is it working, and if not why".
type Status struct {
	// Started is when Run began; zero: it does not run.
	Started time.Time
	Config  ConfigStatus
	Clock   ClockStatus
	// Receiver and Pulse are nil if none is configured.
	Receiver *ReceiverStatus
	Pulse    *PulseStatus
	// Reflector is nil if none is configured.
	Reflector *ReflectorStatus
	// Responder is nil if none is configured.
	Responder *ResponderStatus
	// Links are by name.
	Links   []LinkStatus
	Reports ReportsStatus
	// Paths are in the order of the configuration.
	Paths []PathStatus
}

// ConfigStatus is about the configuration in force.
type ConfigStatus struct {
	File string
	// Loaded is when it was put in force.
	Loaded time.Time
	// Error is why a later reload failed; empty: none did.
	Error string
}

// ClockStatus is about this host's clock.
type ClockStatus struct {
	// Source is that of the configuration, State that of clock.State.
	Source, State string
	// Trusted: one-way delays are valid, within Bound.
	Trusted bool
	Bound   time.Duration
	// Reason is why it is not trusted, Error why its monitor does not run.
	Reason, Error string
	Offset        time.Duration
	Steps         uint64
	// LastUpdate is when the clock's source was last heard; zero: unknown.
	LastUpdate time.Time
}

// ReflectorStatus is about the reflector.
type ReflectorStatus struct {
	// Listen are the configured addresses.
	Listen []string
	// Answering: its sockets are open. Error is why they are not.
	Answering bool
	Error     string
	// Packets have reached it, Answered of them were answered.
	Packets, Answered uint64
	Sessions          int
}

// PathStatus is about one path.
type PathStatus struct {
	Name, Peer string
	Probes     []ProbeStatus
}

// Health of a probe, in one word.
type Health string

// The healths.
const (
	// Up: answers come and everything is measured.
	Up Health = "up"
	// Impaired: answers come, but something cannot be measured.
	Impaired Health = "impaired"
	// Down: no answers come.
	Down Health = "down"
	// Starting: nothing is known yet.
	Starting Health = "starting"
	// Failed: the probe itself does not run.
	Failed Health = "failed"
)

// ProbeStatus is about one probe of a path.
type ProbeStatus struct {
	Name, Type string
	Health     Health
	// Restarts counts how often the probe was begun again after a failure.
	Restarts int
	probe.Status
}

// Status may be called at any time.
func (a *Agent) Status() Status {
	a.mu.Lock()
	s := Status{Started: a.started, Config: ConfigStatus{File: a.options.ConfigFile, Loaded: a.loaded}}
	if a.ctx == nil {
		s.Started = time.Time{}
	}
	if a.reloadErr != nil {
		s.Config.Error = a.reloadErr.Error()
	}
	jobs := make(map[string]*job, len(a.jobs))
	for _, j := range a.jobs {
		jobs[j.key()] = j
	}
	c := a.config
	a.mu.Unlock()
	s.Clock, s.Reflector, s.Responder = a.clock.status(), a.reflector.status(), a.responder.status()
	s.Links, s.Reports = a.shared.status()
	s.Receiver, s.Pulse = receiverStatus(a.receiver.look()), pulseStatus(a.pulse.look())
	for _, p := range c.Paths {
		path := PathStatus{Name: p.Name, Peer: p.Peer}
		for _, one := range p.Probes {
			if j := jobs[p.Name+"\x00"+one.Name]; j != nil {
				path.Probes = append(path.Probes, j.status())
			}
		}
		s.Paths = append(s.Paths, path)
	}
	return s
}

func (j *job) status() ProbeStatus {
	p, _ := j.current()
	s := ProbeStatus{Name: j.target.Probe, Type: j.kind.Name(), Status: p.Status()}
	restarts, err := j.unit.state()
	s.Restarts = restarts
	switch {
	case err != nil:
		s.Health, s.Up, s.State, s.Reason = Failed, false, "failed, will be tried again", err.Error()
	case s.Up && s.Reason == "":
		s.Health = Up
	case s.Up:
		s.Health = Impaired
	case s.LastSuccess.IsZero() && s.Reason == "":
		s.Health = Starting
	default:
		s.Health = Down
	}
	return s
}

func unitError(u *unit) string {
	if _, err := u.state(); err != nil {
		return err.Error()
	}
	return ""
}
