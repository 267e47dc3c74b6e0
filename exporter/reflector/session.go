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

// sentSlots is how many answers keep their transmit stamp: the Receipt tells of
// the last three, and stamps may come a little out of order.
const sentSlots = 8

// sent is one answer: the T3 that is in it, and its transmit stamp, absent until
// the kernel has told it.
type sent struct {
	number uint64
	t3     instant.Time
	stamp  sample.Stamp
}

// session is the state of one sender's stream of questions.
type session struct {
	// hostToken is this kernel's token for the session's Run; 0: not computed.
	hostToken  uint32
	key        sessionKey
	epoch      uint32 // 0: no Receipts
	slot       uint32
	generation uint8 // of the slot: a late stamp must not reach its next user
	tier       tier
	keyIndex   int // the key that verified last, if key.auth
	src        *source
	prev, next *session // in its tier, newest first

	opened, seen time.Duration // monotonic
	// lastT1 is the newest T1, in the sender's format, whose order is that of time; its question was
	// numbered lastSeq, and came at lastT1At.
	lastT1   uint64
	lastT1At time.Duration
	lastSeq  uint32
	// full is when a test packet last had a Receipt; 0: never. A sender whose
	// packets are too small for one sends queries beside them.
	full time.Duration
	// wait is the sender's Tmax.
	wait time.Duration
	// received counts test packets, copies included; tx answers to them.
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
	// inRound counts the answers in the shard's round.
	round   uint64
	inRound uint8
}

// cookie names answer number n of s towards the socket, which returns it with
// the transmit stamp. It is never 0.
func (s *session) cookie(n uint64) uint64 {
	return uint64(s.slot+1)<<40 | uint64(s.generation)<<32 | n&(1<<32-1)
}

// stamped notes when answer n (its low 32 bits) really left. A user-space stamp
// would be no news: the answer carried one as T3.
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

// sentBack is the answer sent back places before the next one; its stamp is
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

// left is what a Receipt tells of that answer.
func (s *session) left(next, back uint64) stamp.Left {
	e := s.sentBack(next, back)
	if !e.stamp.Present() {
		return stamp.Left{}
	}
	return stamp.Left{Known: true, After: e.stamp.At.Sub(e.t3), Held: e.stamp.Held}
}

// number gives out the next answer's number.
func (s *session) number() uint64 {
	n := s.tx
	s.sent[n%sentSlots] = sent{number: n}
	s.tx++
	return n
}

// enter counts an answer into the round.
func (s *session) enter(round uint64) {
	if s.round != round {
		s.round, s.inRound = round, 0
	}
	s.inRound++
}

// takeBack undoes number for an answer that never left, if it is the newest: the
// peer must not take this host's trouble for a loss on the way.
func (s *session) takeBack(n uint64) {
	if s.tx == n+1 {
		s.tx = n
	}
}
