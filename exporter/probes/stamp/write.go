package stamp

import (
	"encoding/binary"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/net/wire/stampfmt"
)

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
func (s *session) writeStatsQuery() []byte {
	now := instant.Now()
	seq, finish := s.account.Query(now)
	b := s.writeBase(make([]byte, 0, DefaultSize(true)), uint32(seq), now, s.estimator.clock.Quality(now))
	b = stampfmt.FollowUp{}.AppendTo(b)
	r := s.receipt(receiptWords)
	r.StatsQuery, r.Finish, r.Next = true, finish, uint32(s.account.Next())
	return s.seal(r.AppendTo(b))
}

// receipt returns the TLV of every request: session, kernel, the loss timeout in milliseconds in the field that
// counts replies on the way back, and the flag for host blocks.
func (s *session) receipt(words int) stampfmt.Receipt {
	return stampfmt.Receipt{
		Words: words, Run: s.run, Base: s.hostToken, Epoch: s.account.Epoch(), Received: stampfmt.HostRequest(uint8(s.opts.DSCP)),
		Tx: uint32(s.opts.LossTimeout.Milliseconds()),
	}
}

func (s *session) writeBase(b []byte, seq uint32, t1 instant.Time, q clock.Quality) []byte {
	p := stampfmt.SenderPacket{
		Seq: seq, T1: s.opts.format.Encode(t1, s.opts.TAIOffset), SSID: s.ssid,
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
