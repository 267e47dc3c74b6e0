package reflector

import (
	"encoding/binary"

	"oneway.example/exporter/sample"
	"oneway.example/exporter/tstamp"
	"oneway.example/exporter/wire/stamp"
)

// filler fills in the TLVs of one verified question, in place.
type filler struct {
	shard   *shard
	in      *tstamp.In
	q       *question
	session *session // nil: stateless
	t2      sample.Stamp
	a       *answer
	// next is the answer's number, or the next one's in a query's answer:
	// earlier answers are counted back from it.
	next uint64
}

// fill walks the TLVs that scan has found whole.
func (f *filler) fill() {
	b := f.a.payload
	if at := f.q.tlvs.malformed; at != 0 {
		f.malformed(b, at)
	}
	for at := f.q.baseBytes; at < f.q.tlvs.end; {
		next := at + stamp.TLVHeaderBytes + int(binary.BigEndian.Uint16(b[at+2:]))
		b[at] = f.value(stamp.TLVType(b[at+1]), at, b[at:next:next])
		at = next
	}
}

// distrust flags all TLVs of a question that failed verification and leaves
// them as they came (RFC 8972 section 4.8).
func (f *filler) distrust() {
	b := f.a.payload
	for at := f.q.baseBytes; at < f.q.tlvs.end; {
		b[at] = stamp.FlagIntegrity
		at += stamp.TLVHeaderBytes + int(binary.BigEndian.Uint16(b[at+2:]))
	}
	if at := f.q.tlvs.malformed; at != 0 {
		b[at] = stamp.FlagIntegrity | stamp.FlagMalformed
	}
}

// malformed flags the TLV at which scan stopped. A Follow-Up of the wrong
// length is emptied too (RFC 8972 section 4.7).
func (f *filler) malformed(b []byte, at int) {
	b[at] = stamp.FlagMalformed
	if stamp.TLVType(b[at+1]) == stamp.TypeFollowUp {
		value := b[at+stamp.TLVHeaderBytes:]
		clear(value[:min(len(value), int(binary.BigEndian.Uint16(b[at+2:])), 12)])
	}
}

// value fills in one TLV and returns its flags.
func (f *filler) value(kind stamp.TLVType, at int, whole []byte) (flags uint8) {
	switch kind {
	case stamp.TypeExtraPadding, stamp.TypeHMAC:
		return 0
	case stamp.TypeTimestampInformation:
		source := f.shard.clock.source
		stamp.TimestampInformation{
			SyncIn: source, MethodIn: method(f.t2.Origin), SyncOut: source, MethodOut: methodSoftLocal,
		}.AppendTo(whole[:0])
		return 0
	case stamp.TypeClassOfService:
		f.classOfService(whole)
		return 0
	case stamp.TypeDirectMeasurement:
		if f.session == nil {
			return stamp.FlagUnrecognised
		}
		f.directMeasurement(whole)
		return 0
	case stamp.TypeFollowUp:
		f.followUp(whole)
		return 0
	case stamp.TypeReceipt:
		if at != f.q.tlvs.receipt || f.session == nil {
			return stamp.FlagUnrecognised
		}
		f.receipt(whole)
		return 0
	default: // Location and Access Report among them
		return stamp.FlagUnrecognised
	}
}

// classOfService gives the answer the DSCP that the sender asks for, if it may,
// and tells the sender how its question arrived (RFC 8972 section 4.4, with
// erratum 8199 for the ECN).
func (f *filler) classOfService(whole []byte) {
	c, err := stamp.ParseClassOfService(whole[stamp.TLVHeaderBytes:])
	if err != nil {
		return
	}
	c.DSCP2, c.ECN, c.RP = f.in.DSCP, f.in.ECN, 0
	switch {
	case c.DSCP1 == f.in.DSCP:
	case f.shard.allowDSCP&(1<<c.DSCP1) != 0:
		f.a.dscp = c.DSCP1
	default:
		c.RP = 1
	}
	c.AppendTo(whole[:0])
}

// directMeasurement tells how many test packets have come and been answered
// (RFC 8972 section 4.5).
func (f *filler) directMeasurement(whole []byte) {
	d, err := stamp.ParseDirectMeasurement(whole[stamp.TLVHeaderBytes:])
	if err != nil {
		return
	}
	d.ReflectorRx, d.ReflectorTx = uint32(f.session.received), uint32(f.session.tx)
	d.AppendTo(whole[:0])
}

// followUp tells when the previous answer really left. If that is not known,
// or without a session, the TLV stays blank (RFC 8972 section 4.7).
func (f *filler) followUp(whole []byte) {
	var v stamp.FollowUp
	if f.session != nil && f.next > 0 {
		if t3 := f.session.sentBack(f.next, 1).stamp; t3.Present() {
			v.Seq = uint32(f.next - 1)
			v.T3 = f.a.format.Encode(t3.At, f.shard.tai)
			v.Mode = method(t3.Origin)
		}
	}
	v.AppendTo(whole[:0])
}

// clockCode is the word on the clock: that it is the sender's own, if the token
// in the question is that of this kernel.
func (f *filler) clockCode() stamp.ClockCode {
	r, s := &f.q.receipt, f.session
	if r.Base == 0 {
		return f.shard.clock.code
	}
	if s.hostToken == 0 {
		s.hostToken = f.shard.host.Token(r.Run)
	}
	if r.Base == s.hostToken {
		return stamp.ClockShared
	}
	return f.shard.clock.code
}

// hostEvery is how rarely an answer tells of the host when nothing has changed there: the
// bitmap of fates is a word shorter in each that does.
const hostEvery = 8

// host tells a sender that asks for it what the kernel has dropped at this socket, and what
// was refused of its own: in the first answers after that has changed, in each hostEvery-th, and in a query's. Its block
// takes the place of the bitmap's last word; without a bitmap there is no room for it.
func (f *filler) host(r *stamp.Receipt) {
	s, now := f.session, uint32(f.shard.drops.total-f.session.dropsBefore+f.session.refused)
	if f.q.receipt.Received&stamp.AsksHost == 0 || r.Words == 0 {
		return
	}
	if s.toldDrops != now {
		s.toldDrops, s.tellHost = now, stamp.LeftAnswers // as often as stamps are told: answers get lost
	}
	switch {
	case r.Query, f.next%hostEvery == 0:
	case s.tellHost > 0:
		s.tellHost--
	default:
		return
	}
	r.Words, r.Host, r.SocketDrops = r.Words-1, true, now
}

// receipt fills in our own TLV with the counts of the sender's numbers.
func (f *filler) receipt(whole []byte) {
	r, s := f.q.receipt, f.session
	c := s.counts()
	r.Filled, r.T2Origin, r.Clock, r.Epoch = true, f.t2.Origin, f.clockCode(), s.epoch
	r.Next, r.Base = uint32(c.Next), uint32(c.Base)
	r.Received, r.Lost, r.Duplicated = uint32(c.Received), uint32(c.Lost), uint32(c.Duplicated)
	r.Reordered, r.Late, r.Bursts = uint32(c.Reordered), uint32(c.Late), uint32(c.Bursts)
	r.Corrupted, r.Tx = uint32(s.corrupted), uint32(s.tx)
	r.Recent = c.Recent
	f.host(&r)
	for i := range r.Left {
		r.Left[i] = s.left(f.next, uint64(i)+1)
	}
	r.AppendTo(whole[:0])
	f.a.receipt = true
}
