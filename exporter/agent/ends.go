package agent

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/common/version"

	"oneway.example/exporter/agent/config"
	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/keyfile"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadserver"
	"oneway.example/exporter/net/listen"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/probe/calibration"
	"oneway.example/exporter/probe/report"
	"oneway.example/exporter/reflector"
)

// reflectorSection is the section of the reflector.
type reflectorSection struct {
	reflector.Section

	options reflector.Options
	task    *task // nil: not configured
}

func (s *reflectorSection) decode(c *config.Config) error {
	option.SetDefaults(&s.Section)
	return c.Reflector.DecodeAll(&s.Section, &s.options)
}

func (s *reflectorSection) plan(c *config.Config, m *maker) (found config.Problems) {
	if !c.Reflector.Given() {
		return nil
	}
	identity := *s // without secrets: a change of them keeps the sessions
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
		o.Keys = append(o.Keys, stampfmt.NewKey(one))
	}
	s.task, found = m.place(c.Reflector, &task{
		key: "reflector", what: "the reflector", pause: listen.RetryInterval, log: m.log.With("component", "reflector"), identity: identity, secrets: secrets,
		make: func(sink metric.Sink, _ *metric.Scopes, log *slog.Logger) (runner, error) {
			return reflector.New(o, reflector.Env{Log: log, Sink: sink, Clock: clock.Widen(m.clock, calibration.ModerationAt(o.Listen))})
		},
		renew: func(r runner) error { return r.(*reflector.Reflector).SetKeys(o.Keys) },
	}, s.Listen.Check(stampfmt.Port), o.Check())
	return found
}

// ReflectorStatus is the status of the reflector.
type ReflectorStatus struct {
	// Listen are the configured addresses.
	Listen []string `json:"listen"`
	// Listening: its sockets are open. Error is why they are not, or on which addresses it does not listen.
	Listening bool   `json:"listening"`
	Error     string `json:"error,omitempty"`
	// Packets is the number of received packets, Replied the number of reflected ones.
	Packets  uint64 `json:"received_packets"`
	Replied  uint64 `json:"reflected_packets"`
	Sessions int    `json:"sessions"`
	// KeyFaults are the packets of the last minutes that could not be authenticated; nil: none.
	KeyFaults *KeyFaults `json:"key_faults,omitempty"`
	// Forbidden are the replies of the last 5 minutes that this host did not let out (EPERM: its firewall or its full table of connections); 0: fewer than three.
	Forbidden uint64 `json:"not_permitted_packets,omitempty"`
}

// leastForbidden is the number of such replies from which on they are told.
const leastForbidden = 3

// KeyFaults are test packets whose sender has another key than the reflector, or one of the two has none.
type KeyFaults struct {
	// Window is the time in which Packets arrived, all that could not be authenticated. Damage on the path and port scans
	// cause single ones.
	Window  report.Seconds `json:"window_seconds"`
	Packets uint64         `json:"rejected_packets"`
	// Sources have sent several each; their number is limited.
	Sources []KeyFault `json:"sources"`
}

// KeyFault is a source of such packets.
type KeyFault struct {
	// Source is its address without the port.
	Source string `json:"source"`
	// Reason is how the keys differ.
	Reason string `json:"reason"`
	// Packets is the number of its packets, Last is when the newest arrived.
	Packets uint64    `json:"rejected_packets"`
	Last    time.Time `json:"last_packet"`
}

func keyFaults(found reflector.KeyFaults, now time.Time) *KeyFaults {
	if found.Packets() == 0 {
		return nil
	}
	k := &KeyFaults{Window: report.Seconds(reflector.KeyFaultWindow), Packets: found.Packets(), Sources: []KeyFault{}}
	for _, f := range found.Sources {
		k.Sources = append(k.Sources, KeyFault{f.Source.String(), f.Reason.String(), f.Packets, now.Add(-f.Ago).UTC()})
	}
	return k
}

// notListening is why a server that runs does not listen on some of its addresses; empty if it listens on all.
func notListening(failed []listen.Failed) string {
	var all []string
	for _, f := range failed {
		all = append(all, f.Err.Error())
	}
	return strings.Join(all, "; ")
}

func (s *reflectorSection) show(into *Status) {
	if s.task == nil {
		return
	}
	stats := s.task.running().(*reflector.Reflector).Stats()
	r := &ReflectorStatus{Error: s.task.fault(), Packets: stats.Packets(), Replied: stats.Answered(), Sessions: stats.Sessions}
	for _, l := range s.Listen {
		r.Listen = append(r.Listen, l.String())
	}
	r.Listening = r.Error == "" && len(stats.Addrs) > 0
	r.Error = cmp.Or(r.Error, notListening(stats.NotListening))
	r.KeyFaults = keyFaults(stats.KeyFaults, time.Now())
	if stats.Forbidden >= leastForbidden {
		r.Forbidden = stats.Forbidden
	}
	into.Reflector = r
}

// loadServerSection is the section of the load server.
type loadServerSection struct {
	loadserver.Section

	options loadserver.Options
	shared  *sharedSection
	task    *task // nil: not configured
}

func (s *loadServerSection) decode(c *config.Config) error {
	option.SetDefaults(&s.Section)
	return c.LoadServer.DecodeAll(&s.Section, &s.options)
}

func (s *loadServerSection) plan(c *config.Config, m *maker) (found config.Problems) {
	if !c.LoadServer.Given() {
		return nil
	}
	var beside option.Listens
	if c.Reflector.Given() {
		beside = m.plan.reflector.Listen
	}
	s.options.Listen, s.options.StateDir = s.Listen.Addrs(), s.shared.stateDir
	o := s.options
	o.Given = c.LoadServer.Has
	s.task, found = m.place(c.LoadServer, &task{
		// The load server reads changed files again without ending sessions.
		key: "load_server", what: "the load server", pause: listen.RetryInterval, log: m.log.With("component", "load_server"), identity: s.options, files: true,
		make: func(sink metric.Sink, _ *metric.Scopes, log *slog.Logger) (runner, error) {
			return loadserver.New(o, loadserver.Env{
				Log: log, Sink: sink, Clock: clock.Widen(m.clock, calibration.ModerationAt(o.Listen)), Links: m.shared.links, Local: m.shared.local,
				Traffic: m.options.Types.Traffic, Version: version.Version,
			})
		},
	}, s.Listen.Check(loadcontrol.DefaultPort), s.Listen.CheckBeside("reflector", beside))
	return found
}

// LoadServerStatus is the status of the load server.
type LoadServerStatus struct {
	// Listen are the configured addresses.
	Listen []string `json:"listen"`
	// Running: its sockets are open. Error is why they are not, or on which addresses it does not listen.
	Running bool   `json:"running"`
	Error   string `json:"error,omitempty"`
	// Pin is the hash of its key, for clients.
	Pin string `json:"pin,omitempty"`
	// Connections and Sessions are the numbers of open ones.
	Connections int `json:"connections"`
	Sessions    int `json:"sessions"`
	// Opened sessions, Refused requests, and Received and Sent bytes of UDP payload since its start.
	Opened   uint64 `json:"opened_sessions"`
	Refused  uint64 `json:"refused_requests"`
	Received int64  `json:"received_bytes"`
	Sent     int64  `json:"sent_bytes"`
}

func (s *loadServerSection) show(into *Status) {
	if s.task == nil {
		return
	}
	now := s.task.running().(*loadserver.LoadServer).Status()
	r := &LoadServerStatus{
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
	r.Error = cmp.Or(r.Error, notListening(now.NotListening))
	into.LoadServer = r
}

// listenTimeout is the longest wait for sockets: a state directory on a disk that hangs keeps no agent from measuring.
const listenTimeout = 10 * time.Second

// failureCheck is the time between two looks for a failure, which closes no channel.
const failureCheck = 50 * time.Millisecond

// awaitListeners waits until each server has tried to listen once, so that the agent is ready, for the service manager, when others
// reach it. A task may be nil.
func awaitListeners(ctx context.Context, servers ...*task) {
	ctx, cancel := context.WithTimeout(ctx, listenTimeout)
	defer cancel()
	for _, t := range servers {
		if t != nil {
			t.awaitListening(ctx)
		}
	}
}

// awaitListening waits until the sockets of a server are open, or cannot be opened at present.
func (t *task) awaitListening(ctx context.Context) {
	for {
		restarts, err := t.unit.state()
		s, ok := t.running().(interface{ Started() <-chan struct{} })
		if !ok || err != nil || restarts > 0 {
			return
		}
		select {
		case <-s.Started():
			return
		case <-ctx.Done():
			return
		case <-time.After(failureCheck):
		}
	}
}
