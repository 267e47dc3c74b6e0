package reflector

import (
	"net/netip"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/seqwin"
	"oneway.example/exporter/net/wire/stampfmt"
)

// flow is the part of a session that all its packets share on the wire, packets with damaged payloads included.
type flow struct {
	peer, local [16]byte
	port, ssid  uint16
	auth        uint32 // 1: authenticated; a uint32, so that there are no gaps to hash around
}

// sessionKey identifies a session.
type sessionKey struct {
	flow
	run uint64 // runKey of the Receipt's Run; 0 if no Run was received
}

// runKey distinguishes Run 0, which is a valid random value, from no Run.
func runKey(run uint32) uint64 { return uint64(run) + 1 }

func makeFlow(peer netip.AddrPort, local netip.Addr, ssid uint16, authenticated bool) flow {
	f := flow{peer: peer.Addr().As16(), port: peer.Port(), ssid: ssid}
	if authenticated {
		f.auth = 1
	}
	if local.IsValid() {
		f.local = local.As16()
	}
	return f
}

// overtakes is for how long after its first test packet a session may have packets that overtook a statistics query.
const overtakes = time.Second

// tier is the priority of a session; see the package comment.
type tier uint8

const (
	onTrial tier = iota
	signed
	established
	proven

	tiers = iota
)

// A session without a Receipt becomes established by more packets and time than a flood of spoofed packets is likely to
// spend on one address.
const (
	establishedPackets = 16
	establishedAge     = 10 * time.Second
)

// sentSlots is how many replies keep their transmit timestamp: the Receipt has the last three, and timestamps may
// arrive slightly out of order.
const sentSlots = 8

// sent is one reply: its T3, and its transmit timestamp, absent until the kernel has reported it.
type sent struct {
	number uint64
	t3     instant.Time
	stamp  sample.Stamp
}

// session is the state of one sender's stream of requests.
type session struct {
	// hostToken is this kernel's token for the session's Run; 0: not computed.
	hostToken uint32
	key       sessionKey
	epoch     uint32 // never 0
	tier      tier
	keyIndex  int // the key of the last verification, if key.auth
	src       *source
	place     place[session] // in its tier

	opened, seen time.Duration // monotonic
	// lastT1 is the newest T1, in the sender's format, which sorts by time; its request had number lastSeq and was
	// received at lastT1At.
	lastT1   uint64
	lastT1At time.Duration
	lastSeq  uint32
	// receipt is the time of the last packet with a Receipt, full that of the last test packet with one; 0: never. A
	// sender whose test packets are too small for one sends statistics queries in addition.
	receipt, full time.Duration
	// wait is the sender's Tmax.
	wait time.Duration
	// received counts test packets, copies included; tx replies to them.
	received, tx uint64
	corrupted    uint64
	// window counts the sender's numbers. It is most of a session's memory and is made with the second packet; the
	// first one had the number first.
	window *seqwin.Window
	single bool
	first  uint32
	sent   [sentSlots]sent
	// dropsBefore are the socket's drops before the session, refused its own refused packets, reportedDrops the sum of
	// both last reported, and hostReports the number of further replies that report it.
	dropsBefore   uint64
	refused       uint64
	reportedDrops uint32
	hostReports   uint8
	// heir is the Epoch of the newest session with another Run that a statistics query, sent at heirT1, has opened in this flow; see ofFlow.
	heir   uint32
	heirT1 uint64
	// remarked and marked count requests that arrived with another DSCP than they were sent with, and with ECN CE.
	remarked, marked uint16
	// inRound counts the replies in the shard's current round.
	round   uint64
	inRound uint8
	tellsTX bool // the kernel or the card has reported a transmit timestamp
}

// cookie identifies reply n of s to the socket, which returns it with the transmit timestamp. It is never 0.
func (s *session) cookie(n uint64) uint64 { return uint64(s.epoch)<<32 | n&(1<<32-1) }

// stamped records the transmit timestamp of reply n (its low 32 bits). A user-space timestamp is ignored: the reply has
// one as T3.
func (s *session) stamped(n uint32, t3 sample.Stamp) {
	if t3.Origin < sample.Kernel {
		return
	}
	s.tellsTX = true
	if e := &s.sent[n%sentSlots]; uint32(e.number) == n && e.stamp.Origin < t3.Origin {
		e.stamp = t3
	}
}

// sealed records the T3 of reply n.
func (s *session) sealed(n uint64, t3 instant.Time) {
	if e := &s.sent[n%sentSlots]; e.number == n {
		e.t3 = t3
	}
}

// earlierReply is the reply sent back places before the next one; its timestamp is absent if it is not known.
func (s *session) earlierReply(next, back uint64) sent {
	if back > next {
		return sent{}
	}
	if e := s.sent[(next-back)%sentSlots]; e.number == next-back {
		return e
	}
	return sent{}
}

// left is the Receipt's entry of that reply.
func (s *session) left(next, back uint64) stampfmt.ReplyTX {
	e := s.earlierReply(next, back)
	if !e.stamp.Present() {
		return stampfmt.ReplyTX{}
	}
	return stampfmt.ReplyTX{Known: true, After: e.stamp.At.Sub(e.t3), TXUncertainty: e.stamp.TXUncertainty}
}

// number allocates the next reply's number.
func (s *session) number() uint64 {
	n := s.tx
	s.sent[n%sentSlots] = sent{number: n}
	s.tx++
	return n
}

// releaseNumber releases the number of a reply that was not sent, if it is the newest: a failure of this host must not
// count as a loss on the path.
func (s *session) releaseNumber(n uint64) {
	if s.tx == n+1 {
		s.tx = n
	}
}

// An HMAC authenticates the creator of a request, not its sender: it may be a recorded one. A request that is not new
// to its session changes none of the numbers that define losses.

// awaits reports whether the test packet with the sender's number seq was certainly not received so far.
func (s *session) awaits(seq uint32) bool {
	if s.window == nil {
		return s.ahead(seq)
	}
	return s.window.IsMissing(seqwin.Extend(s.window.Counts().Next, seq))
}

// has reports whether that test packet was received, as far back as the window reaches.
func (s *session) has(seq uint32) bool {
	if s.window == nil {
		return s.single && seq == s.first
	}
	return s.window.Seen(seqwin.Extend(s.window.Counts().Next, seq))
}

// newer reports whether timestamp a, in wire format, is later than b.
func newer(a, b uint64) bool { return int64(a-b) > 0 }

// repeats reports whether q, if its HMAC is valid, was received in session known before. A sender without a Run is of
// another implementation, which may reuse its numbers, in any order and with a clock that is behind: only the newest of
// its requests is compared. Ours, if its test packets have no Receipt, may have begun another run, whose requests are newer.
func (q *request) repeats(known *session) bool {
	switch {
	case known == nil, !q.authenticated, q.statsQuery(), known.awaits(q.base.Seq):
		return false
	case q.tlvs.receipt != 0, known.full != 0:
		return true
	case known.key.run != 0:
		return !newer(q.base.T1, known.lastT1)
	}
	return q.base.T1 == known.lastT1 && q.base.Seq == known.lastSeq
}

// statsQuery reports whether q is a statistics query.
func (q *request) statsQuery() bool { return q.tlvs.receipt != 0 && q.receipt.StatsQuery }

// repeated handles an authentic copy. A copy of a packet in the window counts as a duplicate.
func (s *shard) repeated(q *request, known *session, now time.Duration) Result {
	if known.has(q.base.Seq) {
		s.table.arrive(known, q.base.Seq, now)
	}
	return Repeated
}

// note records the time of the newest request of s.
func (s *session) note(q *request, now time.Duration) {
	if newer(q.base.T1, s.lastT1) {
		s.lastT1, s.lastT1At = q.base.T1, now
	}
	if q.base.T1 == s.lastT1 {
		s.lastSeq = q.base.Seq
	}
}

// replayedBefore reports whether all earlier requests of s took longer than its waiting time and precede q by that
// much: then recorded requests opened it. A session whose sender has repeated its Epoch, or that is old enough, is not.
func (q *request) replayedBefore(s *session, now time.Duration) bool {
	if !q.authenticated || s.tier >= established || !q.ahead(s) {
		return false
	}
	// Both formats have seconds in the upper half. One second is subtracted for rounding.
	later := time.Duration(int32(q.base.T1>>32-s.lastT1>>32)-1) * time.Second
	return later-(now-s.lastT1At) > s.wait
}

// reopen closes session old and opens a new one for q.
func (s *shard) reopen(old *session, q *request, now time.Duration) *session {
	key, src, dropsBefore, refused := old.key, old.src, old.dropsBefore, old.refused
	s.table.close(old) // src may have no session now, but is the last to be removed
	opened := s.table.open(key, src, now, s.options.LossWait)
	opened.begin(q, now)
	opened.dropsBefore, opened.refused = dropsBefore, refused
	return opened
}

// begin records the request that opens s.
func (s *session) begin(q *request, now time.Duration) {
	s.lastT1, s.lastT1At, s.lastSeq = q.base.T1, now, q.base.Seq
}

// arrive counts the test packet with the sender's number seq.
func (t *table) arrive(s *session, seq uint32, now time.Duration) {
	s.received++
	if s.window == nil {
		if !s.single {
			s.single, s.first = true, seq
			return
		}
		t.begin(s, seq)
	}
	// Before Add: a packet after its waiting time is late even if no packet was received in between.
	s.window.Expire(now, s.wait)
	s.window.Add(seqwin.Extend(s.window.Counts().Next, seq), now)
}

// join counts in s the packets of bare, which it closes: test packets without a Receipt have begun it at a new address of the sender of s,
// before the first statistics query from there.
func (t *table) join(s, bare *session, now time.Duration) {
	add := func(n uint64) { t.arrive(s, uint32(n), now) }
	switch {
	case bare.window != nil:
		bare.window.EachReceived(add)
	case bare.single:
		add(uint64(bare.first))
	}
	t.close(bare)
}

// mayBeOf reports whether the test packets of bare, which has no Run, may be of the sender of q: it has sent their numbers before q, or they
// have just overtaken q. Others are of a former sender with this address.
func (s *session) mayBeOf(q *request, now time.Duration) bool {
	return now-s.opened < overtakes || s.received == 0 || int32(uint32(s.counts().Next)-uint32(q.sentBefore())) <= 0
}

// retract counts the packets that s has counted as received as damaged, since its sender's test packets have Receipts:
// a first packet with damage in the bytes that identify its Receipt cannot be detected otherwise.
func (t *table) retract(s *session) {
	if s.received == 0 {
		return
	}
	s.corrupted += s.received
	s.received = 0
	start := uint64(s.first)
	if s.window == nil {
		t.addWindow(s)
	} else {
		start = s.window.Counts().First
		s.window.Reset()
		t.charge(s)
	}
	s.window.Start(start)
}

// counts are those of the numbers of s, which has received at least one.
func (s *session) counts() seqwin.Counts {
	if s.window != nil {
		return s.window.Counts()
	}
	n := uint64(s.first)
	return seqwin.Counts{First: n, Base: n + 1, Next: n + 1, Received: 1, Recent: [seqwin.RecentWords]uint64{1}}
}

// statsQuery updates the counts for a statistics query, which reports that the sender has sent the numbers below next
// and, with finish, has waited for them.
func (t *table) statsQuery(s *session, next uint32, finish bool, now time.Duration) {
	if s.window == nil {
		t.begin(s, next)
	}
	s.window.Expire(now, s.wait)
	if finish {
		s.window.Finish(seqwin.Extend(s.window.Counts().Next, next), now)
	}
}

// begin makes the window of s. It starts with the one packet received so far, or else with number next.
func (t *table) begin(s *session, next uint32) {
	t.addWindow(s)
	if !s.single {
		s.window.Start(uint64(next))
		return
	}
	s.window.Start(uint64(s.first))
	s.window.Add(uint64(s.first), s.opened)
}

// ahead reports whether the sender's number seq is beyond all numbers of s. A copy of an old packet, or a replay, is
// not ahead.
func (s *session) ahead(seq uint32) bool {
	if s.window == nil {
		return !s.single || int32(seq-s.first) > 0
	}
	next := s.window.Counts().Next
	return seqwin.Extend(next, seq) >= next
}
