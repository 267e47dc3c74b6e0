package reflector

import (
	"encoding/binary"
	"time"

	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/tstamp"
	"oneway.example/exporter/wire/stamp"
	"oneway.example/exporter/wire/timefmt"
)

// answer is what is still to be done to a prepared packet just before it is
// sent, and what has to be undone if that fails.
type answer struct {
	payload []byte
	dscp    uint8
	cookie  uint64 // 0: no transmit stamp is wanted

	format        timefmt.Format
	authenticated bool
	baseBytes     int
	receipt       bool       // a check sum is to be computed
	key           *stamp.Key // nil: nothing is to be signed
	hmacTLV       int        // offset; 0: none is to be signed

	session *session // whose number it has; nil: it has none
	number  uint64
}

// reply turns b into the answer to q. Without a session it is a stateless one.
func (s *shard) reply(in *tstamp.In, q *question, known *session, verified bool, now time.Duration, a *answer) {
	b := in.Payload
	t2 := in.Stamp
	if !t2.Present() {
		t2 = sample.Stamp{At: in.At, Origin: sample.User}
	}
	*a = answer{
		payload: b, dscp: in.DSCP, format: q.base.Error.Format(), authenticated: q.authenticated, baseBytes: q.baseBytes,
	}
	if q.authenticated {
		a.key = s.keys[q.keyIndex]
	}
	f := filler{shard: s, in: in, q: q, session: known, t2: t2, a: a}
	number := q.base.Seq
	if known != nil {
		f.next = s.count(q, known, now, a)
		number = uint32(f.next)
	}
	s.writeBase(b, q, number, in.TTL, t2.At, a.format)
	if !verified {
		f.distrust()
		return
	}
	f.fill()
	if q.tlvs.hmac != 0 && (q.tlvs.malformed == 0 || q.tlvs.hmac < q.tlvs.malformed) {
		a.hmacTLV, a.key = q.tlvs.hmac, s.keys[q.keyIndex]
	}
}

// count enters q into the books of its session and returns the answer's number:
// that of the next answer, for a query.
func (s *shard) count(q *question, known *session, now time.Duration, a *answer) uint64 {
	t := s.table
	r := &q.receipt
	if q.tlvs.receipt != 0 {
		known.wait = waitingTime(r.Tx, s.lossWait)
		if r.Epoch == known.epoch {
			t.promote(known, proven)
		}
	}
	known.keyIndex = q.keyIndex
	known.enter(s.round)
	known.note(q, now)
	t.touch(known, now)
	if q.query() {
		t.query(known, r.Next, r.Finish, now)
		return known.tx
	}
	if q.tlvs.receipt != 0 {
		if known.full == 0 {
			t.retract(known)
		}
		known.full = max(now, 1)
	}
	t.arrive(known, q.base.Seq, now)
	a.session, a.number = known, known.number()
	a.cookie = known.cookie(a.number)
	return a.number
}

// waitingTime reads the sender's Tmax, in milliseconds, from its Receipt.
func waitingTime(ms uint32, otherwise time.Duration) time.Duration {
	if ms == 0 {
		return otherwise
	}
	return min(time.Duration(ms)*time.Millisecond, longestWait)
}

// seal finishes a prepared answer: T3 is now, then the check sums, in the order
// in which one covers the other.
func (s *shard) seal(a *answer, now instant.Time) {
	b := a.payload
	if a.session != nil {
		a.session.sealed(a.number, now)
	}
	stamp.PutT3(b, a.authenticated, a.format.Encode(now, s.tai))
	if a.receipt {
		stamp.SealCRC(b, a.authenticated)
	}
	if a.hmacTLV != 0 {
		stamp.PutTLVHMAC(b[:a.hmacTLV+hmacTLVBytes], a.baseBytes, a.key)
	}
	if a.authenticated {
		stamp.PutHMAC(b, a.key)
	}
}

// writeBase writes the answer's base packet over the question's. T3 and the
// HMAC come later.
func (s *shard) writeBase(b []byte, q *question, number uint32, ttl uint8, t2 instant.Time, f timefmt.Format) {
	p := stamp.ReflectorPacket{
		Seq: number, Error: s.clock.estimates[f], SSID: q.base.SSID, T2: f.Encode(t2, s.tai),
		SenderSeq: q.base.Seq, SenderT1: q.base.T1, SenderError: q.base.Error, SenderTTL: ttl,
	}
	switch {
	case q.authenticated:
		putSealed(b, &p)
	case len(b) < stamp.UnauthenticatedBytes:
		// A TWAMP-Light question may lack the last three octets, which are zero.
		var whole [stamp.UnauthenticatedBytes]byte
		copy(b, p.AppendTo(whole[:0]))
	default:
		p.AppendTo(b[:0])
	}
}

// putSealed writes the authenticated base packet without its HMAC, which
// stamp.ReflectorPacket would compute before T3 is known.
func putSealed(b []byte, p *stamp.ReflectorPacket) {
	be := binary.BigEndian
	clear(b[:stamp.AuthenticatedBytes])
	be.PutUint32(b, p.Seq)
	be.PutUint16(b[24:], uint16(p.Error))
	be.PutUint16(b[26:], p.SSID)
	be.PutUint64(b[32:], p.T2)
	be.PutUint32(b[48:], p.SenderSeq)
	be.PutUint64(b[64:], p.SenderT1)
	be.PutUint16(b[72:], uint16(p.SenderError))
	b[80] = p.SenderTTL
}
