package ledger

import "math"

// Sharing is whose replies a reflector other than ours numbers together. Then it cannot be told which of them are missing.
type Sharing uint8

// Kinds of sharing.
const (
	// SharedByNone: the replies to this session have numbers of their own, as far as it is known.
	SharedByNone Sharing = iota
	// SharedByHost: several sessions of this host share the numbers.
	SharedByHost
	// SharedByAll: all senders of the reflector share them.
	SharedByAll
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

// ShareNumbers records that the remote end numbers the replies to several sessions of this host together.
func (a *Account) ShareNumbers() { a.Shared = max(a.Shared, SharedByHost) }

// unshare ignores the number of r, the reply to q, if the remote end numbers the replies to this session and to others together.
//
// A remote end that numbers them by session sends no more replies than requests. Where more numbers than requests are between two
// replies, one of them is of an earlier request, which has no reply or one that was overtaken, of a statistics query, or of a copy of a
// request that the path made. Numbers that are missing for no such reason are of other senders.
func (a *Account) unshare(r *Reply, q Request) {
	if a.Shared == SharedByNone && a.Kind != RemoteOurs && a.missedBefore(r, q) &&
		int64(a.order.excess) > copyTolerance+int64(a.outstandingPackets.unheard) {
		a.Shared = SharedByAll
	}
	if a.Shared == SharedByNone {
		return
	}
	r.Packet.Seq, r.HasFollow = r.Packet.SenderSeq, false
	if a.Kind == RemoteStateful {
		a.Kind = RemoteStateless
		a.endNumbers(func() uint64 { return 0 })
		a.reverseOn, a.statsQuery.begin = false, 0
	}
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
