package reflector

import (
	"net/netip"
	"sync"
	"syscall"
	"time"

	"oneway.example/exporter/core/hostid"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/stampfmt"
)

// shard is the state of one socket. Its goroutine has mu locked during a batch; other readers lock it in between.
// Packets never wait for another socket.
type shard struct {
	mu     sync.Mutex
	table  *table
	counts [results]uint64
	// sendErrors counts the replies that the kernel refused, by errno.
	sendErrors map[syscall.Errno]uint64
	forbidden  recent // with EPERM

	keys    []*stampfmt.Key // clones: a Key is for one goroutine
	failing bucket          // invalid HMACs of all sources

	options               *Options
	perSource             limit
	failures, allFailures limit
	refusedPorts          []uint16
	clock                 clockView
	host                  hostid.ID
	drops                 dropCount
	// unknownPeers and authenticated limit new sessions, the latter authenticated ones.
	unknownPeers, authenticated *newSessionLimit
	// refused counts refused packets without a session; refusals has earlier values.
	refused  uint64
	refusals dropCount

	// round counts send rounds; a session has at most perRound replies in one. 0: any number.
	round    uint64
	perRound uint8

	replyBytes uint64 // payload so far, with the replies that the kernel refused

	keyFaults keyFaults
	// rejections limits the rejections of one source, allRejections those of all.
	rejections, allRejections limit
	rejecting                 bucket
}

func newShard(o *Options, random func() uint32) *shard {
	sockets := len(o.Listen)
	most := o.MaxSessions / sockets
	s := &shard{
		options:     o,
		table:       newTable(most, max(1, most/2), random),
		perSource:   newLimit(o.RatePackets, o.RateBurst),
		failures:    newLimit(failuresPerSource, failuresPerSource),
		allFailures: newLimit(failuresInTotal/sockets, failuresInTotal/sockets/10),
		rejections:  newLimit(1, rejectionBurst), allRejections: newLimit(max(1, rejectionsInTotal/sockets), rejectionsInTotal),
		unknownPeers: newNewSessionLimit(o.NewSessions, sockets), authenticated: newNewSessionLimit(o.NewSessions, sockets),
		sendErrors: map[syscall.Errno]uint64{},
		host:       hostid.Read(),
	}
	for _, k := range o.Keys {
		s.keys = append(s.keys, k.Clone())
	}
	return s
}

// handle processes one packet and turns its payload into the reply, which a describes. a is valid only if the result is
// one with a reply, which still lacks T3 and checksums: see seal. now is monotonic.
func (s *shard) handle(in *tstamp.In, now time.Duration, a *pendingReply) Result {
	b := in.Payload
	switch {
	case in.Truncated, len(b) > s.options.MaxRequestBytes:
		return Oversized
	case s.options.MaxReplyBytes > 0 && s.replyBytes+uint64(len(b)) > s.options.MaxReplyBytes:
		return RateLimited
	case len(b) < s.options.leastRequest():
		return Short
	}
	if r := s.addressResult(in.Peer, in.Local); r != Answered {
		return r
	}
	if looksLikeReply(b) {
		return Loop
	}
	inFormat := stampfmt.InAuthenticatedFormat(b)
	q := request{authenticated: len(s.keys) > 0 && (s.options.RequireKey || inFormat)}
	if q.read(b) != nil {
		s.keyFaults.add(in.Peer.Addr(), KeyMissing, now) // the only error: a key is required
		return Short
	}
	r := s.admit(in, &q, now, a)
	switch {
	case r == BadHMAC && inFormat:
		s.keyFaults.add(in.Peer.Addr(), OtherKey, now)
		s.reject(in, &q, now, a)
	case r == BadHMAC:
		s.keyFaults.add(in.Peer.Addr(), KeyMissing, now)
		s.reject(in, &q, now, a)
	case r.Answered() && inFormat && len(s.keys) == 0:
		s.keyFaults.add(in.Peer.Addr(), NoKeyHere, now)
		return AnsweredWithoutKey
	}
	return r
}

// admit verifies q and finds its session.
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
	// Before anything is stored or verified: in a flood this check is the only work.
	case !s.options.Stateless && !q.authenticated && !s.unknownPeers.open(in.Peer.Addr(), now) && s.findMoved(&key, q, now) == nil:
		return s.refuse(nil, NewSessionLimited)
	default:
		src = s.table.sources.get(in.Peer.Addr(), now)
	}
	if q.repeats(known) {
		// A copy uses up nothing of its session's rate.
		if !src.packets.take(s.perSource.of(nil), now) {
			return RateLimited
		}
	} else if !src.packets.take(s.perSource.of(known), now) {
		return s.refuse(known, RateLimited)
	}
	intact := q.tlvs.receipt == 0 || stampfmt.CheckCRC(in.Payload, q.authenticated)
	verified, r := s.verify(in.Payload, q, known, src, now)
	switch {
	case !intact && (r == Answered || r == BadHMAC), r == Answered && q.lacksReceipt(known, now):
		return s.corrupted(in, q, src, r)
	case r != Answered:
		return r
	}
	if !verified && q.authenticated && known != nil && (q.tlvs.receipt != 0 || isRecent(known.receipt, now)) {
		// A sender of Receipts signs all its TLVs. This was a test packet or a statistics query.
		return s.corrupted(in, q, src, r)
	}
	if !verified && q.tlvs.receipt != 0 {
		// The TLVs must not be used (RFC 8972 section 4.8).
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
		return s.table.ofFlow(q, key.flow)
	}
	key.run = runKey(q.receipt.Run)
	return s.table.byKey[*key]
}

// refuse counts a packet of a session, or of none, that gets no reply for lack of this host's resources.
func (s *shard) refuse(known *session, why Result) Result {
	if known != nil {
		known.refused++
	} else {
		s.refused++
	}
	return why
}

// findMoved finds the session of q under another key: its sender's address has changed, or it had no Receipts so far.
func (s *shard) findMoved(key *sessionKey, q *request, now time.Duration) *session {
	if key.run == 0 {
		return nil
	}
	if moved := s.table.byEpoch[q.receipt.Epoch]; moved != nil && moved.key.run == key.run &&
		moved.key.ssid == key.ssid && moved.key.auth == key.auth {
		return moved
	}
	if bare := s.table.byFlow[key.flow]; bare != nil && bare.key.run == 0 && bare.mayBeOf(q, now) {
		return bare
	}
	return nil
}

// find finds the session of q by its Receipt, or opens it; without a session it returns the reason.
func (s *shard) find(key sessionKey, q *request, src *source, now time.Duration) (*session, Result) {
	t := s.table
	switch known := s.findMoved(&key, q, now); {
	case known == nil:
	case known.key.run == 0:
		t.setRun(known, key.run)
		return known, Answered
	case q.movesOn(known):
		if bare := t.byFlow[key.flow]; bare != nil && bare.key.run == 0 && known.full == 0 {
			t.join(known, bare, now)
		}
		t.rebind(known, key, src)
		return known, Answered
	case !q.statsQuery() && !known.awaits(q.base.Seq):
		return nil, Repeated
	default:
		return known, Answered
	}
	limits := s.unknownPeers
	if q.authenticated {
		limits = s.authenticated
	}
	if !limits.take(netip.AddrFrom16(key.peer), now) {
		return nil, NewSessionLimited
	}
	opened := t.open(key, src, now, s.options.LossWait)
	if opened == nil {
		return nil, SessionsFull
	}
	opened.begin(q, now)
	if owner := t.byFlow[key.flow]; owner != opened && q.statsQuery() {
		owner.heir, owner.heirT1 = opened.epoch, q.base.T1
	}
	opened.dropsBefore = s.drops.before[0]
	// The session's share of the recently refused packets is not known: at most the number it has sent.
	opened.refused = min(s.refused-s.refusals.before[0], q.sentBefore())
	return opened, Answered
}

// sentBefore is how many test packets the sender of q has sent before it, if it started with number 0.
func (q *request) sentBefore() uint64 {
	if q.statsQuery() {
		return uint64(q.receipt.Next)
	}
	return uint64(q.base.Seq)
}

// movesOn reports whether q is new to session s, so that it is not a replay: only then s takes its address.
func (q *request) movesOn(s *session) bool {
	return q.ahead(s) && newer(q.base.T1, s.lastT1)
}

// ahead reports whether q reports a test packet beyond all numbers of s.
func (q *request) ahead(s *session) bool {
	if !q.statsQuery() {
		return s.ahead(q.base.Seq)
	}
	return q.receipt.Next > 0 && s.ahead(q.receipt.Next-1)
}

// receiptMemory is how long a session that had Receipts requires them.
const receiptMemory = time.Minute

func isRecent(at, now time.Duration) bool { return at != 0 && now-at < receiptMemory }

// lacksReceipt reports whether q, without a Receipt, belongs to a session whose test packets have one: then it was
// damaged on the path.
func (q *request) lacksReceipt(known *session, now time.Duration) bool {
	return q.tlvs.receipt == 0 && known != nil && isRecent(known.full, now)
}

// corrupted counts a damaged packet in the session it most likely belongs to, if it does not appear forged.
func (s *shard) corrupted(in *tstamp.In, q *request, src *source, verified Result) Result {
	f := makeFlow(in.Peer, in.Local, q.base.SSID, q.authenticated)
	switch damaged := s.table.sessionOfDamaged(f, src); {
	case damaged != nil && q.fits(damaged, verified):
		damaged.corrupted++
	case verified != Answered:
		return verified
	}
	return Corrupted
}

// fits reports whether q, which is damaged, belongs to session s: by the 32 random bits of Run or of Epoch, which an
// off-path attacker would have to guess; damage seldom affects both. If the base packet is authentic, its number must
// be new; without a Receipt the address decides.
func (q *request) fits(s *session, verified Result) bool {
	if q.authenticated && verified == Answered {
		return s.awaits(q.base.Seq)
	}
	return q.tlvs.receipt == 0 || runKey(q.receipt.Run) == s.key.run || q.receipt.Epoch == s.epoch
}

// result is that of a request with a reply.
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

// verify checks the HMACs of b. Answered means that the base packet is accepted; verified that the TLVs may be used,
// too.
func (s *shard) verify(b []byte, q *request, known *session, src *source, now time.Duration) (verified bool, r Result) {
	t := &q.tlvs
	if !q.authenticated {
		// The TLVs may have an HMAC even if the base packet has none (RFC 8972 section 4.8).
		if t.hmac == 0 {
			return true, Answered
		}
		if t.misplaced || len(s.keys) == 0 {
			return false, Answered
		}
		r = s.tryKeys(q, nil, src, now, func(k *stampfmt.Key) bool { return k.VerifyTLVs(b, q.baseBytes, t.hmac) })
		return r == Answered, Answered
	}
	r = s.tryKeys(q, known, src, now, func(k *stampfmt.Key) bool { return k.VerifyBase(b) })
	if r != Answered {
		return false, r
	}
	switch {
	case t.hmac == 0:
		return !t.unauthenticated && t.malformed == 0, Answered
	case t.misplaced:
		return false, Answered
	}
	return s.keys[q.keyIndex].VerifyTLVs(b, q.baseBytes, t.hmac), Answered
}

// tryKeys finds the key that check accepts: first the one that verified the session before, and the others only within
// the limit of invalid HMACs. A spoofed flood therefore costs little and cannot lock out a known session.
func (s *shard) tryKeys(q *request, known *session, src *source, now time.Duration, check func(*stampfmt.Key) bool) Result {
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
