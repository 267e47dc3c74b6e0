package reflector

import (
	"net/netip"
	"sync"
	"syscall"
	"time"

	"oneway.example/exporter/hostid"
	"oneway.example/exporter/tstamp"
	"oneway.example/exporter/wire/stamp"
)

// shard is all that belongs to one socket. Its goroutine holds mu while it
// works on a batch, and whoever wants to know something in between; packets
// never wait for another socket.
type shard struct {
	mu     sync.Mutex
	table  *table
	counts [results]uint64
	// sendErrors counts the replies that the kernel did not take, by its reason.
	sendErrors map[syscall.Errno]uint64

	keys    []*stamp.Key // clones of our own: a Key is for one goroutine
	failing bucket       // HMACs that were false, of all sources

	options               *Options
	perSource             limit
	failures, allFailures limit
	refusedPorts          []uint16
	clock                 clockView
	host                  hostid.ID
	drops                 dropCount
	// unknownPeers and vouched limit the sessions that begin, the latter those that are
	// authenticated.
	unknownPeers, vouched *newcomers
	// refused counts the packets without a session that were refused: refusals of before.
	refused  uint64
	refusals dropCount

	// round counts what is sent in one go; no session has more than perRound
	// answers in it. 0: any number.
	round    uint64
	perRound uint8
}

func newShard(o *Options, random func() uint32) *shard {
	sockets := len(o.Listen)
	most := o.MaxSessions / sockets
	s := &shard{
		options:      o,
		table:        newTable(most, max(1, most/2), random),
		perSource:    newLimit(o.RatePackets, o.RateBurst),
		failures:     newLimit(failuresPerSource, failuresPerSource),
		allFailures:  newLimit(failuresInTotal/sockets, failuresInTotal/sockets/10),
		unknownPeers: newNewcomers(o.NewSessions, sockets), vouched: newNewcomers(o.NewSessions, sockets),
		sendErrors: map[syscall.Errno]uint64{},
		host:       hostid.Read(),
	}
	for _, k := range o.Keys {
		s.keys = append(s.keys, k.Clone())
	}
	return s
}

// handle judges one packet and turns its payload into the reply, which is
// described in a. Only if the result is one of the answered ones does a mean
// anything, and it still lacks T3 and check sums: see seal. now is monotonic.
func (s *shard) handle(in *tstamp.In, now time.Duration, a *pendingReply) Result {
	b := in.Payload
	switch {
	case in.Truncated:
		return Oversized
	case len(b) < minRequestBytes || s.options.RequireKey && len(b) < stamp.AuthenticatedBytes:
		return Short
	}
	if r := s.addressResult(in.Peer, in.Local); r != Answered {
		return r
	}
	if looksLikeReply(b) {
		return Loop
	}
	q := request{authenticated: len(s.keys) > 0 && (s.options.RequireKey || looksAuthenticated(b))}
	if q.read(b) != nil {
		return Short
	}
	return s.admit(in, &q, now, a)
}

// admit decides whether q is believed and to which session it belongs.
func (s *shard) admit(in *tstamp.In, q *request, now time.Duration, a *pendingReply) Result {
	key := sessionKey{flow: makeFlow(in.Peer, in.Local, q.ssid, q.authenticated)}
	known := s.lookup(q, &key)
	if known != nil && s.perRound > 0 && known.round == s.round && known.inRound >= s.perRound {
		return postponed
	}
	var src *source
	switch {
	case known != nil:
		src = known.src
	// Before anything is remembered or verified: in a flood this is all that is done.
	case !s.options.Stateless && !q.authenticated && !s.unknownPeers.open(in.Peer.Addr(), now) && s.relative(&key, q) == nil:
		return s.refuse(nil, NewSessionLimited)
	default:
		src = s.table.sources.get(in.Peer.Addr(), now)
	}
	if q.repeats(known) {
		// Of its session's rate a copy uses up nothing.
		if !src.packets.take(s.perSource.of(nil), now) {
			return RateLimited
		}
	} else if !src.packets.take(s.perSource.of(known), now) {
		return s.refuse(known, RateLimited)
	}
	intact := q.tlvs.receipt == 0 || stamp.CheckCRC(in.Payload, q.authenticated)
	verified, r := s.verify(in.Payload, q, known, src, now)
	switch {
	case !intact && (r == Answered || r == BadHMAC), r == Answered && q.lacksReceipt(known, now):
		return s.corrupted(in, q, src, r)
	case r != Answered:
		return r
	}
	if !verified && q.authenticated && known != nil && (q.tlvs.receipt != 0 || remembers(known.receipt, now)) {
		// A sender of Receipts signs all its TLVs. Whether this was a test packet or a query is not known.
		return s.corrupted(in, q, src, r)
	}
	if !verified && q.tlvs.receipt != 0 {
		// Nothing in the TLVs may be used (RFC 8972 section 4.8).
		q.tlvs.receipt, key.run = 0, 0
		known = s.lookup(q, &key)
	}
	if q.repeats(known) {
		return s.repeated(q, known, now)
	}
	if s.options.Stateless {
		s.reply(in, q, nil, verified, now, a)
		return q.result(verified)
	}
	if known == nil {
		if known, r = s.find(key, q, src, now); r == Repeated {
			return r
		} else if known == nil {
			return s.refuse(nil, r)
		}
	}
	if q.replayedBefore(known, now) {
		known = s.reopen(known, q, now)
	}
	s.reply(in, q, known, verified, now, a)
	return q.result(verified)
}

// lookup finds the session of q, and the Run of key.
func (s *shard) lookup(q *request, key *sessionKey) *session {
	if q.tlvs.receipt == 0 {
		return s.table.byFlow[key.flow]
	}
	key.run = runKey(q.receipt.Run)
	return s.table.byKey[*key]
}

// refuse counts a packet of a session, or of none, that is not answered for this host's sake.
func (s *shard) refuse(known *session, why Result) Result {
	if known != nil {
		known.refused++
	} else {
		s.refused++
	}
	return why
}

// relative finds the session of q, if it has one under another key: its sender has moved, or
// has had no Receipts so far.
func (s *shard) relative(key *sessionKey, q *request) *session {
	if key.run == 0 {
		return nil
	}
	if moved := s.table.byEpoch[q.receipt.Epoch]; moved != nil && moved.key.run == key.run &&
		moved.key.ssid == key.ssid && moved.key.auth == key.auth {
		return moved
	}
	if bare := s.table.byFlow[key.flow]; bare != nil && bare.key.run == 0 {
		return bare
	}
	return nil
}

// find finds the session of q by what its Receipt says, or makes it; without one it says why.
func (s *shard) find(key sessionKey, q *request, src *source, now time.Duration) (*session, Result) {
	t := s.table
	switch known := s.relative(&key, q); {
	case known == nil:
	case known.key.run == 0:
		t.adopt(known, key.run)
		return known, Answered
	case q.movesOn(known):
		t.rebind(known, key, src)
		return known, Answered
	case !q.statsQuery() && !known.awaits(q.base.Seq):
		return nil, Repeated
	default:
		return known, Answered
	}
	limits := s.unknownPeers
	if q.authenticated {
		limits = s.vouched
	}
	if !limits.take(netip.AddrFrom16(key.peer), now) {
		return nil, NewSessionLimited
	}
	opened := t.open(key, src, now, s.options.LossWait)
	if opened == nil {
		return nil, SessionsFull
	}
	opened.begin(q, now)
	opened.dropsBefore = s.drops.before[0]
	// How many of those that were refused of late were its own is not known: at most those that it
	// has sent.
	opened.refused = min(s.refused-s.refusals.before[0], q.sentBefore())
	return opened, Answered
}

// sentBefore is how many test packets the sender of q has sent before it, if it has begun with
// number 0.
func (q *request) sentBefore() uint64 {
	if q.statsQuery() {
		return uint64(q.receipt.Next)
	}
	return uint64(q.base.Seq)
}

// movesOn reports whether q is news to session s, so that it is no replay: only
// then does its address become that of s.
func (q *request) movesOn(s *session) bool {
	return q.ahead(s) && newer(q.base.T1, s.lastT1)
}

// ahead reports whether q tells of a test packet that s has not come to yet.
func (q *request) ahead(s *session) bool {
	if !q.statsQuery() {
		return s.ahead(q.base.Seq)
	}
	return q.receipt.Next > 0 && s.ahead(q.receipt.Next-1)
}

// receiptMemory is how long a session that had Receipts expects them.
const receiptMemory = time.Minute

func remembers(at, now time.Duration) bool { return at != 0 && now-at < receiptMemory }

// lacksReceipt reports whether q, without a Receipt, came to a session whose
// test packets have one: then it was damaged on the way.
func (q *request) lacksReceipt(known *session, now time.Duration) bool {
	return q.tlvs.receipt == 0 && known != nil && remembers(known.full, now)
}

// corrupted counts a damaged packet for the session it most likely belongs to, if it is not forged as
// far as that can be told.
func (s *shard) corrupted(in *tstamp.In, q *request, src *source, verified Result) Result {
	f := makeFlow(in.Peer, in.Local, q.base.SSID, q.authenticated)
	switch victim := s.table.suspect(f, src); {
	case victim != nil && q.fits(victim, verified):
		victim.corrupted++
	case verified != Answered:
		return verified
	}
	return Corrupted
}

// fits reports whether q, which is damaged, is of session s: by the 32 random bits of Run or of Epoch, which
// who sees no packet would have to guess, since damage seldom takes both. Where the base packet is
// authentic it is one that has not come yet, and where there is no Receipt left the address has to do.
func (q *request) fits(s *session, verified Result) bool {
	if q.authenticated && verified == Answered {
		return s.awaits(q.base.Seq)
	}
	return q.tlvs.receipt == 0 || runKey(q.receipt.Run) == s.key.run || q.receipt.Epoch == s.epoch
}

// result is that of an answered request.
func (q *request) result(verified bool) Result {
	switch {
	case !verified:
		return AnsweredUnverified
	case q.tlvs.malformed != 0:
		return AnsweredMalformed
	case q.statsQuery():
		return AnsweredStatsQuery
	}
	return Answered
}

// verify checks the HMACs of b. Answered means that the base packet is
// believed; verified that the TLVs may be used too.
func (s *shard) verify(b []byte, q *request, known *session, src *source, now time.Duration) (verified bool, r Result) {
	t := &q.tlvs
	if !q.authenticated {
		// The TLVs may have an HMAC even if the base packet has none (RFC 8972
		// section 4.8).
		if t.hmac == 0 {
			return true, Answered
		}
		if t.misplaced || len(s.keys) == 0 {
			return false, Answered
		}
		r = s.tryKeys(q, nil, src, now, func(k *stamp.Key) bool { return k.VerifyTLVs(b, q.baseBytes, t.hmac) })
		return r == Answered, Answered
	}
	r = s.tryKeys(q, known, src, now, func(k *stamp.Key) bool { return k.VerifyBase(b) })
	if r != Answered {
		return false, r
	}
	switch {
	case t.hmac == 0:
		return !t.naked && t.malformed == 0, Answered
	case t.misplaced:
		return false, Answered
	}
	return s.keys[q.keyIndex].VerifyTLVs(b, q.baseBytes, t.hmac), Answered
}

// tryKeys looks for the key that check accepts: first the one that has verified
// the session before, and the others only while not too many packets of late
// were false. A spoofed flood therefore costs little and cannot keep a known
// session out.
func (s *shard) tryKeys(q *request, known *session, src *source, now time.Duration, check func(*stamp.Key) bool) Result {
	tried := -1
	if known != nil && known.key.auth == 1 && known.keyIndex < len(s.keys) {
		tried = known.keyIndex
		if check(s.keys[tried]) {
			q.keyIndex = tried
			return Answered
		}
	}
	if !src.failures.open(s.failures, now) || !s.failing.open(s.allFailures, now) {
		return HMACLimited
	}
	for i, k := range s.keys {
		if i != tried && check(k) {
			q.keyIndex = i
			return Answered
		}
	}
	src.failures.take(s.failures, now)
	s.failing.take(s.allFailures, now)
	return BadHMAC
}
