package reflector

import (
	"maps"
	"time"

	"oneway.example/exporter/seqwin"
)

// table holds the sessions of one socket. It is owned by whoever holds the
// shard's lock. Its memory is bounded by max and growth. What a closed session took is kept
// for the next one, until most of it lies idle: see shrink.
type table struct {
	byKey   map[sessionKey]*session
	byEpoch map[uint32]*session
	// byFlow finds the session of a packet without a (credible) Run: of
	// several with different Runs, the one that was raised last.
	byFlow  map[flow]*session
	slots   []*session       // nil: an empty one
	empty   []uint32         // slots
	free    []*session       // in their slots
	windows []*seqwin.Window // free ones
	rings   [tiers]ring
	sources *sourceTable
	random  func() uint32

	// growth is what all windows may take beyond their first size, trials the part of it that
	// those of sessions on trial may.
	growth, trials seqwin.Budget

	max, maxSigned, maxSeasoned, maxPerSource int
}

// ring is a list of the sessions of one tier, newest first.
type ring struct {
	root session
	n    int
}

func newTable(most, maxPerSource int, random func() uint32) *table {
	t := &table{
		byKey: make(map[sessionKey]*session), byEpoch: make(map[uint32]*session), byFlow: make(map[flow]*session),
		random: random,
		max:    most, maxSigned: most / 2, maxSeasoned: most / 4, maxPerSource: maxPerSource,
		growth: seqwin.Budget{Octets: max(most*growthOctets, leastGrowth)},
	}
	t.trials = seqwin.Budget{Octets: t.growth.Octets / 8, Of: &t.growth}
	t.sources = newSourceTable(maxIdleSources, &t.growth)
	for i := range t.rings {
		r := &t.rings[i]
		r.root.prev, r.root.next = &r.root, &r.root
	}
	return t
}

func (r *ring) oldest() *session {
	if r.n == 0 {
		return nil
	}
	return r.root.prev
}

func (r *ring) push(s *session) {
	s.prev, s.next = &r.root, r.root.next
	s.prev.next, s.next.prev = s, s
	r.n++
}

func (r *ring) remove(s *session) {
	s.prev.next, s.next.prev = s.next, s.prev
	s.prev, s.next = nil, nil
	r.n--
}

func (t *table) len() int { return len(t.byKey) }

// open makes a session for key, or returns nil if there is no room for one.
func (t *table) open(key sessionKey, src *source, now, wait time.Duration) *session {
	if src.sessions >= t.maxPerSource {
		return nil
	}
	if t.len() >= t.max {
		weakest := t.rings[onTrial].oldest()
		if weakest == nil && key.auth == 1 {
			weakest = t.rings[signed].oldest()
		}
		if weakest == nil {
			return nil
		}
		// The newcomer's source must outlive the eviction of its own last session.
		t.sources.hold(src)
		t.close(weakest)
		t.sources.release(src)
	}
	s := t.take()
	*s = session{key: key, slot: s.slot, generation: s.generation + 1, src: src, opened: now, seen: now, wait: wait}
	if key.run != 0 {
		t.name(s)
	}
	t.byKey[key] = s
	if t.byFlow[key.flow] == nil {
		t.byFlow[key.flow] = s
	}
	if key.auth == 1 {
		s.tier = signed
	}
	t.rings[s.tier].push(s)
	t.sources.own(src, s.slot)
	t.settle(signed, t.maxSigned)
	return s
}

func (t *table) take() *session {
	if n := len(t.free); n > 0 {
		s := t.free[n-1]
		t.free = t.free[:n-1]
		return s
	}
	if n := len(t.empty); n > 0 {
		s := &session{slot: t.empty[n-1]}
		t.empty = t.empty[:n-1]
		t.slots[s.slot] = s
		return s
	}
	s := &session{slot: uint32(len(t.slots))}
	t.slots = append(t.slots, s)
	return s
}

func (t *table) takeWindow() *seqwin.Window {
	n := len(t.windows)
	if n == 0 {
		return new(seqwin.Window)
	}
	w := t.windows[n-1]
	t.windows = t.windows[:n-1]
	return w
}

// payer is who pays for the window of s.
func (t *table) payer(s *session) *seqwin.Budget {
	if s.tier == onTrial {
		return &t.trials
	}
	return &s.src.windows
}

// name gives s an Epoch that no present session has: the sender shows by it
// that it has received an answer of just this session.
func (t *table) name(s *session) {
	for s.epoch == 0 || t.byEpoch[s.epoch] != nil {
		s.epoch = t.random()
	}
	t.byEpoch[s.epoch] = s
}

// adopt gives the Run of the first Receipt to a session that began without.
func (t *table) adopt(s *session, run uint64) {
	delete(t.byKey, s.key)
	s.key.run = run
	t.byKey[s.key] = s
	t.name(s)
}

// touch notes that s was active and moves it up in the order of eviction.
func (t *table) touch(s *session, now time.Duration) {
	s.seen = now
	r := &t.rings[s.tier]
	if r.root.next != s {
		r.remove(s)
		r.push(s)
	}
	if s.tier < seasoned && s.key.run == 0 && s.received >= seasonedPackets && now-s.opened >= seasonedAge {
		t.promote(s, seasoned)
	}
}

// promote raises s to a tier.
func (t *table) promote(s *session, to tier) {
	if s.tier >= to {
		return
	}
	t.move(s, to)
	t.byFlow[s.key.flow] = s
	t.settle(seasoned, t.maxSeasoned)
}

// settle puts the session of a tier that was silent longest back on trial, if there are more
// than most.
func (t *table) settle(of tier, most int) {
	if r := &t.rings[of]; r.n > most {
		t.move(r.oldest(), onTrial)
	}
}

func (t *table) move(s *session, to tier) {
	t.rings[s.tier].remove(s)
	s.tier = to
	t.rings[to].push(s)
	if s.window != nil {
		s.window.Charge(t.payer(s))
	}
}

// rebind moves s to another address: its sender sits behind a NAT.
func (t *table) rebind(s *session, key sessionKey, src *source) {
	delete(t.byKey, s.key)
	if t.byFlow[s.key.flow] == s {
		delete(t.byFlow, s.key.flow)
	}
	s.key = key
	t.byKey[key] = s
	t.byFlow[key.flow] = s
	if src != s.src {
		t.sources.own(src, s.slot)
		t.sources.disown(s.src, s.slot)
		s.src = src
		if s.window != nil {
			s.window.Charge(t.payer(s))
		}
	}
}

// close forgets s.
func (t *table) close(s *session) {
	delete(t.byKey, s.key)
	delete(t.byEpoch, s.epoch)
	if t.byFlow[s.key.flow] == s {
		delete(t.byFlow, s.key.flow)
	}
	t.rings[s.tier].remove(s)
	if s.window != nil {
		s.window.Reset() // while its source is there to be paid back
		t.windows = append(t.windows, s.window)
	}
	t.sources.disown(s.src, s.slot)
	s.src, s.window, s.key = nil, nil, sessionKey{}
	t.free = append(t.free, s)
}

// expireAtOnce bounds the time that expire takes; packets wait for it.
const expireAtOnce = 256

// expire forgets sessions that have been silent for longer than age, and reports whether there
// may be more of them.
func (t *table) expire(now, age time.Duration) (more bool) {
	n := 0
	for i := range t.rings {
		for s := t.rings[i].oldest(); s != nil && now-s.seen > age; s = t.rings[i].oldest() {
			if n++; n > expireAtOnce {
				return true
			}
			t.close(s)
		}
	}
	return false
}

// shrinkAbove is from how many idle sessions on memory is given back.
const shrinkAbove = 1024

// shrink gives back the memory of closed sessions, if three of four are closed, and reports
// whether it has: after a flood, say. The indexes are made anew, since a map keeps its size.
func (t *table) shrink() bool {
	if len(t.free) < shrinkAbove || len(t.free) < 3*t.len() {
		return false
	}
	for _, s := range t.free {
		t.slots[s.slot] = nil
		t.empty = append(t.empty, s.slot)
	}
	t.free, t.windows = nil, nil
	t.byKey, t.byEpoch, t.byFlow = fitting(t.byKey), fitting(t.byEpoch), fitting(t.byFlow)
	t.sources.byKey = fitting(t.sources.byKey)
	return true
}

// fitting is a copy of m that is no larger than it must be.
func fitting[K comparable, V any](m map[K]V) map[K]V {
	small := make(map[K]V, len(m))
	maps.Copy(small, m)
	return small
}

// byCookie finds the session that an answer belonged to, if it still exists.
func (t *table) byCookie(cookie uint64) *session {
	slot := cookie>>40 - 1
	if slot >= uint64(len(t.slots)) {
		return nil
	}
	s := t.slots[slot]
	if s == nil || s.generation != uint8(cookie>>32) || s.src == nil {
		return nil
	}
	return s
}

// suspect finds the session that a damaged packet belongs to: that of its
// address and SSID, else the only session of its source, if the address fits.
// src may be nil.
func (t *table) suspect(f flow, src *source) *session {
	if s := t.byFlow[f]; s != nil {
		return s
	}
	if src == nil || src.sessions != 1 || src.slots >= uint32(len(t.slots)) {
		return nil
	}
	if s := t.slots[src.slots]; s.key.peer == f.peer && s.key.port == f.port && s.key.local == f.local && s.key.auth == f.auth {
		return s
	}
	return nil
}
