package ledger

import (
	"math"
	"time"

	"oneway.example/exporter/net/wire/stampfmt"
)

// Sharing is who shares the numbers of the replies. Then it cannot be told which packets are missing, and in which direction.
type Sharing uint8

// Kinds of sharing.
const (
	// SharedByNone: the replies to this session have numbers of their own, as far as it is known.
	SharedByNone Sharing = iota
	// SharedByHost: several sessions of this host share the numbers of a reflector other than ours.
	SharedByHost
	// SharedByAll: all senders of such a reflector share them.
	SharedByAll
	// SharedAddress: several of our reflectors reply in turn at one address. Each of them counts what it received itself.
	SharedAddress
)

// What explains a missing reply, see unshare.
const (
	// copyTolerance is how many missing replies stay unexplained: each may be the reply to a copy of a request that the path made.
	copyTolerance = 4
	// copyExplains is how many missing replies are explained by a copy of a request whose reply arrived: the path copies requests, and
	// may lose the replies to other copies.
	copyExplains = 8
	// mostMissing is how many missing replies between two are counted at most: the numbers may begin anew there.
	mostMissing = 3
	// mostExplained is how many missing replies may be explained before they are missing.
	mostExplained = 64
)

// soleTime is for how long one session alone has replied at an address that several reflectors had, when it is measured anew: a load balancer
// was removed, for example.
const soleTime = 15 * time.Minute

// ShareNumbers records that the remote end numbers the replies to several sessions of this host together.
func (a *Account) ShareNumbers() { a.Shared = max(a.Shared, SharedByHost) }

// unshare ignores the number and the counts of r, the reply to q, if the remote end numbers the replies to this session and to others
// together, or consists of several reflectors.
//
// A remote end that numbers them by session sends no more replies than requests. Where more numbers than requests are between two
// replies, one of them is of an earlier request, which has no reply or one that was overtaken, of a statistics query, or of a copy of a
// request that the path made. Numbers that are missing for no such reason are of other senders.
func (a *Account) unshare(r *Reply, q Request, now time.Duration) {
	switch {
	case a.Shared == SharedAddress:
		if r.Filled() && r.Receipt.Epoch != a.remote.epoch {
			a.remote.epoch, a.remote.heard = r.Receipt.Epoch, now
		}
	case r.Filled():
		if !a.alternates(r, q) {
			return
		}
		a.Shared = SharedAddress
	case a.Shared == SharedByNone && a.Kind != RemoteOurs && a.missedBefore(r, q) &&
		int64(a.order.excess) > copyTolerance+int64(a.outstandingPackets.unheard):
		a.Shared = SharedByAll
	}
	if a.Shared == SharedByNone {
		return
	}
	r.Packet.Seq, r.HasFollow, r.Unnumbered = r.Packet.SenderSeq, false, true
	if a.Kind == RemoteStateful || a.Kind == RemoteOurs && a.Shared == SharedAddress {
		a.Kind = RemoteStateless
		a.endNumbers(func() uint64 { return 0 })
		a.reverseOn, a.statsQuery.begin, a.remote = false, 0, remote{}
	}
}

// Sole reports whether one session of our reflector alone has replied for a long time at an address that several had.
func (a *Account) Sole(now time.Duration) bool {
	return a.Shared == SharedAddress && a.remote.epoch != 0 && now-a.remote.heard > soleTime
}

// alternates reports whether r, the reply to q, shows that several of our reflectors reply in turn: the present session replies, then
// another one, and again the present one, each to a request that was sent after the reply before had arrived. A session that has ended does
// not; of an address that moves to another reflector and back, the present session is the other reflector's.
func (a *Account) alternates(r *Reply, q Request) bool {
	m, after := &a.remote, int32(r.Packet.SenderSeq-a.remote.turn)
	switch {
	case !m.known, !q.StatsQuery && !q.first(), after < 0, after == 0 && q.StatsQuery: // a query has the number of the next test packet
	case (r.Receipt.Epoch != m.epoch) == (m.turns == 0):
		m.turns, m.turn = m.turns+1, uint32(a.outstandingPackets.next)
	}
	return m.turns > 1
}

// answeredElsewhere reports whether the present session of our reflector counts more packets as lost than have no reply: another one has
// received them.
func (a *Account) answeredElsewhere(rc *stampfmt.Receipt) bool {
	unanswered := a.outstandingPackets.next - a.answered()
	return int32(rc.Lost-rc.Late-uint32(unanswered)) > 0
}

// missedBefore reports whether more numbers than requests are between r, the first reply to q, and the first reply before it, and counts
// them.
func (a *Account) missedBefore(r *Reply, q Request) bool {
	o := &a.order
	if q.StatsQuery {
		o.explain(1)
	}
	if !q.first() {
		return false
	}
	asked, numbers := int(int32(uint32(q.Seq)-o.seq)), int(int32(r.Packet.Seq-o.n))
	missing := numbers - asked
	missed := a.reverseOn && asked > 0 && missing > 0
	switch {
	case missed:
		o.excess = int16(min(int(o.excess)+min(missing, mostMissing), math.MaxInt16))
		o.refused = 0 // numbers that begin anew have no gap
	case numbers < 0: // it was overtaken
		o.explain(1)
	}
	o.seq, o.n = uint32(q.Seq), r.Packet.Seq
	return missed
}

// explain takes what explains n missing replies.
func (o *order) explain(n int) {
	o.excess = int16(max(int(o.excess)-n, -mostExplained))
}
