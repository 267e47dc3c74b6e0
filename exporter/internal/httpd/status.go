package httpd

import (
	"encoding/json"
	"net/http"
	"time"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/hostport"
)

// The JSON of /api/v1/status. Times are RFC 3339, absent if unknown.
type (
	statusJSON struct {
		Started   *time.Time     `json:"started,omitempty"`
		Config    configJSON     `json:"config"`
		Clock     clockJSON      `json:"clock"`
		Receiver  *receiverJSON  `json:"receiver,omitempty"`
		Pulse     *pulseJSON     `json:"pulse,omitempty"`
		Reflector *reflectorJSON `json:"reflector,omitempty"`
		Responder *responderJSON `json:"responder,omitempty"`
		Links     []linkJSON     `json:"links,omitempty"`
		Reports   reportsJSON    `json:"reports"`
		Paths     []pathJSON     `json:"paths"`
	}
	configJSON struct {
		File   string     `json:"file"`
		Loaded *time.Time `json:"loaded,omitempty"`
		Error  string     `json:"error,omitempty"`
	}
	clockJSON struct {
		Source  string `json:"source"`
		State   string `json:"state"`
		Trusted bool   `json:"trusted"`
		// Bound is absent while the clock is not trusted.
		Bound      *float64   `json:"bound_seconds,omitempty"`
		Offset     float64    `json:"offset_seconds"`
		Reason     string     `json:"reason,omitempty"`
		Error      string     `json:"error,omitempty"`
		Steps      uint64     `json:"steps"`
		LastUpdate *time.Time `json:"last_update,omitempty"`
	}
	receiverJSON struct {
		Name           string     `json:"name"`
		Address        string     `json:"address"`
		Device         string     `json:"device,omitempty"`
		Answering      bool       `json:"gpsd_answering"`
		Connected      bool       `json:"connected"`
		Error          string     `json:"error,omitempty"`
		Fix            string     `json:"fix"`
		SatellitesUsed *int       `json:"satellites_used,omitempty"`
		SatellitesSeen *int       `json:"satellites_seen,omitempty"`
		PulseOffset    *float64   `json:"pulse_offset_seconds,omitempty"`
		LastMessage    *time.Time `json:"last_message,omitempty"`
	}
	pulseJSON struct {
		Name    string     `json:"name"`
		Device  string     `json:"device"`
		Edge    string     `json:"edge"`
		Present bool       `json:"present"`
		Error   string     `json:"error,omitempty"`
		Pulses  uint64     `json:"pulses"`
		Missed  uint64     `json:"missed"`
		Last    *time.Time `json:"last,omitempty"`
		Jitter  *float64   `json:"jitter_seconds,omitempty"`
		// Offset is the clock's, by the pulses alone, within Bound.
		Offset *float64 `json:"fit_offset_seconds,omitempty"`
		Bound  *float64 `json:"fit_error_bound_seconds,omitempty"`
	}
	reflectorJSON struct {
		Listen    []string `json:"listen"`
		Answering bool     `json:"answering"`
		Error     string   `json:"error,omitempty"`
		Packets   uint64   `json:"packets"`
		Answered  uint64   `json:"answered"`
		Sessions  int      `json:"sessions"`
	}
	responderJSON struct {
		Listen      []string `json:"listen"`
		Running     bool     `json:"running"`
		Error       string   `json:"error,omitempty"`
		Pin         string   `json:"pin,omitempty"`
		Connections int      `json:"connections"`
		Sessions    int      `json:"sessions"`
		Opened      uint64   `json:"opened_sessions"`
		Refused     uint64   `json:"refused_requests"`
		Received    int64    `json:"received_bytes"`
		Sent        int64    `json:"sent_bytes"`
	}
	pathJSON struct {
		Name   string      `json:"name"`
		Peer   string      `json:"peer"`
		Probes []probeJSON `json:"probes"`
	}
	probeJSON struct {
		Name        string       `json:"name"`
		Type        string       `json:"type"`
		Health      agent.Health `json:"health"`
		State       string       `json:"state"`
		Reason      string       `json:"reason,omitempty"`
		LastSuccess *time.Time   `json:"last_success,omitempty"`
		Restarts    int          `json:"restarts"`
		Results     []resultJSON `json:"results,omitempty"`
	}
	resultJSON struct {
		Quantity  string `json:"quantity"`
		Direction string `json:"direction,omitempty"`
		Value     string `json:"value"`
	}
)

func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func inSeconds(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	return new(d.Seconds())
}

func newReceiverJSON(r *agent.ReceiverStatus) *receiverJSON {
	if r == nil {
		return nil
	}
	return &receiverJSON{
		Name: r.Name, Address: r.Address, Device: r.Device, Answering: r.Answering, Connected: r.Connected, Error: r.Error,
		Fix: r.Fix, SatellitesUsed: r.Used, SatellitesSeen: r.Seen, PulseOffset: inSeconds(r.PulseOffset), LastMessage: known(r.LastMessage),
	}
}

func newPulseJSON(p *agent.PulseStatus) *pulseJSON {
	if p == nil {
		return nil
	}
	return &pulseJSON{
		Name: p.Name, Device: p.Device, Edge: p.Edge, Present: p.Present, Error: p.Error, Pulses: p.Pulses, Missed: p.Missed,
		Last: known(p.Last), Jitter: inSeconds(p.Jitter), Offset: inSeconds(p.Offset), Bound: inSeconds(p.Bound),
	}
}

func newStatusJSON(s agent.Status) statusJSON {
	j := statusJSON{
		Started: known(s.Started),
		Config:  configJSON{s.Config.File, known(s.Config.Loaded), s.Config.Error},
		Clock: clockJSON{
			Source: s.Clock.Source, State: s.Clock.State, Trusted: s.Clock.Trusted, Offset: s.Clock.Offset.Seconds(),
			Reason: s.Clock.Reason, Error: s.Clock.Error, Steps: s.Clock.Steps, LastUpdate: known(s.Clock.LastUpdate),
		},
		Receiver: newReceiverJSON(s.Receiver), Pulse: newPulseJSON(s.Pulse),
		Links: newLinksJSON(s.Links), Reports: newReportsJSON(s.Reports),
		Paths: []pathJSON{},
	}
	if s.Clock.Trusted {
		j.Clock.Bound = new(s.Clock.Bound.Seconds())
	}
	if r := s.Reflector; r != nil {
		j.Reflector = &reflectorJSON{r.Listen, r.Answering, r.Error, r.Packets, r.Answered, r.Sessions}
	}
	if r := s.Responder; r != nil {
		j.Responder = new(responderJSON(*r))
	}
	for _, p := range s.Paths {
		path := pathJSON{Name: p.Name, Peer: p.Peer}
		for _, one := range p.Probes {
			probe := probeJSON{
				Name: one.Name, Type: one.Type, Health: one.Health, State: one.State, Reason: one.Reason,
				LastSuccess: known(one.LastSuccess), Restarts: one.Restarts,
			}
			for _, r := range one.Results {
				probe.Results = append(probe.Results, resultJSON(r))
			}
			path.Probes = append(path.Probes, probe)
		}
		j.Paths = append(j.Paths, path)
	}
	return j
}

func (s *server) status(w http.ResponseWriter, _ *http.Request) {
	s.json(w, newStatusJSON(s.Source.Status()))
}

func (s *server) json(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		s.Log.Debug("Status not written", "err", err)
	}
}

// targetGroup is that of Prometheus' http_sd.
type targetGroup struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// discovery lists the peers' hosts, so that what else runs there (this exporter,
// node_exporter) can be found by relabelling.
func (s *server) discovery(w http.ResponseWriter, _ *http.Request) {
	groups := []targetGroup{}
	for _, p := range s.Source.Status().Paths {
		groups = append(groups, targetGroup{Targets: []string{host(p.Peer)}, Labels: map[string]string{
			"__meta_oneway_path": p.Name, "__meta_oneway_peer": p.Peer,
		}})
	}
	s.json(w, groups)
}

// host is a peer without its port.
func host(peer string) string {
	h, _, _ := hostport.Split(peer, 1) // the configuration was checked
	return h
}
