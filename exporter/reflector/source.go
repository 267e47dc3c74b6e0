package reflector

import (
	"net/netip"
	"time"

	"oneway.example/exporter/seqwin"
)

// source is what is remembered of one sending host: a /32, or a /64 because the
// rest of an IPv6 address is the host's to choose (RFC 4291 section 2.5.1).
type source struct {
	key [16]byte
	// packets limits all questions, failures the HMACs that were false.
	packets, failures bucket
	sessions          int
	// windows pays for those of its sessions that are not on trial.
	windows seqwin.Budget
	// slots is the exclusive or of the slots of its sessions: if there is
	// just one, it is that one's slot. It finds the session of a packet whose
	// SSID was damaged, without a list.
	slots uint32
	// prev and next link the sources without a session, newest first.
	prev, next *source
}

// sourceTable holds the sources that have a session, and the last few others.
// Its size is bounded by that of the session table plus maxIdle.
type sourceTable struct {
	byKey   map[[16]byte]*source
	idle    source // ring of those without a session
	idles   int
	maxIdle int
	// share is what one source may have of growth.
	share  int
	growth *seqwin.Budget
}

// maxIdleSources is how many sources without a session keep their rate; a
// flood from more addresses than that is bounded by its answers only.
const maxIdleSources = 4096

func newSourceTable(maxIdle int, growth *seqwin.Budget) *sourceTable {
	t := &sourceTable{byKey: make(map[[16]byte]*source), maxIdle: maxIdle, growth: growth, share: growth.Octets / 2}
	t.idle.prev, t.idle.next = &t.idle, &t.idle
	return t
}

func sourceKey(a netip.Addr) [16]byte {
	key := a.As16()
	if a.Is6() && !a.Is4In6() {
		clear(key[8:])
	}
	return key
}

// get finds or makes the source of a packet from a.
func (t *sourceTable) get(a netip.Addr, now time.Duration) *source {
	key := sourceKey(a)
	s := t.byKey[key]
	switch {
	case s == nil:
		s = t.make()
		*s = source{
			key: key, packets: bucket(now), failures: bucket(now), windows: seqwin.Budget{Octets: t.share, Of: t.growth},
		}
		t.byKey[key] = s
		t.link(s)
	case s.sessions == 0 && t.idle.next != s:
		t.unlink(s)
		t.link(s)
	}
	return s
}

// make takes the place of the source without a session that was silent longest,
// once there are enough of them.
func (t *sourceTable) make() *source {
	if t.idles < t.maxIdle {
		return new(source)
	}
	s := t.idle.prev
	t.unlink(s)
	delete(t.byKey, s.key)
	return s
}

func (t *sourceTable) link(s *source) {
	s.prev, s.next = &t.idle, t.idle.next
	s.prev.next, s.next.prev = s, s
	t.idles++
}

func (t *sourceTable) unlink(s *source) {
	s.prev.next, s.next.prev = s.next, s.prev
	s.prev, s.next = nil, nil
	t.idles--
}

// own notes that s has one more session, in slot.
func (t *sourceTable) own(s *source, slot uint32) {
	if s.sessions == 0 {
		t.unlink(s)
	}
	s.sessions++
	s.slots ^= slot
}

// disown notes that the session in slot is no longer that of s.
func (t *sourceTable) disown(s *source, slot uint32) {
	s.sessions--
	s.slots ^= slot
	if s.sessions > 0 {
		return
	}
	t.link(s)
	if t.idles > t.maxIdle {
		oldest := t.idle.prev
		t.unlink(oldest)
		delete(t.byKey, oldest.key)
	}
}

// hold keeps s from being recycled while other sessions are closed.
func (t *sourceTable) hold(s *source) {
	if s.sessions == 0 {
		t.unlink(s)
	}
	s.sessions++
}

// release ends hold.
func (t *sourceTable) release(s *source) {
	s.sessions--
	if s.sessions == 0 {
		t.link(s)
	}
}
