package stamp

import (
	"encoding/binary"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/instant"
	wire "oneway.example/exporter/wire/stamp"
)

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

// writeQuery makes a packet that asks for counts and is no test packet.
func (s *session) writeQuery(finish bool) []byte {
	now := instant.Now()
	next := uint32(s.flights.next)
	s.query.note(s.opts.format.Encode(now, s.opts.TAIOffset))
	seq := next
	if finish && s.kind != farOurs {
		seq += leap
	}
	b := s.writeBase(make([]byte, 0, defaultSize(true)), seq, now, s.clock.Quality(now))
	b = wire.FollowUp{}.AppendTo(b)
	r := s.receipt(receiptWords)
	r.Query, r.Finish, r.Next = true, finish, next
	return s.seal(r.AppendTo(b))
}

// receipt is what every question tells: who asks, on which kernel, and how long it waits for an
// answer, in milliseconds, in the field that counts answers on the way back; and that
// host blocks are understood.
func (s *session) receipt(words int) wire.Receipt {
	return wire.Receipt{
		Words: words, Run: s.run, Base: s.hostToken, Epoch: s.remote.epoch, Received: wire.AsksHost,
		Tx: uint32(s.opts.LossTimeout.Milliseconds()),
	}
}

func (s *session) writeBase(b []byte, seq uint32, t1 instant.Time, q clock.Quality) []byte {
	p := wire.SenderPacket{
		Seq: seq, T1: s.opts.format.Encode(t1, s.opts.TAIOffset), SSID: s.ssid,
		Error: q.ErrorEstimate(s.opts.format),
	}
	if s.layout.authenticated {
		return p.AppendAuthenticatedTo(b, s.key)
	}
	return p.AppendTo(b)
}

// seal adds what protects a packet from damage and forgery: the CRC of the
// Receipt and, last because it covers the CRC, the HMAC of the TLVs.
func (s *session) seal(b []byte) []byte {
	hasTLVs := max(len(b), s.layout.size) > s.layout.base // a size may leave room for the HMAC TLV alone
	if s.layout.authenticated && hasTLVs {
		b = wire.TLV{Flags: wire.FlagUnrecognised, Type: wire.TypeHMAC, Value: s.blank[:]}.AppendTo(b)
	}
	wire.SealCRC(b, s.layout.authenticated)
	if s.layout.authenticated && hasTLVs {
		wire.PutTLVHMAC(b, s.layout.base, s.key)
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
