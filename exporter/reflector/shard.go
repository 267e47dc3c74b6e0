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
	// sendErrors counts the answers that the kernel did not take, by its reason.
	sendErrors map[syscall.Errno]uint64

	keys    []*stamp.Key // clones of our own: a Key is for one goroutine
	failing bucket       // HMACs that were false, of all sources

	stateless, requireKey bool
	perSource             limit
	failures, allFailures limit
	expiry, lossWait      time.Duration
	allow                 []netip.Prefix
	refusedPorts          []uint16
	allowDSCP             uint64
	tai                   time.Duration
	ttl                   uint8
	clock                 clockView
	host                  hostid.ID
	drops                 socketDrops

	// round counts what is sent in one go; no session has more than perRound
	// answers in it. 0: any number.
	round    uint64
	perRound uint8
}

func newShard(o *Options, random func() uint32) *shard {
	sockets := len(o.Listen)
	most := o.MaxSessions / sockets
	s := &shard{
		table:     newTable(most, max(1, most/2), random),
		stateless: o.Stateless, requireKey: o.RequireKey,
		perSource:   newLimit(o.RatePackets, o.RateBurst),
		failures:    newLimit(failuresPerSource, failuresPerSource),
		allFailures: newLimit(failuresInTotal/sockets, failuresInTotal/sockets/10),
		expiry:      o.Expiry, lossWait: o.LossWait,
		sendErrors: map[syscall.Errno]uint64{},
		host:       hostid.Read(),
		allow:      o.Allow, allowDSCP: o.AllowDSCP, tai: o.TAI, ttl: o.TTL,
	}
	for _, k := range o.Keys {
		s.keys = append(s.keys, k.Clone())
	}
	return s
}

// handle judges one packet and turns its payload into the answer, which is
// described in a. Only if the result is one of the answered ones does a mean
// anything, and it still lacks T3 and check sums: see seal. now is monotonic.
func (s *shard) handle(in *tstamp.In, now time.Duration, a *answer) Result {
	b := in.Payload
	switch {
	case in.Truncated:
		return Oversized
	case len(b) < minQuestionBytes || s.requireKey && len(b) < stamp.AuthenticatedBytes:
		return Short
	}
	if r := s.addressResult(in.Peer, in.Local); r != Answered {
		return r
	}
	if looksLikeAnswer(b) {
		return Loop
	}
	q := question{authenticated: len(s.keys) > 0 && (s.requireKey || looksAuthenticated(b))}
	if q.read(b) != nil {
		return Short
	}
	return s.admit(in, &q, now, a)
}

// admit decides whether q is believed and to which session it belongs.
func (s *shard) admit(in *tstamp.In, q *question, now time.Duration, a *answer) Result {
	key := sessionKey{flow: makeFlow(in.Peer, in.Local, q.ssid, q.authenticated)}
	known := s.lookup(q, &key)
	if known != nil && s.perRound > 0 && known.round == s.round && known.inRound >= s.perRound {
		return postponed
	}
	var src *source
	if known != nil {
		src = known.src
	} else {
		src = s.table.sources.get(in.Peer.Addr(), now)
	}
	if !src.packets.take(s.perSource, now) {
		return RateLimited
	}
	intact := q.tlvs.receipt == 0 || stamp.CheckCRC(in.Payload, q.authenticated)
	verified, r := s.verify(in.Payload, q, known, src, now)
	switch {
	case !intact && (r == Answered || r == BadHMAC), r == Answered && q.lacksReceipt(known, now):
		return s.corrupted(in, q, src)
	case r != Answered:
		return r
	}
	if !verified && q.tlvs.receipt != 0 {
		// Nothing in the TLVs may be used (RFC 8972 section 4.8).
		q.tlvs.receipt, key.run = 0, 0
		known = s.lookup(q, &key)
	}
	if s.stateless {
		s.reply(in, q, nil, verified, now, a)
		return q.result(verified)
	}
	if known == nil {
		known = s.find(key, q, src, now)
	}
	if known == nil {
		return SessionsFull
	}
	s.reply(in, q, known, verified, now, a)
	return q.result(verified)
}

// lookup finds the session of q, and the Run of key.
func (s *shard) lookup(q *question, key *sessionKey) *session {
	if q.tlvs.receipt == 0 {
		return s.table.byFlow[key.flow]
	}
	key.run = runKey(q.receipt.Run)
	return s.table.byKey[*key]
}

// find makes the session of q, or finds it by what its Receipt says.
func (s *shard) find(key sessionKey, q *question, src *source, now time.Duration) *session {
	t := s.table
	if key.run != 0 {
		if moved := t.byEpoch[q.receipt.Epoch]; moved != nil && moved.key.run == key.run &&
			moved.key.ssid == key.ssid && moved.key.auth == key.auth {
			if q.movesOn(moved) {
				t.rebind(moved, key, src)
			}
			return moved
		}
		if bare := t.byFlow[key.flow]; bare != nil && bare.key.run == 0 {
			t.adopt(bare, key.run)
			return bare
		}
	}
	opened := t.open(key, src, now, s.lossWait)
	if opened != nil {
		opened.dropsBefore = s.drops.before[0]
	}
	return opened
}

// movesOn reports whether q is news to session s, so that it is no replay: only
// then does its address become that of s.
func (q *question) movesOn(s *session) bool {
	if !q.receipt.Query {
		return s.ahead(q.base.Seq)
	}
	return q.receipt.Next > 0 && s.ahead(q.receipt.Next-1)
}

// receiptMemory is how long a session that had Receipts expects them.
const receiptMemory = time.Minute

// lacksReceipt reports whether q, without a Receipt, came to a session whose
// test packets have one: then it was damaged on the way.
func (q *question) lacksReceipt(known *session, now time.Duration) bool {
	return q.tlvs.receipt == 0 && known != nil && known.full != 0 && now-known.full < receiptMemory
}

// corrupted counts a damaged packet for the session it most likely belongs to.
func (s *shard) corrupted(in *tstamp.In, q *question, src *source) Result {
	f := makeFlow(in.Peer, in.Local, q.base.SSID, q.authenticated)
	if victim := s.table.suspect(f, src); victim != nil {
		victim.corrupted++
	}
	return Corrupted
}

// result is that of an answered question.
func (q *question) result(verified bool) Result {
	switch {
	case !verified:
		return AnsweredUnverified
	case q.tlvs.malformed != 0:
		return AnsweredMalformed
	case q.tlvs.receipt != 0 && q.receipt.Query:
		return AnsweredQuery
	}
	return Answered
}
