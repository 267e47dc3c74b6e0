package reflector

import (
	"net/netip"
	"time"

	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/seqwin"
	"oneway.example/exporter/wire/stamp"
)

// flow is what every packet of a session has in common on the wire, damaged
// payloads included.
type flow struct {
	peer, local [16]byte
	port, ssid  uint16
	auth        uint32 // 1: authenticated; so wide that there are no gaps to hash around
}

// sessionKey identifies a session.
type sessionKey struct {
	flow
	run uint64 // runKey of the Receipt's Run; 0 if none has been seen
}

// runKey tells Run 0, which a sender may well draw, from none.
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

// tier is how much a session is worth keeping; see the package comment.
type tier uint8

const (
	onTrial tier = iota
	signed
	seasoned
	proven

	tiers = iota
)

// A session without a Receipt is seasoned by as much as a flood of spoofed
// packets is unlikely to spend on one address.
const (
	seasonedPackets = 16
	seasonedAge     = 10 * time.Second
)

// sentSlots is how many replies keep their transmit stamp: the Receipt tells of
// the last three, and stamps may come a little out of order.
const sentSlots = 8

// sent is one reply: the T3 that is in it, and its transmit stamp, absent until
// the kernel has told it.
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
	keyIndex  int // the key that verified last, if key.auth
	src       *source
	place     place[session] // in its tier

	opened, seen time.Duration // monotonic
	// lastT1 is the newest T1, in the sender's format, whose order is that of time; its request was
	// numbered lastSeq, and came at lastT1At.
	lastT1   uint64
	lastT1At time.Duration
	lastSeq  uint32
	// receipt is when a packet last had a Receipt, full when a test packet had one; 0: never. A
	// sender whose test packets are too small for one sends queries beside them.
	receipt, full time.Duration
	// wait is the sender's Tmax.
	wait time.Duration
	// received counts test packets, copies included; tx replies to them.
	received, tx uint64
	corrupted    uint64
	// window counts the sender's numbers. It is most of a session's memory and
	// is not made before there is more to count than one packet, numbered first.
	window *seqwin.Window
	single bool
	first  uint32
	sent   [sentSlots]sent
	// dropsBefore are the socket's drops of before the session, refused are packets of its own
	// that were refused, toldDrops is the count of both that was last told, and tellHost how
	// many more answers are to tell it.
	dropsBefore uint64
	refused     uint64
	toldDrops   uint32
	tellHost    uint8
	// remarked and marked count requests that arrived with another DSCP than they were sent with, and with ECN CE.
	remarked, marked uint16
	// inRound counts the replies in the shard's round.
	round   uint64
	inRound uint8
}

// cookie names answer number n of s toward the socket, which returns it with
// the transmit stamp. It is never 0.
func (s *session) cookie(n uint64) uint64 { return uint64(s.epoch)<<32 | n&(1<<32-1) }

// stamped notes when answer n (its low 32 bits) really left. A user-space stamp
// would be no news: the reply carried one as T3.
func (s *session) stamped(n uint32, t3 sample.Stamp) {
	if e := &s.sent[n%sentSlots]; uint32(e.number) == n && t3.Origin >= sample.Kernel && e.stamp.Origin < t3.Origin {
		e.stamp = t3
	}
}

// sealed notes the T3 that was written into answer n.
func (s *session) sealed(n uint64, t3 instant.Time) {
	if e := &s.sent[n%sentSlots]; e.number == n {
		e.t3 = t3
	}
}

// sentBack is the reply sent back places before the next one; its stamp is
// absent if it is not known.
func (s *session) sentBack(next, back uint64) sent {
	if back > next {
		return sent{}
	}
	if e := s.sent[(next-back)%sentSlots]; e.number == next-back {
		return e
	}
	return sent{}
}

// left is what a Receipt tells of that reply.
func (s *session) left(next, back uint64) stamp.Left {
	e := s.sentBack(next, back)
	if !e.stamp.Present() {
		return stamp.Left{}
	}
	return stamp.Left{Known: true, After: e.stamp.At.Sub(e.t3), TXUncertainty: e.stamp.TXUncertainty}
}

// number gives out the next reply's number.
func (s *session) number() uint64 {
	n := s.tx
	s.sent[n%sentSlots] = sent{number: n}
	s.tx++
	return n
}

// takeBack undoes number for a reply that never left, if it is the newest: the
// peer must not take this host's trouble for a loss on the way.
func (s *session) takeBack(n uint64) {
	if s.tx == n+1 {
		s.tx = n
	}
}

// An HMAC tells who made a request and not who sent it: it may have been recorded. A request that
// is no news to its session moves none of the numbers that tell losses.

// awaits reports whether the test packet with the sender's number seq has certainly not come so far.
func (s *session) awaits(seq uint32) bool {
	if s.window == nil {
		return s.ahead(seq)
	}
	return s.window.Awaits(seqwin.Extend(s.window.Counts().Next, seq))
}

// has reports whether that test packet has come, as far back as is remembered.
func (s *session) has(seq uint32) bool {
	if s.window == nil {
		return s.single && seq == s.first
	}
	return s.window.Seen(seqwin.Extend(s.window.Counts().Next, seq))
}

// newer reports whether stamp a, as it is on the wire, is of a later time than b.
func newer(a, b uint64) bool { return int64(a-b) > 0 }

// repeats reports whether q, if its HMAC is right, is what known has had before. A sender without a Run
// is another's, and may use its numbers again, in any order and with a clock that is behind: of its
// requests the newest alone is known.
func (q *request) repeats(known *session) bool {
	switch {
	case known == nil, !q.authenticated, q.statsQuery(), known.awaits(q.base.Seq):
		return false
	case q.tlvs.receipt != 0, known.key.run != 0:
		return true
	}
	return q.base.T1 == known.lastT1 && q.base.Seq == known.lastSeq
}

// statsQuery reports whether q is a query and no test packet.
func (q *request) statsQuery() bool { return q.tlvs.receipt != 0 && q.receipt.StatsQuery }

// repeated takes a copy, which is authentic. One of a packet that is remembered counts as such.
func (s *shard) repeated(q *request, known *session, now time.Duration) Result {
	if known.has(q.base.Seq) {
		s.table.arrive(known, q.base.Seq, now)
	}
	return Repeated
}

// note keeps the time of the newest request of s.
func (s *session) note(q *request, now time.Duration) {
	if newer(q.base.T1, s.lastT1) {
		s.lastT1, s.lastT1At = q.base.T1, now
	}
	if q.base.T1 == s.lastT1 {
		s.lastSeq = q.base.Seq
	}
}

// replayedBefore reports whether all that s has had before q took longer than its waiting time, and by
// so much longer than q: then it was opened by recorded requests. Once its sender has
// repeated its Epoch, or has asked for long, it is not.
func (q *request) replayedBefore(s *session, now time.Duration) bool {
	if !q.authenticated || s.tier >= seasoned || !q.ahead(s) {
		return false
	}
	// Both formats have seconds in the upper half. The step of a second is rounding.
	later := time.Duration(int32(q.base.T1>>32-s.lastT1>>32)-1) * time.Second
	return later-(now-s.lastT1At) > s.wait
}

// reopen makes s a session that begins now.
func (s *shard) reopen(old *session, q *request, now time.Duration) *session {
	key, src, dropsBefore, refused := old.key, old.src, old.dropsBefore, old.refused
	s.table.close(old) // src may have no session now, but is the last that would be forgotten
	opened := s.table.open(key, src, now, s.options.LossWait)
	opened.begin(q, now)
	opened.dropsBefore, opened.refused = dropsBefore, refused
	return opened
}

// begin notes the request that opens s.
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
	// Before Add: a packet that comes after its waiting time is late even if
	// nothing came in between.
	s.window.Expire(now, s.wait)
	s.window.Add(seqwin.Extend(s.window.Counts().Next, seq), now)
}

// retract counts as damaged what s has counted as received, since its sender's test
// packets turn out to have Receipts: where the first of them is damaged in just the
// bytes that make its Receipt one, nothing else tells.
func (t *table) retract(s *session) {
	if s.received == 0 {
		return
	}
	s.corrupted += s.received
	s.received = 0
	start := uint64(s.first)
	if s.window == nil {
		t.takeWindow(s)
	} else {
		start = s.window.Counts().First
		s.window.Reset()
		t.charge(s)
	}
	s.window.Start(start)
}

// counts are those of the numbers of s, of which there has been one at the least.
func (s *session) counts() seqwin.Counts {
	if s.window != nil {
		return s.window.Counts()
	}
	n := uint64(s.first)
	return seqwin.Counts{First: n, Base: n + 1, Next: n + 1, Received: 1, Recent: [seqwin.RecentWords]uint64{1}}
}

// statsQuery brings the counts up to date for a query that says that the sender has
// sent the numbers below next and, with finish, has waited for them.
func (t *table) statsQuery(s *session, next uint32, finish bool, now time.Duration) {
	if s.window == nil {
		t.begin(s, next)
	}
	s.window.Expire(now, s.wait)
	if finish {
		s.window.Finish(seqwin.Extend(s.window.Counts().Next, next), now)
	}
}

// begin makes the window of s. It starts with the one packet that there has
// been, or else with number next.
func (t *table) begin(s *session, next uint32) {
	t.takeWindow(s)
	if !s.single {
		s.window.Start(uint64(next))
		return
	}
	s.window.Start(uint64(s.first))
	s.window.Add(uint64(s.first), s.opened)
}

// ahead reports whether the sender's number seq is one that s has not come to
// yet. A copy of an old packet, or a replay, is not ahead.
func (s *session) ahead(seq uint32) bool {
	if s.window == nil {
		return !s.single || int32(seq-s.first) > 0
	}
	next := s.window.Counts().Next
	return seqwin.Extend(next, seq) >= next
}
