package reflector

import (
	"encoding/binary"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/net/wire/timefmt"
)

// pendingReply describes what remains to be done to a prepared reply just before it is sent, and what to undo if that
// fails.
type pendingReply struct {
	payload []byte
	short   [stampfmt.UnauthenticatedBytes]byte // the payload if it is longer than the request
	cookie  uint64                              // 0: no transmit timestamp

	format        timefmt.Format
	authenticated bool
	baseBytes     int
	receipt       bool          // a CRC is to be computed
	key           *stampfmt.Key // nil: nothing is to be signed
	hmacTLV       int           // offset; 0: no HMAC TLV is to be signed

	sealed bool // it is complete

	session *session // the session that numbered it; nil: none
	number  uint64
	result  Result
}

// reply turns b into the reply to q. Without a session it is a stateless one.
func (s *shard) reply(in *tstamp.In, q *request, known *session, verified bool, now time.Duration, a *pendingReply) {
	b := in.Payload
	if len(b) < len(a.short) && s.options.ShortRequests {
		b = a.short[:]
	}
	t2 := in.Stamp
	if !t2.Present() {
		t2 = sample.Stamp{At: in.At, Origin: sample.User}
	}
	*a = pendingReply{
		payload: b, format: q.base.Error.Format(), authenticated: q.authenticated, baseBytes: q.baseBytes,
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
		f.flagUnverified()
		return
	}
	f.fill()
	if q.tlvs.hmac != 0 && (q.tlvs.malformed == 0 || q.tlvs.hmac < q.tlvs.malformed) {
		a.hmacTLV, a.key = q.tlvs.hmac, s.keys[q.keyIndex]
	}
}

// count records q in its session and returns the reply's number, or that of the next reply for a statistics query.
func (s *shard) count(q *request, known *session, now time.Duration, a *pendingReply) uint64 {
	t := s.table
	r := &q.receipt
	if q.tlvs.receipt != 0 {
		known.receipt = max(now, 1)
		known.wait = s.options.LossWait
		if r.Tx != 0 {
			known.wait = min(time.Duration(r.Tx)*time.Millisecond, maxWait) // the sender's Tmax
		}
		if r.Epoch == known.epoch {
			t.promote(known, proven)
		}
	}
	known.keyIndex = q.keyIndex
	if known.round != s.round {
		known.round, known.inRound = s.round, 0
	}
	known.inRound++
	known.note(q, now)
	t.recordActivity(known, now)
	if q.statsQuery() {
		t.statsQuery(known, r.Next, r.Finish, now)
		if r.Finish && r.Epoch == known.epoch {
			t.release(known)
		}
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

// seal completes a prepared reply: T3 is now, then the checksums, in the order of their coverage.
func (s *shard) seal(a *pendingReply, now instant.Time) {
	if a.sealed {
		return
	}
	b := a.payload
	if a.session != nil {
		a.session.sealed(a.number, now)
	}
	stampfmt.PutT3(b, a.authenticated, a.format.Encode(now, tai))
	if a.receipt {
		stampfmt.SealCRC(b, a.authenticated)
	}
	if a.hmacTLV != 0 {
		stampfmt.PutTLVHMAC(b[:a.hmacTLV+hmacTLVBytes], a.baseBytes, a.key)
	}
	if a.authenticated {
		stampfmt.PutHMAC(b, a.key)
	}
}

// writeBase writes the reply's base packet over the request's. T3 and the HMAC are set later.
func (s *shard) writeBase(b []byte, q *request, number uint32, ttl uint8, t2 instant.Time, f timefmt.Format) {
	p := stampfmt.ReflectorPacket{
		Seq: number, Error: s.clock.estimates[f], SSID: q.base.SSID, T2: f.Encode(t2, tai),
		SenderSeq: q.base.Seq, SenderT1: q.base.T1, SenderError: q.base.Error, SenderTTL: ttl,
	}
	switch {
	case q.authenticated:
		p.AppendUnsignedTo(b[:0])
	case len(b) < stampfmt.UnauthenticatedBytes:
		// A TWAMP-Light request may lack the last three bytes, which are zero.
		var whole [stampfmt.UnauthenticatedBytes]byte
		copy(b, p.AppendTo(whole[:0]))
	default:
		p.AppendTo(b[:0])
	}
}

// filler sets the TLVs of one verified request, in place.
type filler struct {
	shard   *shard
	in      *tstamp.In
	q       *request
	session *session // nil: stateless
	t2      sample.Stamp
	a       *pendingReply
	// next is the reply's number, or the next one's in the reply to a statistics query; numbers of earlier replies are
	// relative to it.
	next uint64
}

// fill walks the TLVs that scan found well-formed.
func (f *filler) fill() {
	b := f.a.payload
	if at := f.q.tlvs.malformed; at != 0 {
		f.malformed(b, at)
	}
	for at := f.q.baseBytes; at < f.q.tlvs.end; {
		next := at + stampfmt.TLVHeaderBytes + int(binary.BigEndian.Uint16(b[at+2:]))
		b[at] = f.value(stampfmt.TLVType(b[at+1]), at, b[at:next:next])
		at = next
	}
}

// flagUnverified flags all TLVs of a request that failed verification and leaves their values unchanged (RFC 8972
// section 4.8).
func (f *filler) flagUnverified() {
	b := f.a.payload
	for at := f.q.baseBytes; at < f.q.tlvs.end; {
		b[at] = stampfmt.FlagIntegrity
		at += stampfmt.TLVHeaderBytes + int(binary.BigEndian.Uint16(b[at+2:]))
	}
	if at := f.q.tlvs.malformed; at != 0 {
		b[at] = stampfmt.FlagIntegrity | stampfmt.FlagMalformed
	}
}

// malformed flags the TLV at which scan stopped. A Follow-Up of the wrong length is zeroed, too (RFC 8972 section 4.7).
func (f *filler) malformed(b []byte, at int) {
	b[at] = stampfmt.FlagMalformed
	if stampfmt.TLVType(b[at+1]) == stampfmt.TypeFollowUp {
		value := b[at+stampfmt.TLVHeaderBytes:]
		clear(value[:min(len(value), int(binary.BigEndian.Uint16(b[at+2:])), 12)])
	}
}

// value sets one TLV, whose length scan has checked, and returns its flags.
func (f *filler) value(kind stampfmt.TLVType, at int, whole []byte) (flags uint8) {
	switch {
	case kind == stampfmt.TypeExtraPadding, kind == stampfmt.TypeHMAC:
	case kind == stampfmt.TypeTimestampInformation:
		source := f.shard.clock.source
		stampfmt.TimestampInformation{
			SyncIn: source, MethodIn: method(f.t2.Origin), SyncOut: source, MethodOut: methodSoftLocal,
		}.AppendTo(whole[:0])
	case kind == stampfmt.TypeClassOfService:
		f.classOfService(whole)
	case kind == stampfmt.TypeDirectMeasurement && f.session != nil:
		f.directMeasurement(whole)
	case kind == stampfmt.TypeFollowUp:
		f.followUp(whole)
	case kind == stampfmt.TypeReceipt && at == f.q.tlvs.receipt && f.session != nil:
		f.receipt(whole)
	default: // Location and Access Report among them
		return stampfmt.FlagUnrecognized
	}
	return 0
}

// classOfService reports DSCP and ECN of the received request (RFC 8972 section 4.4, with erratum 8199 for the ECN),
// and that the reply has the same DSCP.
func (f *filler) classOfService(whole []byte) {
	c, _ := stampfmt.ParseClassOfService(whole[stampfmt.TLVHeaderBytes:])
	c.DSCP2, c.ECN, c.RP = f.in.DSCP, f.in.ECN, 0
	if c.DSCP1 != f.in.DSCP {
		c.RP = 1
	}
	c.AppendTo(whole[:0])
}

// directMeasurement reports how many test packets were received and reflected (RFC 8972 section 4.5).
func (f *filler) directMeasurement(whole []byte) {
	d, _ := stampfmt.ParseDirectMeasurement(whole[stampfmt.TLVHeaderBytes:])
	d.ReflectorRx, d.ReflectorTx = uint32(f.session.received), uint32(f.session.tx)
	d.AppendTo(whole[:0])
}

// followUp reports the transmit timestamp of the previous reply. If it is not known, or without a session, the TLV
// stays zero (RFC 8972 section 4.7).
func (f *filler) followUp(whole []byte) {
	var v stampfmt.FollowUp
	if f.session != nil && f.next > 0 {
		if t3 := f.session.earlierReply(f.next, 1).stamp; t3.Present() {
			v.Seq = uint32(f.next - 1)
			v.T3 = f.a.format.Encode(t3.At, tai)
			v.Mode = method(t3.Origin)
		}
	}
	v.AppendTo(whole[:0])
}

// clockCode is the state of the clock: shared, if the token in the request is that of this kernel.
func (f *filler) clockCode() stampfmt.ClockCode {
	r, s := &f.q.receipt, f.session
	if r.Base == 0 {
		return f.shard.clock.code
	}
	if s.hostToken == 0 {
		s.hostToken = f.shard.host.Token(r.Run)
	}
	if r.Base == s.hostToken {
		return stampfmt.ClockShared
	}
	return f.shard.clock.code
}

// congestionExperienced is the ECN codepoint of RFC 3168 section 5.
const congestionExperienced = 3

// hostEvery is the interval, in replies, of the host block while its counts do not change: the bitmap is a word shorter
// in each reply that has it.
const hostEvery = 8

// host sets the host block for a sender that requests it: the kernel's drops at this socket and the refused packets of
// the session. It is in the first replies after a change, in each hostEvery-th reply, and in that to a statistics
// query. It replaces the bitmap's last word; without a bitmap there is no space for it.
func (f *filler) host(r *stampfmt.Receipt) {
	s, now := f.session, uint32(f.shard.drops.total-f.session.dropsBefore+f.session.refused)
	if f.q.receipt.Received&stampfmt.HostRequestBit == 0 || r.Words == 0 {
		return
	}
	if s.reportedDrops != now {
		s.reportedDrops, s.hostReports = now, stampfmt.ReportedReplies // as often as timestamps are repeated: replies may be lost
	}
	switch {
	case r.StatsQuery, f.next%hostEvery == 0:
	case s.hostReports > 0:
		s.hostReports--
	default:
		return
	}
	r.Words, r.Host, r.SocketDrops = r.Words-1, true, now
	r.TrafficClass, r.Remarked, r.CE = f.in.DSCP<<2|f.in.ECN, s.remarked, s.marked
}

// receipt sets the Receipt with the counts of the sender's numbers.
func (f *filler) receipt(whole []byte) {
	r, s := f.q.receipt, f.session
	c := s.counts()
	r.Filled, r.T2Origin, r.Clock, r.Epoch = true, f.t2.Origin, f.clockCode(), s.epoch
	r.Next, r.Base = uint32(c.Next), uint32(c.Base)
	r.Received, r.Lost, r.Duplicated = uint32(c.Received), uint32(c.Lost), uint32(c.Duplicated)
	r.Reordered, r.Late, r.Bursts = uint32(c.Reordered), uint32(c.Late), uint32(c.Bursts)
	r.Corrupted, r.Tx = uint32(s.corrupted), uint32(s.tx)
	r.Recent = c.Recent
	if requested := &f.q.receipt; !r.StatsQuery && requested.Received&stampfmt.HostRequestBit != 0 {
		if f.in.DSCP != requested.SentDSCP() {
			s.remarked++
		}
		if f.in.ECN == congestionExperienced {
			s.marked++
		}
	}
	f.host(&r)
	r.TellsTX = s.tellsTX
	for i := range r.EarlierTX {
		r.EarlierTX[i] = s.left(f.next, uint64(i)+1)
	}
	r.AppendTo(whole[:0])
	f.a.receipt = true
}

// clockView is the state of this host's clock during one batch: a reading for each packet would not differ.
type clockView struct {
	estimates [2]timefmt.ErrorEstimate // by format
	code      stampfmt.ClockCode
	source    uint8 // RFC 8972 section 4.3: synchronization source
}

// Synchronization sources and methods of RFC 8972 tables 7 and 9.
const (
	syncNTP, syncLocal        = 1, 5
	methodHW, methodSoftLocal = 1, 2
)

func viewClock(m clock.Monitor, at instant.Time) clockView {
	q := m.Quality(at)
	v := clockView{code: clockCode(q.State), source: syncLocal}
	if q.Synchronized() {
		v.source = syncNTP
	}
	for _, f := range []timefmt.Format{timefmt.NTP, timefmt.PTP} {
		v.estimates[f] = q.ErrorEstimate(f)
	}
	return v
}

func clockCode(s clock.State) stampfmt.ClockCode {
	return [...]stampfmt.ClockCode{
		clock.Synchronized: stampfmt.ClockOK, clock.Holdover: stampfmt.ClockOK, clock.Stepping: stampfmt.ClockStepped,
		clock.None: stampfmt.ClockNone, clock.Silent: stampfmt.ClockSilent, clock.Unsynchronized: stampfmt.ClockUnsynchronized,
	}[s]
}

// method is the timestamping method in RFC 8972's terms. It does not distinguish the kernel from user space; the
// Receipt does.
func method(o sample.Origin) uint8 {
	if o == sample.Hardware {
		return methodHW
	}
	return methodSoftLocal
}
