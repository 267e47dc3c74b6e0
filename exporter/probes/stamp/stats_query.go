package stamp

import (
	"encoding/binary"
	"slices"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/instant"
	wire "oneway.example/exporter/wire/stamp"
)

// statisticsPoller decides when to ask our reflector for its counts in a packet that is
// not a test packet: to open the session before the first test packet, to tell
// the directions apart where test packets are too small for a Receipt, and to
// settle the end of a run.
type statisticsPoller struct {
	tries    int
	next     time.Duration
	opened   bool // the remote end has answered a query
	foreign  bool // it does not know our TLV
	finished bool // it has decided everything that was sent
	// finish asks for that decision; set once the loss timeout has passed.
	finish bool
	// begin is what a foreign reflector's answers are numbered from, after its
	// reply to the only query; 0: not known.
	begin uint64
	ended bool // the one query that a foreign reflector gets at the end is sent
	// asked are the T1 of the last queries, by which their replies are known
	// from a reflector that returns no TLVs, or none that it does not know.
	asked []uint64
	count int
	// heard is how many were asked when one of them was answered last.
	heard int
}

const (
	openTries          = 3
	statsQueryInterval = 250 * time.Millisecond
	// statsQueriesKept is how many of the last queries may be answered: those of a minute, the longest
	// waiting time.
	statsQueriesKept = 64
	// leap is how far the number of a foreign reflector's last query is beyond
	// the test packets: a reply that repeats it has no number of its own. Of
	// other numbers that may be chance, after losses.
	leap = 1000
)

// due reports whether a query is to be sent now, and notes that it is.
func (q *statisticsPoller) due(now time.Duration, needed bool, interval time.Duration) bool {
	switch {
	case now < q.next:
		return false
	case q.foreign:
		first := q.finish && !q.ended
		q.ended = q.ended || first
		return first
	case q.finish:
		if q.finished {
			return false
		}
		q.next = now + statsQueryInterval
	case !q.opened && q.tries < openTries:
		q.tries++
		q.next = now + statsQueryInterval
	case needed:
		q.next = now + max(interval, time.Second)
	default:
		return false
	}
	return true
}

// note keeps the T1 of a query that is being sent.
func (q *statisticsPoller) note(t1 uint64) {
	if len(q.asked) < statsQueriesKept {
		q.asked = append(q.asked, t1)
	} else {
		q.asked[q.count%statsQueriesKept] = t1
	}
	q.count++
}

// knows reports whether t1 is that of a query, and of the last one.
func (q *statisticsPoller) knows(t1 uint64) (known, last bool) {
	if q.count == 0 {
		return false, false
	}
	return slices.Contains(q.asked, t1), q.asked[(q.count-1)%statsQueriesKept] == t1
}

// answered notes the reply to a query.
func (q *statisticsPoller) answered(finish bool) {
	q.opened = true
	q.finished = q.finished || finish
}

// writeTest writes test packet seq over b. It allocates nothing if b has room.
// The caller holds s.mu.
func (s *session) writeTest(b []byte, seq uint32, t1 instant.Time, q clock.Quality) []byte {
	b = s.writeBase(b[:0], seq, t1, q)
	if s.layout.followUp {
		b = wire.FollowUp{}.AppendTo(b)
	}
	if s.layout.receipt {
		r := s.receipt(s.layout.words)
		r.Next = seq + 1
		b = r.AppendTo(b)
	}
	if s.layout.padding >= 0 {
		b = wire.AppendPadding(b, s.layout.padding, seq)
	}
	return s.seal(b)
}

// writeStatsQuery makes a packet that asks for counts and is no test packet.
func (s *session) writeStatsQuery(finish bool) []byte {
	now := instant.Now()
	next := uint32(s.account.outstandingPackets.next)
	s.account.statsQuery.note(s.opts.encode(now))
	seq := next
	if finish && s.account.kind != remoteOurs {
		seq += leap
	}
	b := s.writeBase(make([]byte, 0, defaultSize(true)), seq, now, s.estimator.clock.Quality(now))
	b = wire.FollowUp{}.AppendTo(b)
	r := s.receipt(receiptWords)
	r.StatsQuery, r.Finish, r.Next = true, finish, next
	return s.seal(r.AppendTo(b))
}

// receipt is what every request tells: who asks, on which kernel, and how long it waits for a
// reply, in milliseconds, in the field that counts answers on the way back; and that
// host blocks are understood.
func (s *session) receipt(words int) wire.Receipt {
	return wire.Receipt{
		Words: words, Run: s.run, Base: s.hostToken, Epoch: s.account.remote.epoch, Received: wire.Asks(uint8(s.opts.DSCP)),
		Tx: uint32(s.opts.LossTimeout.Milliseconds()),
	}
}

func (s *session) writeBase(b []byte, seq uint32, t1 instant.Time, q clock.Quality) []byte {
	p := wire.SenderPacket{
		Seq: seq, T1: s.opts.encode(t1), SSID: s.ssid,
		Error: q.ErrorEstimate(s.opts.format),
	}
	if s.layout.authenticated {
		return p.AppendAuthenticatedTo(b, s.keys[0])
	}
	return p.AppendTo(b)
}

// seal adds what protects a packet from damage and forgery: the CRC of the
// Receipt and, last because it covers the CRC, the HMAC of the TLVs.
func (s *session) seal(b []byte) []byte {
	hasTLVs := max(len(b), s.layout.size) > s.layout.base // a size may leave space for the HMAC TLV alone
	if s.layout.authenticated && hasTLVs {
		b = wire.TLV{Flags: wire.FlagUnrecognized, Type: wire.TypeHMAC, Value: s.blank[:]}.AppendTo(b)
	}
	wire.SealCRC(b, s.layout.authenticated)
	if s.layout.authenticated && hasTLVs {
		wire.PutTLVHMAC(b, s.layout.base, s.keys[0])
	}
	return b
}

// ssidOf reads the identifier at its place in either kind of packet.
func ssidOf(b []byte, authenticated bool) uint16 {
	if authenticated {
		return binary.BigEndian.Uint16(b[26:])
	}
	return binary.BigEndian.Uint16(b[14:])
}
