// Package mixed is sessions with several types of traffic, which share the link, the quotas and the control connection: a
// test that compares them needs no second session, for which another client might take the link meanwhile. Each part is a
// type of its own, with its messages and its limits (loadcontrol.Parts).
//
// The local half is for a test with streams of UDP packets and TCP transfers. Its UDP part sends hello packets, two a
// second, during the whole session.
package mixed

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/traffic"
)

// Name of this type of traffic.
const Name = "mixed"

// maxParts limits the parts of a session.
const maxParts = 4

// Type is this type of traffic.
type Type struct{}

// NewType makes the type for the registry.
func NewType() Type { return Type{} }

// Name returns Name.
func (Type) Name() string { return Name }

// New implements traffic.Type.
func (Type) New(env traffic.Env) traffic.Remote { return remote{env.Other} }

type remote struct {
	other func(name string) traffic.Remote
}

func (remote) Listen(netip.AddrPort) (func(), error) { return func() {}, nil }
func (remote) Run(ctx context.Context) error         { <-ctx.Done(); return nil }
func (remote) Discarded() map[string]uint64          { return nil }

// Open opens all parts, or none.
func (r remote) Open(host traffic.Host, parameters json.RawMessage) (traffic.Session, any, *loadcontrol.Refusal) {
	var p loadcontrol.Parts
	if err := json.Unmarshal(parameters, &p); err != nil || len(p.Parts) == 0 || len(p.Parts) > maxParts {
		return nil, nil, loadcontrol.Reject("%d parts; a mixed session must have 1 to %d", len(p.Parts), maxParts)
	}
	s := &serving{host: host, parts: map[string]traffic.Session{}, until: map[string]time.Time{}, idle: map[string]time.Time{}}
	replies := loadcontrol.PartReplies{Replies: map[string]json.RawMessage{}}
	for _, name := range p.Parts {
		reply, refusal := s.open(r, name)
		if refusal != nil {
			s.Close()
			return nil, nil, refusal
		}
		replies.Replies[name] = reply
	}
	return s, replies, nil
}

// serving is the traffic of one session at the load server.
type serving struct {
	host  traffic.Host
	parts map[string]traffic.Session // constant after Open

	mu    sync.Mutex
	until map[string]time.Time // planned end of the transfers of each part
	idle  map[string]time.Time // when each part last was idle
}

// open opens a part and returns its reply.
func (s *serving) open(r remote, name string) (json.RawMessage, *loadcontrol.Refusal) {
	other := r.other(name)
	if other == nil || name == Name || s.parts[name] != nil {
		return nil, loadcontrol.Reject("part %.40q of a mixed session is unknown or a duplicate", name)
	}
	part, reply, refusal := other.Open(&host{s.host, s, name}, json.RawMessage("{}"))
	if refusal != nil {
		return nil, refusal
	}
	s.parts[name] = part
	text, err := json.Marshal(reply)
	if err != nil {
		return nil, loadcontrol.RejectError(err)
	}
	return text, nil
}

// Handle passes a message to its part.
func (s *serving) Handle(m *loadcontrol.TrafficMessage) *loadcontrol.Refusal {
	name, inner := m.Part()
	part := s.parts[name]
	if part == nil {
		return loadcontrol.Reject("unexpected message %.40q", m.Name)
	}
	return part.Handle(inner)
}

// Close closes all parts.
func (s *serving) Close() {
	for _, part := range s.parts {
		part.Close()
	}
}

// host is the load server for one part.
type host struct {
	traffic.Host
	session *serving
	part    string
}

// SetBusy reports the latest planned end of all parts.
func (h *host) SetBusy(until time.Time) {
	s := h.session
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until[h.part] = until
	all := make([]time.Time, 0, maxParts)
	for _, one := range s.until {
		all = append(all, one)
	}
	s.host.SetBusy(slices.MaxFunc(all, time.Time.Compare))
}

// End ends the session. A part that lacks packets of the client ends it when all parts do: a part repeats this
// while it is so.
func (h *host) End(why error) {
	if errors.Is(why, traffic.ErrIdleTimeout) && !h.session.allIdle(h.part, time.Now()) {
		return
	}
	h.Host.End(why)
}

// allIdle records that a part is idle, and reports whether all are.
func (s *serving) allIdle(part string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle[part] = now
	for name := range s.parts {
		if now.Sub(s.idle[name]) > 2*traffic.WatchInterval {
			return false
		}
	}
	return true
}

func (h *host) SendMessage(name string, body any, data []byte) error {
	return h.Host.SendMessage(loadcontrol.PartMessage(h.part, name), body, data)
}

func (h *host) SendRefusal(name string, r *loadcontrol.Refusal) error {
	return h.Host.SendRefusal(loadcontrol.PartMessage(h.part, name), r)
}
