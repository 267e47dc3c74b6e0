package stamp

import (
	"encoding/binary"

	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/probes/stamp/ledger"
)

// tlvForm is the type of a TLV and the length of its value.
type tlvForm struct {
	kind  stampfmt.TLVType
	bytes int
}

// forms returns the TLVs of a request, in their order; the first n are used.
func (l *layout) forms() (all [4]tlvForm, n int) {
	add := func(kind stampfmt.TLVType, bytes int) {
		all[n], n = tlvForm{kind, bytes - stampfmt.TLVHeaderBytes}, n+1
	}
	if l.followUp {
		add(stampfmt.TypeFollowUp, followUpBytes)
	}
	if l.receipt {
		add(stampfmt.TypeReceipt, receiptFixedBytes+8*l.words)
	}
	if l.padding >= 0 {
		add(stampfmt.TypeExtraPadding, stampfmt.TLVHeaderBytes+l.padding)
	}
	if l.authenticated && (n > 0 || l.size > l.base) {
		add(stampfmt.TypeHMAC, hmacTLVBytes)
	}
	return all, n
}

// ofQuery is the layout of a statistics query.
func (l *layout) ofQuery() layout {
	return layout{base: l.base, authenticated: l.authenticated, followUp: true, receipt: true, words: receiptWords, padding: -1}
}

// returned compares the bytes after the base packet of a reply with the TLVs of a request of this layout, by their types and
// lengths: whether all are as they were sent, and whether one is. A reflector with padding of its own returns none.
func (l *layout) returned(b []byte) (all, any bool) {
	forms, n := l.forms()
	at := l.base
	for _, f := range forms[:n] {
		at += stampfmt.TLVHeaderBytes + f.bytes
	}
	if n == 0 || len(b) != at {
		return false, false
	}
	all, at = true, l.base
	for _, f := range forms[:n] {
		same := stampfmt.TLVType(b[at+1]) == f.kind && int(binary.BigEndian.Uint16(b[at+2:])) == f.bytes
		all, any = all && same, any || same
		at += stampfmt.TLVHeaderBytes + f.bytes
	}
	return all, any
}

// returns is the same for both kinds of requests. test: the TLVs are of a test packet.
func (s *session) returns(b []byte) (all, any, test bool) {
	if all, any = s.layout.returned(b); any {
		return all, any, true
	}
	query := s.layout.ofQuery()
	all, any = query.returned(b)
	return all, any, false
}

// readTail reads what follows the base packet of a reply, which key verifies in authenticated mode. Bytes that are not in the form
// of the request's TLVs are padding of any content and length: a reflector of RFC 5357 has its own (section 4.2.1), and one of RFC
// 8762 may know no TLVs. TLVs that differ from the sent ones are damage if an earlier reply had them intact. Our reflector's
// replies have TLVs only.
func (s *session) readTail(in *tstamp.In, key *stampfmt.Key, r *ledger.Reply) (why ledger.DiscardReason, ok bool) {
	b := in.Payload
	if len(b) <= s.layout.base {
		return 0, true
	}
	all, any, test := s.returns(b)
	expected := s.account.Kind == ledger.RemoteOurs || s.returnsTLVs && any
	switch at := len(b) - hmacTLVBytes; {
	case in.Truncated && expected:
		return ledger.DiscardTruncated, false
	case key == nil, any && key.VerifyTLVs(b, s.layout.base, at):
	case all && key.VerifyTLVsOf(r.Packet.SenderSeq, b, s.layout.base, at):
		return 0, true // a reflector without TLVs that numbers its replies has copied them with the HMAC of the request
	case expected, any:
		return ledger.DiscardBadHMAC, false
	}
	if !expected && !all {
		return 0, true
	}
	intact := s.readTLVs(b, r)
	switch {
	case r.Filled() && !stampfmt.CheckCRC(b, s.layout.authenticated), !intact && (expected || r.Filled()):
		return s.damaged(r), false
	case r.Filled() && !s.began(r.Receipt.Run):
		return ledger.DiscardBadReceipt, false
	case !intact:
		r.HasFollow, r.HasReceipt = false, false
	}
	r.Returned = intact && all && test
	return 0, true
}
