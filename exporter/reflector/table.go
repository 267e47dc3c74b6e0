package reflector

import (
	"maps"
	"math"
	"net/netip"
	"time"

	"oneway.example/exporter/estimate/seqwin"
)

// table contains the sessions of one socket. The shard's lock guards it. Its memory is limited by max and growth. The
// memory of a closed session is kept for the next one, until most of it is unused: see shrink.
type table struct {
	byKey   map[sessionKey]*session
	byEpoch map[uint32]*session // all of them
	// byFlow has the session of the packets without a (credible) Run: of several with different Runs, the last promoted
	// one. See ofFlow.
	byFlow  map[flow]*session
	free    []*session
	windows []*seqwin.Window // free ones
	rings   [tiers]ring[session]
	sources *sourceTable
	random  func() uint32

	// growth is the limit of all windows beyond their first size, trials the part of it for sessions on trial.
	growth, trials seqwin.Quota

	max, maxSigned, maxEstablished, maxPerSource int
}

func newTable(most, maxPerSource int, random func() uint32) *table {
	t := &table{
		byKey: make(map[sessionKey]*session), byEpoch: make(map[uint32]*session), byFlow: make(map[flow]*session),
		random: random,
		max:    most, maxSigned: most / 2, maxEstablished: most / 4, maxPerSource: maxPerSource,
		growth: seqwin.Quota{Bytes: max(min(most, math.MaxInt/growthBytes)*growthBytes, minGrowth)},
	}
	t.trials = seqwin.Quota{Bytes: t.growth.Bytes / 8, Parent: &t.growth}
	t.sources = newSourceTable(maxIdleSources, &t.growth)
	for i := range t.rings {
		t.rings[i].init()
	}
	return t
}

func (t *table) len() int { return len(t.byKey) }

// open makes a session for key, or returns nil if there is no space for one.
func (t *table) open(key sessionKey, src *source, now, wait time.Duration) *session {
	if src.sessions >= t.maxPerSource {
		return nil
	}
	var weakest *session
	if t.len() >= t.max {
		weakest = t.rings[onTrial].oldest()
		if weakest == nil && key.auth == 1 {
			weakest = t.rings[signed].oldest()
		}
		if weakest == nil {
			return nil
		}
	}
	s := takeLast(&t.free)
	*s = session{key: key, opened: now, seen: now, wait: wait}
	s.place.of = s
	t.sources.addSession(src, s) // first: the weakest may be the last one of src, and src must stay
	if weakest != nil {
		t.close(weakest)
	}
	// An Epoch that no current session has: the sender proves with it that it has received a reply of this session.
	for s.epoch == 0 || t.byEpoch[s.epoch] != nil {
		s.epoch = t.random()
	}
	t.byKey[key], t.byEpoch[s.epoch] = s, s
	if t.byFlow[key.flow] == nil {
		t.byFlow[key.flow] = s
	}
	if key.auth == 1 {
		s.tier = signed
	}
	t.rings[s.tier].push(&s.place)
	t.settle(signed, t.maxSigned)
	return s
}

// addWindow gives s a window.
func (t *table) addWindow(s *session) {
	s.window = takeLast(&t.windows)
	t.charge(s)
}

// takeLast takes the last of the free ones, or makes one.
func takeLast[T any](free *[]*T) *T {
	n := len(*free)
	if n == 0 {
		return new(T)
	}
	last := (*free)[n-1]
	*free = (*free)[:n-1]
	return last
}

// charge sets the quota that the window of s is charged to, if it has one: that of its source, or that of all sessions
// on trial.
func (t *table) charge(s *session) {
	switch {
	case s.window == nil:
	case s.tier == onTrial:
		s.window.Charge(&t.trials)
	default:
		s.window.Charge(&s.src.windows)
	}
}

// setRun sets the Run of the first Receipt on a session that started without.
func (t *table) setRun(s *session, run uint64) {
	delete(t.byKey, s.key)
	s.key.run = run
	t.byKey[s.key] = s
}

// recordActivity records activity of s and updates the order of eviction.
func (t *table) recordActivity(s *session, now time.Duration) {
	s.seen = now
	t.rings[s.tier].renew(&s.place)
	if s.tier < established && s.key.run == 0 && s.received >= establishedPackets && now-s.opened >= establishedAge {
		t.promote(s, established)
	}
}

// promote raises s to a tier.
func (t *table) promote(s *session, to tier) {
	if s.tier >= to {
		return
	}
	t.move(s, to)
	t.byFlow[s.key.flow] = s
	t.settle(established, t.maxEstablished)
}

// ofFlow finds the session of q, a test packet without a Receipt. A session with another Run, which is not promoted yet, has those packets that
// its query has announced: they were sent after the query, and the present session does not wait for their numbers, or is not proven either. So a
// sender that has restarted loses nothing, and a spoofed query takes nothing from a proven session.
func (t *table) ofFlow(q *request, f flow) *session {
	s := t.byFlow[f]
	if s == nil || s.heir == 0 || newer(s.heirT1, q.base.T1) || s.awaits(q.base.Seq) && (s.tier == proven || s.key.run == 0) {
		return s
	}
	if heir := t.heirOf(s); heir != nil {
		return heir
	}
	return s
}

// heirOf is the session that takes the flow of s next, if it is still open there.
func (t *table) heirOf(s *session) *session {
	if heir := t.byEpoch[s.heir]; heir != nil && heir.key.flow == s.key.flow { // no session has Epoch 0
		return heir
	}
	return nil
}

// release takes its flow from s, whose sender has ended its run: its numbers begin anew with the next one.
func (t *table) release(s *session) {
	if f := s.key.flow; t.byFlow[f] == s {
		delete(t.byFlow, f)
		if heir := t.heirOf(s); heir != nil {
			t.byFlow[f] = heir
		}
	}
}

// settle returns the session of a tier that was idle longest to trial, if the tier has more than most.
func (t *table) settle(of tier, most int) {
	if r := &t.rings[of]; r.n > most {
		t.move(r.oldest(), onTrial)
	}
}

func (t *table) move(s *session, to tier) {
	t.rings[s.tier].remove(&s.place)
	s.tier = to
	t.rings[to].push(&s.place)
	t.charge(s)
}

// rebind moves s to another address: the NAT binding of its sender has changed.
func (t *table) rebind(s *session, key sessionKey, src *source) {
	t.unlink(s)
	s.key = key
	t.byKey[key] = s
	t.byFlow[key.flow] = s
	if src != s.src {
		old := s.src
		t.sources.addSession(src, s)
		t.sources.removeSession(old)
		t.charge(s)
	}
}

// unlink removes s from the indexes by address.
func (t *table) unlink(s *session) {
	delete(t.byKey, s.key)
	if t.byFlow[s.key.flow] == s {
		delete(t.byFlow, s.key.flow)
	}
}

// close removes s.
func (t *table) close(s *session) {
	t.unlink(s)
	delete(t.byEpoch, s.epoch)
	t.rings[s.tier].remove(&s.place)
	if s.window != nil {
		s.window.Reset() // while its source exists, whose quota is returned
		t.windows = append(t.windows, s.window)
	}
	t.sources.removeSession(s.src)
	s.src, s.window, s.key = nil, nil, sessionKey{}
	t.free = append(t.free, s)
}

// expireAtOnce limits the duration of expire, during which packets wait.
const expireAtOnce = 256

// expire removes sessions idle for longer than age, and reports whether there may be more of them.
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

// shrinkAbove is the minimum number of unused sessions at which memory is released.
const shrinkAbove = 1024

// shrink releases the memory of closed sessions, if three of four are closed, after a flood for example, and reports
// whether it did. The indexes are rebuilt, since a map keeps its size.
func (t *table) shrink() bool {
	if len(t.free) < shrinkAbove || len(t.free) < 3*t.len() {
		return false
	}
	t.free, t.windows = nil, nil
	t.byKey, t.byEpoch, t.byFlow = maps.Collect(maps.All(t.byKey)), maps.Collect(maps.All(t.byEpoch)), maps.Collect(maps.All(t.byFlow))
	t.sources.byKey = maps.Collect(maps.All(t.sources.byKey))
	return true
}

// byCookie finds the session of a reply, if it still exists.
func (t *table) byCookie(cookie uint64) *session { return t.byEpoch[uint32(cookie>>32)] }

// sessionOfDamaged finds the session that a damaged packet belongs to: that of its address and SSID, else the only
// session of its source, if the address matches. src may be nil.
func (t *table) sessionOfDamaged(f flow, src *source) *session {
	if s := t.byFlow[f]; s != nil {
		return s
	}
	if s := src.only(); s != nil && s.key.peer == f.peer && s.key.port == f.port && s.key.local == f.local && s.key.auth == f.auth {
		return s
	}
	return nil
}

// source is the state of one sending host: a /32, or a /64 because the host chooses the rest of an IPv6 address (RFC
// 4291 section 2.5.1).
type source struct {
	key [16]byte
	// packets limits all requests, failures the invalid HMACs, rejections what tells of these.
	packets, failures bucket
	rejections        bucket
	sessions          int
	// last is the session added last. If it is the only one, it is found for a packet with a damaged SSID.
	last *session
	// windows is the quota of its sessions that are not on trial.
	windows seqwin.Quota
	place   place[source] // among the sources without a session
}

// sourceTable contains the sources with a session, and the last few others. Its size is limited by that of the session
// table plus maxIdle.
type sourceTable struct {
	byKey   map[[16]byte]*source
	idle    ring[source] // those without a session
	maxIdle int
	growth  *seqwin.Quota
	share   int // limit of one source's part of growth
}

// maxIdleSources is how many sources without a session keep their rate; a flood from more addresses is limited only by
// its replies.
const maxIdleSources = 4096

func newSourceTable(maxIdle int, growth *seqwin.Quota) *sourceTable {
	t := &sourceTable{byKey: make(map[[16]byte]*source), maxIdle: maxIdle, growth: growth, share: growth.Bytes / 2}
	t.idle.init()
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
		// It replaces the one idle longest, once there are maxIdle.
		if t.idle.n < t.maxIdle {
			s = new(source)
		} else {
			s = t.removeOldest()
		}
		*s = source{
			key: key, packets: bucket(now), failures: bucket(now), rejections: bucket(now), windows: seqwin.Quota{Bytes: t.share, Parent: t.growth},
		}
		s.place.of = s
		t.byKey[key] = s
		t.idle.push(&s.place)
	case s.sessions == 0:
		t.idle.renew(&s.place)
	}
	return s
}

// removeOldest removes the source without a session that was idle longest.
func (t *sourceTable) removeOldest() *source {
	s := t.idle.oldest()
	t.idle.remove(&s.place)
	delete(t.byKey, s.key)
	return s
}

// addSession adds s to the sessions of src.
func (t *sourceTable) addSession(src *source, s *session) {
	if src.sessions == 0 {
		t.idle.remove(&src.place)
	}
	src.sessions++
	src.last, s.src = s, src
}

// removeSession removes one session of src.
func (t *sourceTable) removeSession(src *source) {
	if src.sessions--; src.sessions > 0 {
		return
	}
	src.last = nil
	t.idle.push(&src.place)
	if t.idle.n > t.maxIdle {
		t.removeOldest()
	}
}

// only is the one session of src, or nil if it has several or that is not known.
func (src *source) only() *session {
	if src == nil || src.sessions != 1 || src.last.src != src {
		return nil
	}
	return src.last
}

// ring is a list, newest first, whose items contain their place, so that nothing is allocated. Make one with init.
type ring[T any] struct {
	root place[T]
	n    int
}

// place is the place of one item, in one ring at a time.
type place[T any] struct {
	prev, next *place[T]
	of         *T
}

func (r *ring[T]) init() { r.root.prev, r.root.next = &r.root, &r.root }

// oldest is nil if the ring is empty.
func (r *ring[T]) oldest() *T { return r.root.prev.of }

func (r *ring[T]) push(p *place[T]) {
	p.prev, p.next = &r.root, r.root.next
	p.prev.next, p.next.prev = p, p
	r.n++
}

func (r *ring[T]) remove(p *place[T]) {
	p.prev.next, p.next.prev = p.next, p.prev
	p.prev, p.next = nil, nil
	r.n--
}

// renew makes p's item the newest.
func (r *ring[T]) renew(p *place[T]) {
	if r.root.next != p {
		r.remove(p)
		r.push(p)
	}
}
