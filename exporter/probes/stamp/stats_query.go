package stamp

import (
	"encoding/binary"
	"slices"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/net/wire/stampfmt"
)

// statisticsPoller decides when to send a statistics query to our reflector: to open the session before the first
// test packet, to obtain the counts of each direction where test packets are too small for a Receipt, and to settle
// the end of a run.
type statisticsPoller struct {
	next     time.Duration
	tries    uint8
	opened   bool // the remote end has answered a query
	foreign  bool // it does not support our TLV
	finished bool // it has decided all sent packets
	// finish requests that decision; set after the loss timeout.
	finish bool
	ended  bool // the final query to a foreign reflector is sent
	// begin is the number at which a foreign reflector's replies begin, after its reply to the only query; 0:
	// unknown.
	begin uint64
	// sentT1 are the T1 of the last queries; they identify the replies of a reflector that returns no TLVs, or only
	// those that it supports.
	sentT1 []uint64
	count  uint32
	// heard is how many queries had been sent when the last reply to one arrived.
	heard uint32
}

const (
	openTries          = 3
	statsQueryInterval = 250 * time.Millisecond
	// statsQueriesKept is how many of the last queries are remembered: those of a minute, the longest loss timeout.
	statsQueriesKept = 64
	// leap is the distance of the number of a foreign reflector's last query from the test packets' numbers: a
	// reply that repeats it is not numbered by the reflector. A smaller distance could occur by chance after
	// losses.
	leap = 1000
)

// due reports whether a query is to be sent now, and records it.
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

// note records the T1 of a query that is being sent.
func (q *statisticsPoller) note(t1 uint64) {
	if len(q.sentT1) < statsQueriesKept {
		q.sentT1 = append(q.sentT1, t1)
	} else {
		q.sentT1[q.count%statsQueriesKept] = t1
	}
	q.count++
}

// contains reports whether t1 is that of a query, and of the last one.
func (q *statisticsPoller) contains(t1 uint64) (known, last bool) {
	if q.count == 0 {
		return false, false
	}
	return slices.Contains(q.sentT1, t1), q.sentT1[(q.count-1)%statsQueriesKept] == t1
}

// answered records the reply to a query.
func (q *statisticsPoller) answered(finish bool) {
	q.opened = true
	q.finished = q.finished || finish
}

// writeTest writes test packet seq into b. It does not allocate if the capacity of b suffices. The caller holds
// s.mu.
func (s *session) writeTest(b []byte, seq uint32, t1 instant.Time, q clock.Quality) []byte {
	b = s.writeBase(b[:0], seq, t1, q)
	if s.layout.followUp {
		b = stampfmt.FollowUp{}.AppendTo(b)
	}
	if s.layout.receipt {
		r := s.receipt(s.layout.words)
		r.Next = seq + 1
		b = r.AppendTo(b)
	}
	if s.layout.padding >= 0 {
		b = stampfmt.AppendPadding(b, s.layout.padding, seq)
	}
	return s.seal(b)
}

// writeStatsQuery returns a packet that requests counts and is not a test packet.
func (s *session) writeStatsQuery(finish bool) []byte {
	now := instant.Now()
	next := uint32(s.account.outstandingPackets.next)
	s.account.statsQuery.note(s.opts.encode(now))
	seq := next
	if finish && s.account.kind != remoteOurs {
		seq += leap
	}
	b := s.writeBase(make([]byte, 0, defaultSize(true)), seq, now, s.estimator.clock.Quality(now))
	b = stampfmt.FollowUp{}.AppendTo(b)
	r := s.receipt(receiptWords)
	r.StatsQuery, r.Finish, r.Next = true, finish, next
	return s.seal(r.AppendTo(b))
}

// receipt returns the TLV of every request: session, kernel, the loss timeout in milliseconds in the field that
// counts replies on the way back, and the flag for host blocks.
func (s *session) receipt(words int) stampfmt.Receipt {
	return stampfmt.Receipt{
		Words: words, Run: s.run, Base: s.hostToken, Epoch: s.account.remote.epoch, Received: stampfmt.HostRequest(uint8(s.opts.DSCP)),
		Tx: uint32(s.opts.LossTimeout.Milliseconds()),
	}
}

func (s *session) writeBase(b []byte, seq uint32, t1 instant.Time, q clock.Quality) []byte {
	p := stampfmt.SenderPacket{
		Seq: seq, T1: s.opts.encode(t1), SSID: s.ssid,
		Error: q.ErrorEstimate(s.opts.format),
	}
	if s.layout.authenticated {
		return p.AppendAuthenticatedTo(b, s.keys[0])
	}
	return p.AppendTo(b)
}

// seal adds the CRC of the Receipt and the HMAC of the TLVs, which is last because it covers the CRC.
func (s *session) seal(b []byte) []byte {
	hasTLVs := max(len(b), s.layout.size) > s.layout.base // a payload size may leave space for the HMAC TLV alone
	if s.layout.authenticated && hasTLVs {
		b = stampfmt.AppendTLVHMAC(b)
	}
	stampfmt.SealCRC(b, s.layout.authenticated)
	if s.layout.authenticated && hasTLVs {
		stampfmt.PutTLVHMAC(b, s.layout.base, s.keys[0])
	}
	return b
}

// ssidOf reads the SSID of either kind of packet.
func ssidOf(b []byte, authenticated bool) uint16 {
	if authenticated {
		return binary.BigEndian.Uint16(b[26:])
	}
	return binary.BigEndian.Uint16(b[14:])
}
