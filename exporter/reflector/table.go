package reflector

import (
	"time"

	"oneway.example/exporter/seqwin"
)

// table holds the sessions of one socket. It is owned by whoever holds the
// shard's lock. Its memory is bounded by max; nothing is freed, for it would be
// needed again.
type table struct {
	byKey   map[sessionKey]*session
	byEpoch map[uint32]*session
	// byFlow finds the session of a packet without a (credible) Run: of
	// several with different Runs, the one that was raised last.
	byFlow  map[flow]*session
	slots   []*session
	free    []*session
	windows []*seqwin.Window // free ones
	rings   [tiers]ring
	sources *sourceTable
	random  func() uint32

	max, maxSeasoned, maxPerSource int
}

// ring is a list of the sessions of one tier, newest first.
type ring struct {
	root session
	n    int
}

func newTable(max, maxPerSource int, random func() uint32) *table {
	t := &table{
		byKey: make(map[sessionKey]*session), byEpoch: make(map[uint32]*session), byFlow: make(map[flow]*session),
		sources: newSourceTable(maxIdleSources), random: random,
		max: max, maxSeasoned: max / 4, maxPerSource: maxPerSource,
	}
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
	t.rings[onTrial].push(s)
	t.sources.own(src, s.slot)
	return s
}

func (t *table) take() *session {
	if n := len(t.free); n > 0 {
		s := t.free[n-1]
		t.free = t.free[:n-1]
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
	w.Reset()
	return w
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
	if s.tier == onTrial && s.key.run == 0 && s.received >= seasonedPackets && now-s.opened >= seasonedAge {
		t.promote(s, seasoned)
	}
}

// promote raises s to a tier. Too many seasoned sessions put the one of them
// that was silent longest back on trial.
func (t *table) promote(s *session, to tier) {
	if s.tier >= to {
		return
	}
	t.move(s, to)
	t.byFlow[s.key.flow] = s
	if r := &t.rings[seasoned]; r.n > t.maxSeasoned {
		t.move(r.oldest(), onTrial)
	}
}

func (t *table) move(s *session, to tier) {
	t.rings[s.tier].remove(s)
	s.tier = to
	t.rings[to].push(s)
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
	t.sources.disown(s.src, s.slot)
	if s.window != nil {
		t.windows = append(t.windows, s.window)
	}
	s.src, s.window, s.key = nil, nil, sessionKey{}
	t.free = append(t.free, s)
}

// expire forgets the sessions that have been silent for longer than age.
func (t *table) expire(now, age time.Duration) {
	for i := range t.rings {
		for s := t.rings[i].oldest(); s != nil && now-s.seen > age; s = t.rings[i].oldest() {
			t.close(s)
		}
	}
}

// byCookie finds the session that an answer belonged to, if it still exists.
func (t *table) byCookie(cookie uint64) *session {
	slot := cookie>>40 - 1
	if slot >= uint64(len(t.slots)) {
		return nil
	}
	s := t.slots[slot]
	if s.generation != uint8(cookie>>32) || s.src == nil {
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
