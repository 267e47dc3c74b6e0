package stamp

import (
	"oneway.example/exporter/probe"
)

// moveAll gives sessions another source port: they share one new socket, or the newest one that other sessions have moved to,
// and sessions whose peers reply stay where they are.
func (t *Type) moveAll(silent []*session, env probe.Env) {
	for _, s := range silent {
		if err := t.move(s, env); err != nil {
			env.Log.Warn("A path without replies cannot send from another source port", "peer", s.peer.String(), "err", err)
		}
	}
}

// move moves s to a hub of a port that it has not used before: a NAT or a firewall on the way may still have a wrong entry for
// each of those.
func (t *Type) move(s *session, env probe.Env) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.left {
		return nil
	}
	from := s.hub.Load()
	to, err := t.acquireLocked(t.higher(from.key), env)
	if err != nil {
		return err
	}
	if err := s.move(from, to); err != nil {
		t.releaseLocked(to)
		return err
	}
	t.releaseLocked(from)
	s.target.LogPort(to.conn.LocalAddr().Port())
	return nil
}

// higher returns the key of the newest hub of the same address, if it is newer than the hub of key, or the key of a new one.
func (t *Type) higher(key hubKey) hubKey {
	next := key
	next.port++
	for k := range t.hubs {
		base := k
		if base.port = key.port; base == key {
			next.port = max(next.port, k.port)
		}
	}
	return next
}

// move leaves a hub for another one. After an error it stays.
func (s *session) move(from, to *hub) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	from.remove(s)
	if err := to.add(s); err != nil {
		_ = from.add(s) // its place is free
		return err
	}
	s.estimator.card = to.card
	return nil
}
