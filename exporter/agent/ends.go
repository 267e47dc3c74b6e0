package agent

import (
	"cmp"
	"log/slog"

	"github.com/prometheus/common/version"

	"oneway.example/exporter/calibration"
	"oneway.example/exporter/clock"
	"oneway.example/exporter/config"
	"oneway.example/exporter/control"
	"oneway.example/exporter/keyfile"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/option"
	"oneway.example/exporter/reflector"
	"oneway.example/exporter/responder"
	"oneway.example/exporter/traffics"
	"oneway.example/exporter/wire/stamp"
)

// reflectorSection is what a configuration says of the reflector besides its Options.
type reflectorSection struct {
	Listen    option.Listens `yaml:"listen"`
	KeyFile   string         `yaml:"key_file"`
	RateLimit struct {
		PacketsPerSecond int `yaml:"packets_per_second"`
		Burst            int `yaml:"burst"`
	} `yaml:"rate_limit"`

	options reflector.Options
	task    *task // nil: it is not configured
}

func (s *reflectorSection) decode(c *config.Config) error {
	s.Listen = option.Listens{{Port: stamp.Port}}
	return c.Reflector.DecodeAll(s, &s.options)
}

func (s *reflectorSection) plan(c *config.Config, m *maker) (found config.Problems) {
	if !c.Reflector.Given() {
		return nil
	}
	identity := *s // before secrets are in it, with which its sessions go on
	o := s.options
	o.Given, o.Listen = c.Reflector.Has, s.Listen.Addrs()
	o.RatePackets, o.RateBurst = s.RateLimit.PacketsPerSecond, s.RateLimit.Burst
	var secrets [][]byte
	if s.KeyFile != "" {
		var err error
		if secrets, err = keyfile.Load(s.KeyFile); err != nil {
			return c.Reflector.Problems(option.Errorf("key_file", "cannot be used: %v", err))
		}
	}
	for _, one := range secrets {
		o.Keys = append(o.Keys, stamp.NewKey(one))
	}
	s.task, found = m.place(c.Reflector, &task{
		key: "reflector", what: "the reflector", log: m.log.With("component", "reflector"), identity: identity, secrets: secrets,
		make: func(sink metric.Sink, log *slog.Logger) (runner, error) {
			return reflector.New(o, reflector.Env{Log: log, Sink: sink, Clock: clock.Widen(m.clock, calibration.ModerationAt(o.Listen))})
		},
		renew: func(r runner) error { return r.(*reflector.Reflector).SetKeys(o.Keys) },
	}, s.Listen.Check(stamp.Port), o.Check())
	return found
}

// ReflectorStatus is about the reflector.
type ReflectorStatus struct {
	// Listen are the configured addresses.
	Listen []string `json:"listen"`
	// Answering: its sockets are open. Error is why they are not.
	Answering bool   `json:"answering"`
	Error     string `json:"error,omitempty"`
	// Packets have reached it, Answered of them were answered.
	Packets  uint64 `json:"packets"`
	Answered uint64 `json:"answered"`
	Sessions int    `json:"sessions"`
}

func (s *reflectorSection) show(into *Status) {
	if s.task == nil {
		return
	}
	stats := s.task.running().(*reflector.Reflector).Stats()
	r := &ReflectorStatus{Error: s.task.fault(), Packets: stats.Packets(), Answered: stats.Answered(), Sessions: stats.Sessions}
	for _, l := range s.Listen {
		r.Listen = append(r.Listen, l.String())
	}
	r.Answering = r.Error == "" && len(stats.Addrs) > 0
	into.Reflector = r
}

// responderSection is what a configuration says of the responder besides its Options.
type responderSection struct {
	Listen option.Listens `yaml:"listen"`

	options responder.Options
	shared  *sharedSection
	task    *task // nil: it is not configured
}

func (s *responderSection) decode(c *config.Config) error {
	s.Listen = option.Listens{{Port: control.DefaultPort}}
	return c.Responder.DecodeAll(s, &s.options)
}

func (s *responderSection) plan(c *config.Config, m *maker) (found config.Problems) {
	if !c.Responder.Given() {
		return nil
	}
	s.options.Listen, s.options.StateDir = s.Listen.Addrs(), s.shared.stateDir
	o := s.options
	o.Given = c.Responder.Has
	s.task, found = m.place(c.Responder, &task{
		// It reads its files again itself when they change, and ends no session.
		key: "responder", what: "the responder", log: m.log.With("component", "responder"), identity: s.options, files: true,
		make: func(sink metric.Sink, log *slog.Logger) (runner, error) {
			return responder.New(o, responder.Env{
				Log: log, Sink: sink, Clock: clock.Widen(m.clock, calibration.ModerationAt(o.Listen)), Links: m.shared.links,
				Traffic: traffics.All(), Version: version.Version,
			})
		},
	}, s.Listen.Check(control.DefaultPort), o.Check())
	return found
}

// link is what its heavy tests hold.
func (s *responderSection) link() string { return cmp.Or(s.options.Link, responder.DefaultLink) }

// ResponderStatus is about the far end of others' heavy tests.
type ResponderStatus struct {
	// Listen are the configured addresses.
	Listen []string `json:"listen"`
	// Running: its sockets are open. Error is why they are not.
	Running bool   `json:"running"`
	Error   string `json:"error,omitempty"`
	// Pin is the hash of its key, for clients.
	Pin string `json:"pin,omitempty"`
	// Connections and Sessions are open now.
	Connections int `json:"connections"`
	Sessions    int `json:"sessions"`
	// Opened sessions and Refused requests since it started, and the octets of UDP
	// payload that it has received and sent.
	Opened   uint64 `json:"opened_sessions"`
	Refused  uint64 `json:"refused_requests"`
	Received int64  `json:"received_bytes"`
	Sent     int64  `json:"sent_bytes"`
}

func (s *responderSection) show(into *Status) {
	if s.task == nil {
		return
	}
	now := s.task.running().(*responder.Responder).Status()
	r := &ResponderStatus{
		Error: s.task.fault(), Pin: now.Pin, Connections: now.Connections, Sessions: now.Sessions, Opened: now.Opened,
		Received: now.Received, Sent: now.Sent,
	}
	for _, a := range s.options.Listen {
		r.Listen = append(r.Listen, a.String())
	}
	for _, n := range now.Refused {
		r.Refused += n
	}
	r.Running = r.Error == "" && len(now.Addrs) > 0
	into.Responder = r
}
