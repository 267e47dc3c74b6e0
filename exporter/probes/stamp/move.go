package stamp

import (
	"time"

	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/stamp/ledger"
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
	was, err := s.move(from, to)
	if err != nil {
		t.releaseLocked(to)
		return err
	}
	t.former[s] = append(t.former[s], was)
	t.forgetLocked(s, len(t.former[s])-mostFormerPorts)
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

// formerPort is a hub that a session has left, and by which identifier it is known there. The hub still receives for it: a reflector that stood
// still replies to requests from there when it continues, and their loss would be none of the path.
type formerPort struct {
	hub  *hub
	ssid uint16
}

// mostFormerPorts is how many former ports of a session receive. With mostPortAge this covers the last few minutes.
const mostFormerPorts = 4

// heardTicks is for how many ticks after the first packet of the peer the former ports receive: what was waiting arrives at once.
const heardTicks = 3

// move leaves a hub for another one, and returns what it was there. After an error it stays.
func (s *session) move(from, to *hub) (was formerPort, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was = formerPort{from, s.ssid}
	if err := to.add(s); err != nil {
		return was, err
	}
	s.estimator.card = to.card
	s.sendsFrom(to.port())
	return was, nil
}

// sendsFrom takes the port from which the next packet leaves. The caller holds s.mu.
func (s *session) sendsFrom(p ledger.Port) {
	s.moved = heardTicks
	s.account.Move(p)
}

// renewed is called when the socket of s was opened again, which has another port.
func (s *session) renewed(p ledger.Port) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sendsFrom(p)
}

// settled reports, once after each move, that packets of the peer arrive again: the former ports are needed no more.
func (s *session) settled(now time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.moved == 0 || s.account.Unheard() >= now-s.portSince {
		return false
	}
	s.moved--
	return s.moved == 0
}

// forgetAll ends the use of former ports.
func (t *Type) forgetAll(settled []*session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range settled {
		t.forgetLocked(s, len(t.former[s]))
	}
}

// forgetLocked ends the use of the n oldest former ports, if n is above zero.
func (t *Type) forgetLocked(s *session, n int) {
	ports := t.former[s]
	for ; n > 0; n-- {
		ports[0].hub.remove(s, ports[0].ssid)
		t.releaseLocked(ports[0].hub)
		ports = ports[1:]
	}
	if t.former[s] = ports; len(ports) == 0 {
		delete(t.former, s)
	}
}
